// An array that is appended to and never held twice: realloc moves large blocks by remapping their pages.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

namespace lw {

template <typename T>
class Growing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  int64_t size() const { return size_; }
  void append(const T* values, int64_t n) {
    if (n == 0) return;
    if (size_ + n > capacity_) grow(size_ + n + size_ / 4);
    std::memcpy(data_.get() + size_, values, static_cast<size_t>(n) * sizeof(T));
    size_ += n;
  }
  T* release() {
    if (!data_) grow(1);
    return data_.release();
  }
  static void free(void* p) noexcept { std::free(p); }

 private:
  struct Free {
    void operator()(T* p) const noexcept { std::free(p); }
  };
  void grow(int64_t capacity) {
    void* larger = std::realloc(data_.get(), static_cast<size_t>(capacity) * sizeof(T));
    if (!larger) throw std::bad_alloc();
    (void)data_.release();
    data_.reset(static_cast<T*>(larger));
    capacity_ = capacity;
  }
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0, capacity_ = 0;
};

}  // namespace lw
