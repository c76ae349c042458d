// Training of one tree level: for every parent cluster, its children's linear classifiers on its shortlisted instances.
#pragma once
#include <vector>

#include "csr.h"
#include "kernels.h"
#include "parallel.h"

namespace lw {

struct SolverConfig {
  Loss loss = Loss::squared_hinge;
  Solver solver = Solver::dual;
  bool mean_start = false;
  float l1 = 0.1f, cp = 1, cn = 1, eps = 0.1f, bias = 1, threshold = 0.1f;
  int max_iter = 100;
  uint64_t seed = 0, tree = 0, level = 0;
};

// The chunks of a level, one per parent, as disk holds and beam search reads them. Chunk c has the feature rows
// [chunk_ptr[c], chunk_ptr[c + 1]): rows (sorted features), row_ptr into cols (child within the chunk) and vals.
struct Chunks {
  std::vector<int64_t> chunk_ptr;  // (parents + 1)
  std::vector<int32_t> rows;
  std::vector<int64_t> row_ptr;  // (rows + 1)
  std::vector<uint16_t> cols;
  std::vector<float> vals;
  std::vector<float> bias;   // (children): weight times value of the bias feature
  std::vector<float> dense;  // chunk c: (dense_cols, children of c) row-major at dense_cols * child_ptr[c]
};

// Yt (children, n): instances that are positives of a child, values are their costs. Mt (parents, n): shortlist.
// Positives of a child always take part in its problem, in the shortlist or not. negative (children): the weight of a
// child's negatives, times cn.
Chunks train_level(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr, const float* negative,
                   const SolverConfig& config, int threads, Control& control);

}  // namespace lw
