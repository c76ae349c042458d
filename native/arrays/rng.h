// Stateless randomness: every draw is a pure function of a key, so nothing is shared, saved or raced on.
// key(seed, where...) names a place in the run; Rng walks the splitmix64 sequence that starts there.
#pragma once
#include <cstdint>
#include <utility>

namespace lw {

inline uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

template <typename... Where>
uint64_t key(uint64_t seed, Where... where) {
  uint64_t k = mix(seed);
  ((k = mix(k ^ mix(static_cast<uint64_t>(where)))), ...);
  return k;
}

struct Rng {
  uint64_t state;
  explicit Rng(uint64_t k) : state(k) {}
  uint64_t next() {
    uint64_t out = mix(state);
    state += 0x9E3779B97F4A7C15ull;
    return out;
  }
  // Uniform in [0, n) for n < 2^32: the high half of a 32 x 32 bit product (bias below 2^-32 * n).
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(((next() >> 32) * n) >> 32); }
};

template <typename T>
void shuffle(T* items, int64_t n, uint64_t k) {
  Rng rng(k);
  for (int64_t i = n - 1; i > 0; --i) std::swap(items[i], items[rng.below(static_cast<uint32_t>(i + 1))]);
}

}  // namespace lw
