// Label features from positive instances: row l of Z is the sum of x_i over the positives i of label l (times the value
// in Yt), cut to its `top` largest entries, l2-normalised over both blocks. (L, D) from (L, n) and (n, D).
#pragma once
#include <vector>

#include "arrays/csr.h"
#include "arrays/growing.h"
#include "arrays/parallel.h"

namespace lw {

struct LabelFeatures {
  std::vector<int64_t> ptr;
  Growing<int32_t> idx;
  Growing<float> val;
  std::vector<float> dense;  // (rows, dense_cols)
};

// top = 0 keeps everything, unless Z could then have more than `most` entries: each label keeps its most / L largest.
// Memory is Z itself and a few hundred rows.
LabelFeatures pifa(const Csr& yt, const Features& x, int64_t top, int64_t most, int threads, Control& control);

}  // namespace lw
