// Training of one tree level: for every parent cluster, its children's linear classifiers on its shortlisted instances.
#pragma once
#include <functional>
#include <vector>

#include "arrays/csr.h"
#include "arrays/parallel.h"
#include "linear/chunk.h"
#include "linear/kernels.h"

namespace lw {

struct SolverConfig {
  Loss loss = Loss::squared_hinge;
  Solver solver = Solver::dual;
  bool mean_start = false;
  float l1 = 0.1f;                  // solver proximal
  const float* negative = nullptr;  // (children) weights of their negatives, times cn
  const float* first = nullptr;  // solver newton: (children, dense columns + 1) first weights, the bias last; or none
  float cp = 1, cn = 1, eps = 0.1f, bias = 1, threshold = 0.1f;
  int max_iter = 100;
  Weight weight = Weight::f32;  // how weights are stored
  uint64_t seed = 0, tree = 0, level = 0;
  uint64_t first_parent = 0;  // number of the first parent given here among all of its level
};

// Where the records of finished chunks go (chunk.h), one call at a time, in an order that does not depend on threads:
// the parent with most work first. `wait` is called by a worker before it starts on more: it returns when there is
// room.
struct Sink {
  std::function<void(int64_t parent, std::vector<uint8_t>&& record)> put;
  std::function<void()> wait;
};

// Yt (children, n): instances that are positives of a child, values are their costs. Mt (parents, n): shortlist.
// Positives of a child always take part in its problem, in the shortlist or not.
void train_level(const Features& x, const Csr& yt, const Csr& mt, const int64_t* child_ptr, const SolverConfig& config,
                 const Sink& sink, int threads, Control& control);

}  // namespace lw
