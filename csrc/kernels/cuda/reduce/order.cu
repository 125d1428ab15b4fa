// Largest and smallest elements, their indices, and the logical any and all.
#include "kernels/cuda/reduce/reduce_kernel.h"

namespace taeda::cuda {
namespace {

template <class T> using Ordered = std::conditional_t<is_half_type<T>, float, T>;

template <bool Largest, class C> __device__ constexpr C worst() {
  if constexpr (is_float<C>) return static_cast<C>(Largest ? -portable::kInf : portable::kInf);
  else {
    constexpr C lowest = C(-1) > C(0) ? C(0) : static_cast<C>(uint64_t{1} << (sizeof(C) * 8 - 1));
    return Largest ? lowest : static_cast<C>(~lowest);
  }
}

// NaN wins over every number.
template <class T, bool Largest, bool Absolute> struct Extreme {
  static constexpr bool kVectors = kIsCommon<T> && !Absolute;
  using Batch = PlainBatch<Extreme, T>;
  __device__ static void fold(auto& acc, const Batch& batch, int) { acc = merge(acc, batch.acc); }
  using Acc = Ordered<T>;
  __device__ static Acc start() { return Absolute && Largest ? Acc(0) : worst<Largest, Acc>(); }
  __device__ static Acc merge(Acc a, Acc b) { return (Largest ? b > a : b < a) || b != b ? b : a; }
  __device__ static void add(Acc& acc, T x, int64_t) {
    const Acc v = number(x);
    acc = merge(acc, Absolute && v < Acc(0) ? static_cast<Acc>(-v) : v);
  }
  __device__ static void finish(const Results& y, int64_t i, Acc acc) {
    reinterpret_cast<T*>(y.values)[i] = T(acc);
  }
};

// The index of the first of equal extremes.
template <class T, bool Largest> struct Arg {
  static constexpr bool kVectors = kIsCommon<T>;
  struct Acc {
    Ordered<T> value;
    int64_t index;  // negative: nothing seen yet
  };
  using Batch = PlainBatch<Arg, T>;
  __device__ static void fold(Acc& acc, const Batch& batch, int) { acc = merge(acc, batch.acc); }
  __device__ static Acc start() { return {Ordered<T>(0), -1}; }
  __device__ static bool better(const Acc& x, const Acc& than) {
    if (x.index < 0 || than.index < 0) return than.index < 0;
    const bool wins = Largest ? x.value > than.value : x.value < than.value;
    if (wins || (x.value != x.value && than.value == than.value)) return true;
    const bool equal = x.value == than.value || (x.value != x.value && than.value != than.value);
    return equal && x.index < than.index;
  }
  __device__ static Acc merge(Acc a, Acc b) { return better(b, a) ? b : a; }
  // Of one accumulator, with indices that go up: what is equal came later.
  __device__ static void add(Acc& acc, T x, int64_t index) {
    const Ordered<T> v = number(x);
    const bool wins = Largest ? v > acc.value : v < acc.value;
    if (acc.index < 0 || wins || (v != v && acc.value == acc.value)) acc = {v, index};
  }
  __device__ static void finish(const Results& y, int64_t i, Acc acc) {
    reinterpret_cast<int64_t*>(y.second)[i] = acc.index;
    if (y.values) reinterpret_cast<T*>(y.values)[i] = T(acc.value);
  }
};

template <class T, bool All> struct Logical {
  static constexpr bool kVectors = kIsCommon<T>;
  using Acc = uint8_t;
  using Batch = PlainBatch<Logical, T>;
  __device__ static void fold(Acc& acc, const Batch& batch, int) { acc = merge(acc, batch.acc); }
  __device__ static Acc start() { return All; }
  __device__ static Acc merge(Acc a, Acc b) { return All ? a & b : a | b; }
  __device__ static void add(Acc& acc, T x, int64_t) {
    acc = merge(acc, static_cast<Acc>(convert<bool>(x)));
  }
  __device__ static void finish(const Results& y, int64_t i, Acc acc) {
    reinterpret_cast<uint8_t*>(y.values)[i] = acc;
  }
};

}  // namespace

void reduce_order(ReduceOp op, const ReduceInput& x, const ReduceShape& s, const Results& y) {
  visit_real(x.dtype, "reduce", [&]<class E>(Tag<E>) {
    using T = std::conditional_t<same_type<E, bool>, uint8_t, E>;
    switch (op) {
      case ReduceOp::Max: return run_reduce<Extreme<T, true, false>, T>(x, s, y);
      case ReduceOp::Min: return run_reduce<Extreme<T, false, false>, T>(x, s, y);
      case ReduceOp::AbsMax: return run_reduce<Extreme<T, true, true>, T>(x, s, y);
      case ReduceOp::AbsMin: return run_reduce<Extreme<T, false, true>, T>(x, s, y);
      case ReduceOp::Any: return run_reduce<Logical<T, false>, T>(x, s, y);
      case ReduceOp::All: return run_reduce<Logical<T, true>, T>(x, s, y);
      case ReduceOp::ArgMax: return run_reduce<Arg<T, true>, T>(x, s, y);
      default: return run_reduce<Arg<T, false>, T>(x, s, y);
    }
  });
}

}  // namespace taeda::cuda
