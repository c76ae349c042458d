// The table of terms: open addressing, one 32-byte slot per term, so that finding and counting a term touches one
// cache line. Terms of up to 16 bytes live in the slot and are compared as two words; longer ones live in an arena.
// Terms hold no NUL byte, so zero padding is unambiguous. No result may depend on the order of slots.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "arrays/buffer.h"

namespace lw {

static_assert(std::endian::native == std::endian::little, "slots keep a term's first byte in the low byte");

// A term on its way to the table: its bytes, and what identifies it there.
struct Probe {
  uint64_t low, high;  // the first 16 bytes, zero padded; for longer terms 0 and the hash
  uint64_t hash;
  const uint8_t* bytes;
  uint32_t size;
};

struct Slot {
  uint64_t low;   // bytes 0-7; or arena offset + 1, shifted left by 8: no term starts with NUL. 0: free
  uint64_t high;  // bytes 8-15; or the hash
  uint64_t last;  // where the term's entry of the current document is (used while counting)
  uint32_t id;
  uint32_t count;  // documents that hold the term
};

// Keyed anew in every process: texts cannot be made to collide. Only speed depends on it.
uint64_t hash_seed();

class Terms {
 public:
  static constexpr uint32_t MAX_TERMS = (1u << 31) - 1;

  explicit Terms(uint64_t seed, int64_t expected = 0) : seed_(seed) { reserve(expected); }

  // `bytes` must be readable for 16 bytes.
  Probe probe(const uint8_t* bytes, uint32_t size) const {
    uint64_t low = 0, high;
    if (size > 16) [[unlikely]] {
      high = long_hash(bytes, size);
      return {low, high, high, bytes, size};
    }
    std::memcpy(&low, bytes, 8);
    std::memcpy(&high, bytes + 8, 8);
    low &= MASKS[size + 8];
    high &= MASKS[size];
    return {low, high, fold(low ^ seed_, high ^ SECOND), bytes, size};
  }
  void prefetch(const Probe& p) const { __builtin_prefetch(&slots_[index(p)]); }

  // The slot of a term, or nullptr.
  const Slot* find(const Probe& p) const {
    for (int64_t i = index(p);; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (is(slot, p)) return &slot;
      if (slot.low == 0) return nullptr;
    }
  }
  // The slot of a term, made with the next id when it is new. Valid until the next call.
  Slot& at(const Probe& p) {
    for (int64_t i = index(p);; i = (i + 1) & mask_) {
      Slot& slot = slots_[i];
      if (is(slot, p)) return slot;
      if (slot.low == 0) return add(p, i);
    }
  }

  uint32_t size() const { return size_; }
  void reserve(int64_t terms);
  std::string_view text(const Slot& slot) const;
  Probe probe(const Slot& slot) const;  // the probe that finds the same term in a table of the same seed
  template <typename F>
  void each(F&& f) const {
    for (int64_t i = 0; i < slots_.size; ++i)
      if (slots_[i].low) f(slots_[i]);
  }

 private:
  static constexpr uint64_t SECOND = 0xFF51AFD7ED558CCDull;  // 0xFF is no byte of UTF-8: never equal to a term
  static const uint64_t MASKS[25];                           // MASKS[8 + n] keeps n bytes; below all, above none

  static uint64_t fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  int64_t index(const Probe& p) const { return static_cast<int64_t>(p.hash >> shift_); }
  bool is(const Slot& slot, const Probe& p) const {
    if (p.size <= 16) [[likely]]
      return slot.low == p.low && slot.high == p.high;
    return slot.high == p.high && slot.low != 0 && (slot.low & 255) == 0 &&
           text(slot) == std::string_view(reinterpret_cast<const char*>(p.bytes), p.size);
  }
  uint64_t long_hash(const uint8_t* bytes, uint32_t size) const;
  Slot& add(const Probe& p, int64_t at);
  void resize(int bits);

  uint64_t seed_;
  int64_t mask_ = 0;
  int shift_ = 64;
  uint32_t size_ = 0;
  Buffer<Slot> slots_;
  std::vector<uint8_t> arena_;  // (uint32 size, bytes) of the long terms
};

}  // namespace lw
