// Search down the label tree: score the children of the kept parents, keep the best, go on. Scores are combined in log
// space (products of small numbers underflow). Ties: smaller node id; at the leaves, smaller label id.
#pragma once
#include <atomic>
#include <functional>
#include <vector>

#include "arrays/csr.h"
#include "arrays/parallel.h"
#include "linear/chunk.h"

namespace lw {

enum class Combiner : int { noop = 0, sigmoid = 1, hinge = 2 };  // hinge: exp(-max(0, 1 - m)^p)

// One level: the records of its chunks, one per parent, and how its margins enter the score.
struct Level {
  int64_t parents = 0, children = 0, dense_cols = 0;
  int64_t dense_begin = 0;  // first of the dense columns it reads
  bool reads_sparse = true;
  const int64_t* child_ptr = nullptr;  // (parents + 1)
  const uint8_t* records = nullptr;
  const int64_t* places = nullptr;        // (parents, 2) first byte and number of bytes of each record
  std::atomic<uint8_t>* ready = nullptr;  // (parents) 1 = verified; nullptr = all are
  std::function<void(int64_t)> verify;    // makes a parent's record ready, or throws
  Combiner combiner = Combiner::hinge;
  int power = 3;
  float discount = 1;  // of the parent's log score
  int64_t keep = 10;   // candidates that survive this level

  int64_t width(int64_t parent) const { return child_ptr[parent + 1] - child_ptr[parent]; }
  Chunk chunk(int64_t parent) const {
    if (ready && !ready[parent].load(std::memory_order_acquire)) verify(parent);
    return Chunk(records + places[2 * parent], width(parent), dense_cols);
  }
  bool bounded() const { return combiner != Combiner::noop; }  // no child scores more than discount * its parent
};

// Where a search begins: `width` nodes above the first level for each row (id -1: none), with their log scores.
// Without ids it begins at the root.
struct Start {
  const int32_t* ids = nullptr;
  const float* scores = nullptr;
  int64_t width = 0;
};

struct SearchPlan {
  std::vector<Level> levels;
  const int32_t* names = nullptr;  // public ids of the last level's nodes; nullptr: the nodes themselves
  Start start;
  bool exact = false;  // best-first instead of a beam: the best leaves there are, whatever `keep` says above
  bool logs = false;   // hand back log scores rather than scores
};

struct Found {
  std::vector<int32_t> ids;   // (n, k), -1 where there is none
  std::vector<float> scores;  // (n, k), 0 where there is none: exp(log score), or the margin after a noop level
};

Found search_tree(const Features& x, const SearchPlan& plan, int threads, Control& control);

}  // namespace lw
