// Value: one argument or result of an op, of any type.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace taeda {

class Engine;  // base/random.h

// A random stream shared by reference; made by Python's Generator or the process-wide default.
struct GeneratorImpl;
struct Generator {
  std::shared_ptr<GeneratorImpl> impl;
};

using TensorList = std::vector<Tensor>;
using Value =
    std::variant<std::monostate, Tensor, TensorList, Scalar, int64_t, double, bool, Dims, DType,
                 Device, MemoryFormat, std::string, Generator, std::vector<double>>;

inline bool is_none(const Value& v) { return v.index() == 0; }

// std::variant copies and destroys its value through a table of functions. Nearly all arguments are
// tensors or plain numbers, so the hot paths test for those first.
template <class... T> constexpr uint32_t trivial_alternatives(const std::variant<T...>*) {
  uint32_t mask = 0, bit = 1;
  ((mask |= std::is_trivially_destructible_v<T> ? bit : 0, bit <<= 1), ...);
  return mask;
}
inline bool is_trivial(const Value& v) {
  return trivial_alternatives(static_cast<const Value*>(nullptr)) >> v.index() & 1;
}
inline void destroy_value(Value& v) {
  if (auto* t = std::get_if<Tensor>(&v)) std::destroy_at(t);
  else if (!is_trivial(v)) std::destroy_at(&v);
}
// Constructs a value in memory that holds none, or a trivial one.
inline void construct_value(Value* at, const Value& v) {
  if (is_none(v)) std::construct_at(at);
  else if (auto* s = std::get_if<Scalar>(&v)) std::construct_at(at, *s);
  else if (auto* t = std::get_if<Tensor>(&v)) std::construct_at(at, *t);
  else std::construct_at(at, v);
}

// The same, moving the value.
inline void move_value(Value* at, Value& v) {
  if (auto* t = std::get_if<Tensor>(&v)) std::construct_at(at, std::move(*t));
  else if (is_trivial(v)) construct_value(at, v);
  else std::construct_at(at, std::move(v));
}

// An op's arguments on the stack; only as many are constructed as the op has.
class Values {
 public:
  static constexpr size_t kMax = 24;

  explicit Values(size_t n) : n_(n) {
    // No parentheses: they would zero the memory of each first.
    for (size_t i = 0; i < n; ++i) ::new (data() + i) Value;
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  ~Values() {
    for (Value& v : span()) destroy_value(v);
  }

  Value& operator[](size_t i) { return data()[i]; }
  std::span<Value> span() { return {data(), n_}; }

 private:
  Value* data() { return reinterpret_cast<Value*>(raw_); }

  size_t n_;
  alignas(Value) unsigned char raw_[kMax * sizeof(Value)];
};

extern const Tensor kNoTensor;

// Value -> C++ parameter. std::optional<T> takes None; None becomes an undefined Tensor.
template <class T> struct Unpack {
  static const T& get(const Value& v) { return std::get<T>(v); }
};
template <> struct Unpack<Tensor> {
  static const Tensor& get(const Value& v) {
    auto* t = std::get_if<Tensor>(&v);
    return t ? *t : kNoTensor;
  }
};
template <class T> struct Unpack<std::optional<T>> {
  static std::optional<T> get(const Value& v) {
    if (is_none(v)) return std::nullopt;
    return Unpack<T>::get(v);
  }
};
template <> struct Unpack<DimsRef> {
  static DimsRef get(const Value& v) { return std::get<Dims>(v); }
};

// C++ argument -> Value, for op<"name">(...) calls.
inline Value pack(const Tensor& t) { return t.defined() ? Value(t) : Value(); }
inline Value pack(TensorList l) { return Value(std::move(l)); }
inline Value pack(Scalar s) { return s; }
inline Value pack(bool b) { return b; }
inline Value pack(int i) { return int64_t(i); }
inline Value pack(int64_t i) { return i; }
inline Value pack(double d) { return d; }
inline Value pack(DType d) { return d; }
inline Value pack(Device d) { return d; }
inline Value pack(MemoryFormat m) { return m; }
inline Value pack(const char* s) { return std::string(s); }
inline Value pack(std::string s) { return s; }
inline Value pack(const Dims& d) { return d; }
inline Value pack(Dims&& d) { return std::move(d); }
inline Value pack(DimsRef d) { return Dims(d); }
inline Value pack(std::initializer_list<int64_t> d) { return Dims(d); }
inline Value pack(Generator g) { return g; }
inline Value pack(std::nullopt_t) { return {}; }
inline Value pack(Value v) { return v; }
template <class T> Value pack(const std::optional<T>& o) { return o ? pack(*o) : Value(); }

}  // namespace taeda
