#include "text/name_table.h"

#include <cstring>
#include <stdexcept>

namespace lw {
namespace {

uint64_t fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

NameTable::NameTable(uint64_t seed) : seed_(seed), slots_(1024, -1) {}

uint64_t NameTable::hash(std::string_view name) const {
  constexpr uint64_t FIRST = 0x9E3779B97F4A7C15ull, SECOND = 0xFF51AFD7ED558CCDull;
  uint64_t hash = seed_ ^ (name.size() * FIRST);
  for (; name.size() >= 8; name.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, name.data(), 8);
    hash = fold(hash ^ word, FIRST ^ seed_);
  }
  uint64_t rest = 0;
  if (!name.empty()) std::memcpy(&rest, name.data(), name.size());
  return fold(hash ^ rest, SECOND ^ seed_);
}

size_t NameTable::place(std::string_view name, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] >= 0) {
    const auto number = static_cast<size_t>(slots_[at]);
    if (hashes_[number] == hash && (*this)[slots_[at]] == name) break;
    at = (at + 1) & mask;
  }
  return at;
}

int32_t NameTable::find(std::string_view name, uint64_t hash) const { return slots_[place(name, hash)]; }

int32_t NameTable::add(std::string_view name, uint64_t hash) {
  size_t at = place(name, hash);
  if (slots_[at] >= 0) return slots_[at];
  if (hashes_.size() >= INT32_MAX) throw std::length_error("more than 2^31 - 1 names");
  if (2 * (hashes_.size() + 1) > slots_.size()) {
    grow();
    at = place(name, hash);
  }
  slots_[at] = static_cast<int32_t>(hashes_.size());
  hashes_.push_back(hash);
  bytes_ += name;
  ends_.push_back(bytes_.size());
  return slots_[at];
}

void NameTable::grow() {
  std::vector<int32_t> larger(2 * slots_.size(), -1);
  const size_t mask = larger.size() - 1;
  for (size_t number = 0; number < hashes_.size(); ++number) {
    size_t at = hashes_[number] & mask;
    while (larger[at] >= 0) at = (at + 1) & mask;
    larger[at] = static_cast<int32_t>(number);
  }
  slots_ = std::move(larger);
}

}  // namespace lw
