// The inner loops, compiled once per instruction set from kernels_impl.h and chosen when the library loads.
// Raw pointers and plain numbers only. LABELWOOD_ISA=portable in the environment forces the portable set.
#pragma once
#include <cstdint>

#include "linear/score.h"

namespace lw {

enum class Loss : int { squared_hinge = 0, hinge = 1, logistic = 2 };
enum class Solver : int { dual = 0, newton = 1, proximal = 2 };  // the last two: squared hinge only

// One blocked solve: up to 16 labels of one parent cluster over its n instances. Feature rows of W are
// [local sparse features | dense features | bias], each `lanes` floats wide, so that one visit of an instance serves
// all labels: its non-zeros are read once and SIMD runs across labels. Lanes never mix: a label's result does not
// depend on which other labels share its block.
struct Block {
  int64_t n = 0;                  // instances
  const int64_t* ptr = nullptr;   // (n + 1) into idx, val
  const uint32_t* idx = nullptr;  // local feature numbers
  const float* val = nullptr;
  const float* norm = nullptr;          // (n) |x_i|^2 including the bias feature
  const float* const* dense = nullptr;  // (n) dense rows, or nullptr
  int64_t sparse_cols = 0, dense_cols = 0;
  float bias = 1.0f;  // value of the bias feature; 0 = no bias

  int lanes = 8;                       // 8 or 16
  const uint32_t* allowed = nullptr;   // (n) lanes for which the instance takes part
  const uint32_t* positive = nullptr;  // (n) lanes for which it is a positive
  const int64_t* cost_ptr = nullptr;   // (n + 1) into cost_lane, cost: the positives' own costs
  const uint8_t* cost_lane = nullptr;
  const float* cost = nullptr;

  Loss loss = Loss::squared_hinge;
  Solver solver = Solver::dual;
  bool mean_start = false;   // from the mean-separating point, not from 0
  bool given_start = false;  // newton: from what w holds on entry
  float cp = 1.0f, eps = 0.1f;
  float cn[16] = {};  // by lane
  float l1 = 0.1f;    // proximal: weight of |w|_1
  int max_iter = 100;

  float* w = nullptr;          // ((sparse_cols + dense_cols + 1) * lanes), zero on entry but for a given start
  float* alpha = nullptr;      // (n * lanes), zero on entry; logistic keeps its own start, primal solvers margins
  uint32_t* active = nullptr;  // (n) scratch
  int32_t* order = nullptr;    // (n) scratch: the visiting order of a pass
  float* work = nullptr;       // (work_floats) scratch

  void* context = nullptr;
  void (*visit_order)(void* context, int pass, int32_t* order) = nullptr;
  bool (*cancelled)(void* context) = nullptr;
};

// Scratch of the primal solvers and of the mean-separating start: arrays like w and like alpha.
inline int64_t work_floats(const Block& b) {
  const int64_t like_w = b.solver == Solver::newton ? 6 : b.solver == Solver::proximal ? 4 : b.mean_start ? 2 : 0;
  const int64_t like_alpha = b.solver == Solver::newton ? 1 : b.solver == Solver::proximal ? 2 : 0;
  return ((b.sparse_cols + b.dense_cols + 1) * like_w + b.n * like_alpha) * b.lanes;
}

struct Kernels {
  const char* name;
  int (*solve)(const Block& block);  // passes made; -1 when cancelled
  // out[0..m) += v * row[0..m)
  void (*axpy)(float v, const float* row, float* out, int64_t m);
  // The margins of a chunk's children for each query; the same bits for any grouping of queries.
  void (*score)(const Chunk& chunk, const Query* queries, int64_t count, const Workbench& bench);
};

const Kernels& kernels();

}  // namespace lw
