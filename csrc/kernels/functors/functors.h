// Functors: what each pointwise operation computes, written once for every dtype, instruction set
// and derivative.
//
//   struct Tanh {
//     static constexpr OpInfo info{"tanh", "The hyperbolic tangent.", Analytic, saves_output};
//     template <class T> FN static T f(T x) { return tanh(x); }
//     template <class T> FN static T da(T g, T, T y) { return g * (T(1) - y * conj(y)); }
//   };
//
// `f` takes the operands and gives the value. `da`, `db` and `dc` take the gradient of the result,
// all operands and the result, and give the gradient of the first, second and third operand. T is a
// number in kernels, and a Tensor where a derivative has to be differentiable itself. A new
// operation needs this struct and its name in the List below it.
#pragma once

#include "kernels/functors/complex.h"
#include "kernels/functors/elementary.h"

namespace taeda {
#if defined(__CUDACC__) || defined(TAEDA_HOST_SHIM)
// Kernels of a GPU go on: nobody waits for them to learn of it.
FN void division_by_zero() {}
#else
// Integer division by zero, found inside a kernel. Never inlined, defined outside of the kernels.
[[noreturn]] void division_by_zero();
#endif
}  // namespace taeda

namespace taeda::TAEDA_ISA {

// The dtypes that an operation computes in, and what it makes of the others.
enum DTypeClass : uint32_t {
  kBools = 1,
  kInts = 2,
  kFloats = 4,  // float16 and bfloat16 are computed in float32
  kComplexes = 8,
  kToFloat = 16,  // integers and bools become the default dtype first

  Numeric = kBools | kInts | kFloats | kComplexes,
  Arithmetic = kInts | kFloats | kComplexes,  // no bools
  Ordered = kBools | kInts | kFloats,
  Real = kInts | kFloats,
  Integral = kBools | kInts,
  Integers = kInts,
  FloatOnly = kFloats,
  FloatComplex = kFloats | kComplexes,
  Floating = kFloats | kToFloat,
  Analytic = kFloats | kComplexes | kToFloat,
};

enum OpFlag : uint32_t {
  // What the derivatives read.
  saves_self = 1,
  saves_other = 2,
  saves_third = 4,
  saves_fourth = 8,
  saves_output = 16,
  saves_inputs = 3,
  // Forms that it does not have.
  no_inplace = 32,
  no_out = 64,
  no_method = 128,
  internal = 256,  // one case of a public operation, chosen in ops/pointwise/cases.cpp
  // Scalar arguments take part in type promotion (as Python numbers do); otherwise they are cast.
  scalars_promote = 512,
  // Each operand is read for the gradients of the others alone.
  saved_for_others = 1024,
  // The same bits come of signed and of unsigned integers.
  wraps = 2048,
  // Arithmetic takes longer than memory, in `f`, or in `f` and the derivatives. Non-temporal stores
  // gain beside it if they are a few lines at a time, for which `f` of one operand has a loop.
  // Other
  // large results are stored through the caches, and those of `slow` functors, which take many
  // times as long; large values not where `is_streamed_beside_arithmetic` (cpu/common/stream.h).
  heavy_value = 4096,
  heavy_derivatives = 8192,
  heavy = heavy_value | heavy_derivatives,
  slow = 16384,
  // What ops/core/traits.h says of an op by the same names.
  inplace_function = 1 << 15,
  foreach = 1 << 16,
  keeps_zero = 1 << 17,
  numbers_anywhere = 1 << 18,
  numbers_one_tensor = 1 << 19,
  numbers_after_self = 1 << 20,
  float32_on_cuda = 1 << 21,
  widest_on_cuda = 1 << 22,
  exact_out = 1 << 23,  // OutDtype::Exact
  function_only = no_method | no_out,
};

struct OpInfo {
  const char*
      schema;  // a name, or a name with its arguments: "elu(self: Tensor, alpha: Scalar = 1.0)"
  const char* doc;
  uint32_t dtypes;
  uint32_t flags = 0;
  const char* module = "";
  const char* no_bool = nullptr;  // the message where a bool is given and not supported
  const char* old_orders = "";    // see ops/core/traits.h
};

template <class... Ops> struct List {
  static constexpr int size = sizeof...(Ops);
};

template <class... A> inline constexpr bool first_is_bool = false;
template <class... A> inline constexpr bool first_is_bool<bool, A...> = true;
template <class F> struct Signature;
template <class R, class... A> struct Signature<R (*)(A...)> {
  static constexpr int arity = sizeof...(A);
  static constexpr bool bool_first = first_is_bool<A...>;
};
template <class Op> inline constexpr int arity = Signature<decltype(&Op::template f<float>)>::arity;

// By the type of the address: nvcc takes the address alone for an error.
template <class Op>
concept HasDa = requires { typename Signature<decltype(&Op::template da<float>)>; };
template <class Op>
concept HasDb = requires { typename Signature<decltype(&Op::template db<float>)>; };
template <class Op>
concept HasDc = requires { typename Signature<decltype(&Op::template dc<float>)>; };

inline constexpr const char* kNnFunctional = "nn.functional";
inline constexpr const char* kSpecial = "special";

}  // namespace taeda::TAEDA_ISA
