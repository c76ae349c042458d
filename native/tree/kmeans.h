// Spherical k-means over label features: cuts segments of a permutation of labels into parts.
//   bisect: recursive balanced 2-means, floor(B/2) parts to the left (exact halves when B is a power of two)
//   kway:   B centres at once, labels given to centres by descending similarity while there is room
//   uneven: B centres at once, every label to its nearest (Bonsai); parts of no or one label are dissolved
// Parts of the first two differ in size by at most one.
#pragma once
#include <vector>

#include "arrays/csr.h"
#include "arrays/parallel.h"

namespace lw {

enum class Cut : int { bisect = 0, kway = 1, uneven = 2 };

struct KMeansConfig {
  Cut cut = Cut::bisect;
  int max_iter = 20;
  int64_t sample = 100;  // uneven: rows per centre that the centres are fitted on
  uint64_t seed = 0, tree = 0;
  int64_t first = 0;  // where the members stand among those of the whole level: a part of it is cut as the whole is
};

struct Segment {
  int64_t begin, end;  // into the members
  int32_t parts;       // still to be made of it; 1: finished
  int64_t size() const { return end - begin; }
};

// Reorders `members` in place, each final part sorted by label; returns the parts in order. size >= parts everywhere;
// `uneven` may make fewer.
std::vector<Segment> split(const Features& z, std::vector<int32_t>& members, std::vector<Segment> segments,
                           const KMeansConfig& config, int threads, Control& control);

}  // namespace lw
