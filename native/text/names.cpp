#include "text/names.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lw {
namespace {

template <typename Less>
bool rising(const Names& names, Less less) {
  for (int64_t i = 1; i < names.size; ++i)
    if (!less(names[i - 1], names[i])) return false;
  return true;
}

}  // namespace

bool in_order(const Names& names, int64_t bytes) {
  bool falls = names.offsets[0] != 0 || names.offsets[names.size] != bytes;
  for (int64_t i = 0; i < names.size; ++i) falls |= names.offsets[i + 1] < names.offsets[i];
  return !falls;
}

int64_t repeated(const Names& names) {
  const auto by_bytes = [](std::string_view a, std::string_view b) { return a < b; };
  const auto by_length = [](std::string_view a, std::string_view b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  };
  if (rising(names, by_bytes) || rising(names, by_length)) return -1;
  std::vector<int32_t> order(names.size);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int sign = names[a].compare(names[b]);
    return sign ? sign < 0 : a < b;
  });
  for (int64_t i = 1; i < names.size; ++i)
    if (names[order[i - 1]] == names[order[i]]) return order[i];
  return -1;
}

}  // namespace lw
