// Distances between rows of X and named rows of Z: what the second ranking of candidates asks for.
#pragma once
#include <vector>

#include "arrays/csr.h"
#include "arrays/parallel.h"

namespace lw {

// (n, k): |x_i - z_l|^2 for l = ids[i][r]; 0 where ids is -1.
std::vector<float> pair_distances(const Features& x, const Features& z, const int32_t* ids, int64_t k, int threads,
                                  Control& control);

}  // namespace lw
