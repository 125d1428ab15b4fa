// Sums of functions of elements, products, and moments. Floats add up as doubles, integers as
// int64.
#include "kernels/cuda/common/moments.h"
#include "kernels/cuda/reduce/reduce_kernel.h"
#include "kernels/functors/functors.h"
#include "kernels/functors/reduction.h"

namespace taeda::cuda {
namespace {

template <class T> using Wide = std::conditional_t<is_float<T> || is_half_type<T>, double, int64_t>;

template <class A> __device__ A wrapping_product(A a, A b) {
  if constexpr (is_float<A>) return a * b;
  else return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class A> __device__ A wrapping_sum(A a, A b) {
  if constexpr (is_float<A>) return a + b;
  else return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class A> __device__ void finish_sum(const Results& y, int64_t i, A acc) {
  if (y.divisor == 1 && y.root == 1) store_result(y, i, acc);
  else store_result(y, i, root_of(static_cast<double>(acc) / y.divisor, y.root));
}

// What some dozens of terms add up in.
template <class T>
using Few = std::conditional_t<is_half_type<T>, float,
                               std::conditional_t<is_integer<T> && (sizeof(T) < 4), int32_t,
                                                  std::conditional_t<is_float<T>, T, int64_t>>>;

template <class F, class T> struct SumOf {
  static constexpr bool kVectors = kIsCommon<T>;
  using Acc = Wide<T>;
  struct Batch {
    Few<T> sum = 0;
    __device__ void begin(T) {}
    __device__ __forceinline__ void add(T x, int64_t) {
      sum = wrapping_sum(sum, F::template f<Few<T>>(convert<Few<T>>(number(x))));
    }
  };
  __device__ static void fold(Acc& acc, const Batch& batch, int) {
    acc = merge(acc, static_cast<Acc>(batch.sum));
  }
  __device__ static Acc start() { return 0; }
  __device__ static Acc merge(Acc a, Acc b) { return wrapping_sum(a, b); }
  __device__ static void add(Acc& acc, T x, int64_t) {
    acc = merge(acc, F::template f<Acc>(convert<Acc>(x)));
  }
  __device__ static void finish(const Results& y, int64_t i, Acc acc) { finish_sum(y, i, acc); }
};

template <class T> struct Product {
  static constexpr bool kVectors = false;
  using Batch = PlainBatch<Product, T>;
  __device__ static void fold(auto& acc, const Batch& batch, int) { acc = merge(acc, batch.acc); }
  using Acc = Wide<T>;
  __device__ static Acc start() { return 1; }
  __device__ static Acc merge(Acc a, Acc b) { return wrapping_product(a, b); }
  __device__ static void add(Acc& acc, T x, int64_t) { acc = merge(acc, convert<Acc>(x)); }
  __device__ static void finish(const Results& y, int64_t i, Acc acc) { finish_sum(y, i, acc); }
};

template <class T> struct MomentsOf {
  static constexpr bool kVectors = true;
  using Acc = Moments;
  struct Batch : MomentBatch<Number<T>> {
    __device__ void begin(T x) { this->first = number(x); }
    __device__ __forceinline__ void add(T x, int64_t) { MomentBatch<Number<T>>::add(number(x)); }
  };
  __device__ static Acc start() { return {0, 0, 0}; }
  __device__ static Acc merge(Acc a, Acc b) { return merged(a, b); }
  __device__ static void fold(Acc& acc, const Batch& batch, int count) {
    acc = merged(acc, batch.moments(count));
  }
  __device__ static void add(Acc& acc, T x, int64_t) {
    acc = merged(acc, {1, static_cast<double>(number(x)), 0});
  }
  __device__ static void finish(const Results& y, int64_t i, Acc acc) {
    store_result(y, i, root_of((acc.m2 < 0 ? 0 : acc.m2) / y.divisor, y.root));
    if (!y.second) return;
    const Results means{y.dtype, y.second, nullptr, 1, 1};
    store_result(means, i, acc.count > 0 ? acc.mean : portable::kNan);
  }
};

struct Arguments {
  ReduceOp op;
  const ReduceInput& x;
  const ReduceShape& s;
  const Results& y;
};

template <class T, class... F> bool run_sum(const Arguments& a, portable::List<F...>) {
  const auto run = [&]<class One>(Tag<One>) {
    if constexpr ((is_float<T> || is_half_type<T>) || (One::dtypes & portable::kInts) != 0) {
      if (a.op != portable::sum_of<One>) return false;
      run_reduce<SumOf<One, T>, T>(a.x, a.s, a.y);
      return true;
    }
    return false;
  };
  return (run(Tag<F>()) || ...);
}

}  // namespace

void reduce_sum(ReduceOp op, const ReduceInput& x, const ReduceShape& s, const Results& y) {
  // The sum of bools, too, is how many there are.
  if (x.dtype == DType::Bool && op != ReduceOp::Prod)
    return run_reduce<SumOf<portable::CountNonzero, uint8_t>, uint8_t>(x, s, y);
  visit_real(x.dtype, "sum", [&]<class T>(Tag<T>) {
    if (op == ReduceOp::Prod) return run_reduce<Product<T>, T>(x, s, y);
    if (op == ReduceOp::Moments) {
      if constexpr (is_float<T> || is_half_type<T>) return run_reduce<MomentsOf<T>, T>(x, s, y);
    } else if constexpr (same_type<T, bool>) {
    } else if (run_sum<T>({op, x, s, y}, portable::SumOps{})) {
      return;
    }
    missing_kernel();
  });
}

}  // namespace taeda::cuda
