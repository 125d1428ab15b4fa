// Pointwise loops, and casts between dtypes.
#include "kernels/cpu/pointwise/pointwise.h"

#include "kernels.h"
#include "kernels/functors/activation.h"
#include "kernels/functors/rounding.h"
#include "ops/pointwise/pointwise.h"

namespace taeda::test {
namespace {

using namespace portable;

template <class Op, class T, class Ops>
Kernel unary(const std::string& name, const Loops* loops, Ops ops, double (*f)(double), Options o) {
  constexpr auto dtype = std::is_same_v<T, float> ? DType::Float32 : DType::Float64;
  const Loop loop = loops[position<Op>(ops)].f[static_cast<int>(dtype)];
  if (sizeof(T) == 8) o.tolerance = 1e-13;
  return Map<T, T>::kernel(
      name,
      [loop](const T* x, int64_t n, T* y) {
        const void* in[] = {x};
        loop(y, in, n);
      },
      each(f), o);
}

// x op x reversed
template <class Op, class T>
Kernel binary(const std::string& name, const Loops* loops, double (*f)(double, double)) {
  constexpr auto dtype = std::is_same_v<T, float>    ? DType::Float32
                         : std::is_same_v<T, double> ? DType::Float64
                                                     : DType::Int32;
  const Loop loop = loops[position<Op>(ArithmeticOps{})].f[static_cast<int>(dtype)];
  return Map<T, T>::kernel(
      name,
      [loop](const T* x, int64_t n, T* y) {
        const void* in[] = {x, x + n / 2};
        loop(y, in, n / 2);
      },
      [f](const Numbers& x) {
        Numbers y;
        for (size_t i = 0; i < x.size() / 2; ++i) y.push_back(f(x[i], x[x.size() / 2 + i]));
        return y;
      },
      {.low = -100, .high = 100});
}

template <class T>
void add_loops(std::vector<Kernel>& list, const std::string& of, const LoopTable& t) {
  const Options any, positive{.low = 0.01, .high = 100};
  list.push_back(
      binary<Add, T>("add " + of, *t.arithmetic, [](double a, double b) { return a + b; }));
  list.push_back(
      binary<Mul, T>("mul " + of, *t.arithmetic, [](double a, double b) { return a * b; }));
  if constexpr (std::is_floating_point_v<T>) {
    list.push_back(
        binary<Div, T>("div " + of, *t.arithmetic, [](double a, double b) { return a / b; }));
    const auto math = MathOps{};
    list.push_back(unary<Exp, T>("exp " + of, *t.math, math, std::exp, any));
    list.push_back(unary<Log, T>("log " + of, *t.math, math, std::log, positive));
    list.push_back(unary<Sin, T>("sin " + of, *t.math, math, std::sin, any));
    list.push_back(unary<Tanh, T>("tanh " + of, *t.math, math, std::tanh, any));
    list.push_back(unary<Sigmoid, T>(
        "sigmoid " + of, *t.special, SpecialOps{}, [](double v) { return 1 / (1 + std::exp(-v)); },
        any));
    list.push_back(unary<Erf, T>("erf " + of, *t.special, SpecialOps{}, std::erf, any));
    list.push_back(unary<Relu, T>(
        "relu " + of, *t.activation, ActivationOps{}, [](double v) { return v < 0 ? 0 : v; }, any));
    list.push_back(
        unary<Neg, T>("neg " + of, *t.rounding, RoundingOps{}, [](double v) { return -v; }, any));
    list.push_back(unary<Abs, T>(
        "abs " + of, *t.rounding, RoundingOps{}, [](double v) { return std::abs(v); }, any));
  }
}

template <class From, class To>
Kernel cast(const std::string& name, const LoopTable& t, DType from, DType to, Options o = {}) {
  const Cast cast = t.cast[static_cast<int>(to)][static_cast<int>(from)];
  return Map<From, To>::kernel(
      name,
      [cast](const From* x, int64_t n, To* y) {
        cast(reinterpret_cast<char*>(y), sizeof(To), 0, reinterpret_cast<const char*>(x),
             sizeof(From), 0, n, 1);
      },
      each([](double v) { return static_cast<double>(static_cast<To>(static_cast<From>(v))); }), o);
}

std::vector<Kernel> pointwise() {
  std::vector<Kernel> list;
  const Options whole{.low = -100, .high = 100, .specials = false};
  for (const auto& [set, table] : TAEDA_SETS(cpu::simd, loop_table)) {
    add_loops<float>(list, "float32 " + set, *table);
    add_loops<double>(list, "float64 " + set, *table);
    add_loops<int32_t>(list, "int32 " + set, *table);
    using enum DType;
    list.push_back(cast<float, double>("cast f32-f64 " + set, *table, Float32, Float64));
    list.push_back(cast<double, float>("cast f64-f32 " + set, *table, Float64, Float32));
    list.push_back(cast<float, int32_t>("cast f32-i32 " + set, *table, Float32, Int32, whole));
    list.push_back(cast<float, int8_t>("cast f32-i8 " + set, *table, Float32, Int8, whole));
    list.push_back(cast<int64_t, float>("cast i64-f32 " + set, *table, Int64, Float32, whole));
    list.push_back(cast<int8_t, int64_t>("cast i8-i64 " + set, *table, Int8, Int64, whole));
  }
  return list;
}

const RegisterFamily family("pointwise", pointwise);

}  // namespace
}  // namespace taeda::test
