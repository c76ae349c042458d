// Names to numbers, in the order in which they are first met: the labels of an input while it is read.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lw {

class NameTable {
 public:
  explicit NameTable(uint64_t seed);

  uint64_t hash(std::string_view name) const;
  int32_t find(std::string_view name, uint64_t hash) const;  // -1: not there
  int32_t add(std::string_view name, uint64_t hash);         // its number, the next one if it is new

  int64_t size() const { return static_cast<int64_t>(hashes_.size()); }
  std::string_view operator[](int64_t number) const {
    const auto i = static_cast<size_t>(number);
    return std::string_view(bytes_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }

 private:
  size_t place(std::string_view name, uint64_t hash) const;
  void grow();

  uint64_t seed_;
  std::string bytes_;
  std::vector<size_t> ends_{0};
  std::vector<uint64_t> hashes_;
  std::vector<int32_t> slots_;  // numbers by hash, -1: free
};

}  // namespace lw
