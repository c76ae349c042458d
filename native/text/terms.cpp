#include "text/terms.h"

#include <random>
#include <utility>

namespace lw {

uint64_t hash_seed() {
  static const uint64_t seed = [] {
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32 | device()) | 1ull << 63 | 0xFFull << 48;  // 0xFF: see SECOND
  }();
  return seed;
}

#define KEEP(n) (n >= 8 ? ~0ull : (1ull << (8 * (n % 8))) - 1)
const uint64_t Terms::MASKS[25] = {0,       0,       0,       0,       0,       0,       0,       0,       KEEP(0),
                                   KEEP(1), KEEP(2), KEEP(3), KEEP(4), KEEP(5), KEEP(6), KEEP(7), KEEP(8), KEEP(8),
                                   KEEP(8), KEEP(8), KEEP(8), KEEP(8), KEEP(8), KEEP(8), KEEP(8)};
#undef KEEP

uint64_t Terms::long_hash(const uint8_t* bytes, uint32_t size) const {
  uint64_t state = seed_ ^ size, a, b;
  for (uint32_t i = 0; i < size; i += 16) {
    const uint32_t at = i + 16 <= size ? i : size - 16;  // the last step overlaps
    std::memcpy(&a, bytes + at, 8);
    std::memcpy(&b, bytes + at + 8, 8);
    state = fold(a ^ state, b ^ SECOND);
  }
  return fold(state ^ SECOND, seed_);
}

void Terms::reserve(int64_t terms) {
  int bits = 12;
  while ((int64_t{1} << bits) * 5 < terms * 8) ++bits;  // at most 5/8 full
  if (slots_.size == 0 || bits > 64 - shift_) resize(bits);
}

Slot& Terms::add(const Probe& p, int64_t at) {
  if (int64_t{size_} * 8 >= slots_.size * 5) {
    resize(64 - shift_ + 1);
    for (at = index(p); slots_[at].low; at = (at + 1) & mask_) {
    }
  }
  if (size_ == MAX_TERMS) throw std::length_error("the texts hold more than 2^31 distinct terms");
  Slot& slot = slots_[at];
  if (p.size <= 16) {
    slot.low = p.low;
  } else {
    slot.low = static_cast<uint64_t>(arena_.size() + 1) << 8;
    const auto* size = reinterpret_cast<const uint8_t*>(&p.size);
    arena_.insert(arena_.end(), size, size + 4);
    arena_.insert(arena_.end(), p.bytes, p.bytes + p.size);
  }
  slot.high = p.high;
  slot.last = 0;
  slot.id = size_++;
  slot.count = 0;
  return slot;
}

void Terms::resize(int bits) {
  const Buffer<Slot> old = std::exchange(slots_, Buffer<Slot>(int64_t{1} << bits));
  std::memset(static_cast<void*>(slots_.data()), 0, sizeof(Slot) * static_cast<size_t>(slots_.size));
  mask_ = slots_.size - 1;
  shift_ = 64 - bits;
  for (int64_t from = 0; from < old.size; ++from) {
    const Slot& slot = old[from];
    if (!slot.low) continue;
    const uint64_t hash = slot.low & 255 ? fold(slot.low ^ seed_, slot.high ^ SECOND) : slot.high;
    auto to = static_cast<int64_t>(hash >> shift_);
    while (slots_[to].low) to = (to + 1) & mask_;
    slots_[to] = slot;
  }
}

std::string_view Terms::text(const Slot& slot) const {
  const auto* inline_bytes = reinterpret_cast<const char*>(&slot);  // it opens with low and high
  if (slot.low & 255) return {inline_bytes, strnlen(inline_bytes, 16)};
  const uint8_t* at = arena_.data() + (slot.low >> 8) - 1;
  uint32_t size;
  std::memcpy(&size, at, 4);
  return {reinterpret_cast<const char*>(at + 4), size};
}

Probe Terms::probe(const Slot& slot) const {
  const std::string_view view = text(slot);
  const auto* bytes = reinterpret_cast<const uint8_t*>(view.data());
  const auto size = static_cast<uint32_t>(view.size());
  if (size > 16) return {0, slot.high, slot.high, bytes, size};
  return {slot.low, slot.high, fold(slot.low ^ seed_, slot.high ^ SECOND), bytes, size};
}

}  // namespace lw
