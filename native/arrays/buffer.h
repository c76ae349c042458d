// Memory that is not cleared first. Large blocks ask for huge pages: fewer page faults while filling them, fewer
// misses of the address cache while looking things up.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace lw {

template <typename T>
class Buffer {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  int64_t size = 0;
  Buffer() = default;
  explicit Buffer(int64_t n) : size(n), data_(allocate(static_cast<size_t>(n))) {}
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }
  T* data() const { return data_.get(); }
  T* release() { return data_.release(); }
  static void free(void* p) noexcept { ::operator delete(p, std::align_val_t{ALIGN}); }

 private:
  static constexpr size_t HUGE_PAGE = size_t{1} << 21, ALIGN = 64;
  struct Free {
    void operator()(T* p) const noexcept { free(p); }
  };
  static T* allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
    auto* p = static_cast<char*>(::operator new(bytes, std::align_val_t{ALIGN}));
#ifdef MADV_HUGEPAGE
    if (bytes >= 2 * HUGE_PAGE) {  // advice for the whole pages inside; refusing it does no harm
      char* first = p + (HUGE_PAGE - reinterpret_cast<uintptr_t>(p) % HUGE_PAGE) % HUGE_PAGE;
      madvise(first, static_cast<size_t>(p + bytes - first) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    }
#endif
    return reinterpret_cast<T*>(p);
  }
  std::unique_ptr<T, Free> data_;
};

}  // namespace lw
