// Small<T, N>: an array with a length fixed once, stored inline for up to N items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace taeda {

template <class T, size_t N> class Small {
 public:
  Small() = default;
  explicit Small(size_t n) { reset(n); }
  void reset(size_t n) {  // of an empty one
    size_ = static_cast<uint32_t>(n);
    if (n > N) heap_ = std::make_unique<T[]>(n);
  }
  Small(Small&& o) noexcept { *this = std::move(o); }
  Small& operator=(Small&& o) noexcept {
    heap_ = std::move(o.heap_);
    for (size_t i = 0; i < N; ++i) inline_[i] = std::move(o.inline_[i]);
    size_ = std::exchange(o.size_, 0);
    return *this;
  }

  size_t size() const { return size_; }
  T* data() { return size_ > N ? heap_.get() : inline_; }
  const T* data() const { return size_ > N ? heap_.get() : inline_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  operator std::span<T>() { return {data(), size_}; }
  operator std::span<const T>() const { return {data(), size_}; }

 private:
  std::unique_ptr<T[]> heap_;
  uint32_t size_ = 0;
  T inline_[N];
};

}  // namespace taeda
