// One ranking from the rankings of several models. A member's scores become values; a label's score is the sum of the
// weighted values over the members that name it. Ties: smaller label id.
#pragma once
#include <vector>

#include "linear/beam.h"

namespace lw {

enum class Average : int { mean = 0, softmax = 1, sigmoid = 2, rank = 3, round_robin = 4 };

// What one member found: (n, width) ids, best first, -1 where the list has ended, and their scores.
struct Ranking {
  const int32_t* ids = nullptr;
  const float* scores = nullptr;
  int64_t width = 0;
  float weight = 1;
  bool margins = false;  // scores are margins, not probabilities
};

// `length` is the rank at which a label is worth nothing; at least the width of every member. Labels kept: `keep`.
Found merge(const std::vector<Ranking>& members, int64_t n, Average average, int64_t length, int64_t keep, int threads,
            Control& control);

}  // namespace lw
