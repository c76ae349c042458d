// Label features from positive instances: row l of Z is the sum of x_i over the positives i of label l (times the value
// in Yt), cut to its `top` largest entries, l2-normalised over both blocks. (L, D) from (L, n) and (n, D).
#pragma once
#include <vector>

#include "csr.h"
#include "parallel.h"

namespace lw {

struct OwnedFeatures {
  std::vector<int64_t> ptr;
  std::vector<int32_t> idx;
  std::vector<float> val;
  std::vector<float> dense;  // (rows, dense_cols)
};

OwnedFeatures pifa(const Csr& yt, const Features& x, int64_t top, int threads, Control& control);

}  // namespace lw
