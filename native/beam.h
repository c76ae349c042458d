// Beam search down the label tree: score the children of the kept parents, keep the best, go on. Scores are combined
// in log space (products of small numbers underflow). Ties: smaller node id; at the leaves, smaller label id.
#pragma once
#include <vector>

#include "csr.h"
#include "parallel.h"

namespace lw {

enum class Combiner : int { noop = 0, sigmoid = 1, hinge = 2 };  // hinge: exp(-max(0, 1 - m)^p)

// One level: the chunks of train_level, as views.
struct Level {
  int64_t parents = 0, children = 0;
  const int64_t* child_ptr = nullptr;  // (parents + 1)
  const int64_t* chunk_ptr = nullptr;  // (parents + 1)
  const int32_t* rows = nullptr;
  const int64_t* row_ptr = nullptr;
  const uint16_t* cols = nullptr;
  const float* vals = nullptr;
  const float* bias = nullptr;   // (children)
  const float* dense = nullptr;  // (dense_cols, width) per chunk
  Combiner combiner = Combiner::hinge;
  int power = 3;
  int64_t keep = 10;  // candidates that survive this level
};

struct Found {
  std::vector<int32_t> ids;   // (n, k), -1 where there is none
  std::vector<float> scores;  // (n, k), 0 where there is none
};

// `names` maps the last level's nodes to public ids (nullptr: the node itself). Scores are exp(log score), or the plain
// margin when the last combiner is noop.
Found beam_search(const Features& x, const std::vector<Level>& levels, const int32_t* names, int threads,
                  Control& control);

}  // namespace lw
