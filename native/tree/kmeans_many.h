// B centres at once: the two cuts of kmeans.h that are not bisection. Centres are (features, B), so that one entry of a
// label's row meets all B centres in one sweep. Memory is the centres and O(n): never n x B.
#pragma once
#include <vector>

#include "tree/kmeans.h"
#include "tree/label_rows.h"

namespace lw {

// Reorder the segment's members m (sorted by label) into its parts; k keys the B labels the centres start from.
std::vector<Segment> kway(const LabelRows& z, int32_t* m, const Segment& segment, uint64_t k, int max_iter, int threads,
                          Control& control);
std::vector<Segment> uneven(const LabelRows& z, int32_t* m, const Segment& segment, uint64_t k, int max_iter,
                            int64_t sample, int threads, Control& control);

}  // namespace lw
