// Dims: a short list of int64 (sizes, strides, dimensions) that needs no heap up to six entries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>

namespace taeda {

using DimsRef = std::span<const int64_t>;

constexpr size_t kMostDims = 64;  // of a tensor; functions that visit them recurse

inline bool same(DimsRef a, DimsRef b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

class Dims {
 public:
  static constexpr size_t kInline = 6;

  Dims() = default;
  explicit Dims(size_t n, int64_t v = 0) {
    resize_uninit(n);
    std::fill_n(data(), n, v);
  }
  Dims(std::initializer_list<int64_t> l) { assign(l.begin(), l.size()); }
  Dims(DimsRef s) { assign(s.data(), s.size()); }
  Dims(const Dims& o) { copy(o); }
  Dims(Dims&& o) noexcept { steal(o); }
  ~Dims() {
    if (capacity_ > kInline) delete[] heap_;
  }
  Dims& operator=(const Dims& o) {
    if (this != &o) copy(o);
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) {
      if (capacity_ > kInline) delete[] heap_;
      capacity_ = kInline;
      steal(o);
    }
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t* data() { return capacity_ > kInline ? heap_ : inline_; }
  const int64_t* data() const { return capacity_ > kInline ? heap_ : inline_; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + size_; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + size_; }
  int64_t& operator[](size_t i) { return data()[i]; }
  int64_t operator[](size_t i) const { return data()[i]; }
  int64_t& back() { return data()[size_ - 1]; }
  int64_t back() const { return data()[size_ - 1]; }
  operator DimsRef() const { return {data(), size_}; }

  void push_back(int64_t v) {
    if (size_ == capacity_) reserve(capacity_ * 2);
    data()[size_++] = v;
  }
  void pop_back() { --size_; }
  void insert(size_t at, int64_t v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void resize(size_t n, int64_t v = 0) {
    size_t old = size_;
    resize_uninit(n);
    if (n > old) std::fill(data() + old, data() + n, v);
  }
  void clear() { size_ = 0; }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    auto* p = new int64_t[n];
    std::copy_n(data(), size_, p);
    if (capacity_ > kInline) delete[] heap_;
    heap_ = p;
    capacity_ = static_cast<uint32_t>(n);
  }
  void assign(const int64_t* p, size_t n) {
    resize_uninit(n);
    int64_t* to = data();
    for (size_t i = 0; i < n; ++i) to[i] = p[i];  // too few to be worth a call of memmove
  }
  friend bool operator==(const Dims& a, const Dims& b) { return same(a, b); }

 private:
  void copy(const Dims& o) {
    if (capacity_ > kInline || o.capacity_ > kInline) return assign(o.data(), o.size_);
    std::memcpy(inline_, o.inline_, sizeof inline_);  // a fixed number of bytes: three moves
    size_ = o.size_;
  }
  void resize_uninit(size_t n) {
    reserve(n);
    size_ = static_cast<uint32_t>(n);
  }
  void steal(Dims& o) noexcept {
    size_ = o.size_;
    if (o.capacity_ > kInline) {
      heap_ = o.heap_;
      capacity_ = o.capacity_;
      o.capacity_ = kInline;
    } else {
      std::memcpy(inline_, o.inline_, sizeof inline_);
    }
    o.size_ = 0;
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  union {
    int64_t inline_[kInline] = {};
    int64_t* heap_;
  };
};

// "[2, 3]", as in messages. Formatted only when the message is: check() evaluates its arguments
// eagerly.
struct DimsText {
  DimsRef dims;
  std::string text() const;
  operator std::string() const { return text(); }
};
inline DimsText to_string(DimsRef d) { return {d}; }
inline std::string operator+(const std::string& s, DimsText d) { return s + d.text(); }
inline std::string operator+(DimsText d, const std::string& s) { return d.text() + s; }
std::ostream& operator<<(std::ostream& s, DimsText d);
inline std::ostream& operator<<(std::ostream& s, const Dims& d) { return s << to_string(d); }

}  // namespace taeda
