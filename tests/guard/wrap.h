// Tables of kernels for the guard device: each of the CPU's, put in a queue with copies of its
// arguments.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/ctc.h"
#include "kernels/device_plugin.h"
#include "kernels/join.h"
#include "kernels/optim.h"
#include "kernels/pointwise.h"
#include "kernels/reduce.h"
#include "kernels/rnn.h"
#include "kernels/scatter.h"
#include "tensor/plan.h"

namespace guard {

using namespace taeda;

// What the device does with a kernel: later, or before it returns.
void enqueue(std::function<void()> work);
void run_now(const std::function<void()>& work);

// An Error where `p` is neither null nor in the device's memory.
void must_be_ours(const void* p);

inline const DeviceHost* host;

// The device's memory that an argument refers to.
template <class A> void check_memory(const A& a) {
  if constexpr (std::is_pointer_v<A>) must_be_ours(a);
  else if constexpr (requires {
                       a.trans;
                       a.stride;
                     })
    must_be_ours(a.data);  // MatrixRef
  else if constexpr (requires {
                       a.batch;
                       a.head;
                     })
    must_be_ours(a.data);  // attention
}
template <> inline void check_memory(int64_t* const* const&) {}
template <> inline void check_memory(const ContiguousInputs&) {}
template <> inline void check_memory(const ReduceInput& a) { must_be_ours(a.data); }
template <> inline void check_memory(const ReduceResults& a) {
  must_be_ours(a.values);
  must_be_ours(a.second);
}
template <> inline void check_memory(const IndexLayout& a) { must_be_ours(a.offsets); }
template <> inline void check_memory(const ScatterLayout& a) { must_be_ours(a.index); }
template <> inline void check_memory(const CtcShape& a) { must_be_ours(a.targets); }
template <> inline void check_memory(const Plan& a) {
  for (int k = 0; k < a.count; ++k) must_be_ours(a.data[k]);
}
template <> inline void check_memory(const std::span<const JoinPiece>& a) {
  for (const JoinPiece& piece : a) must_be_ours(piece.data);
}
template <> inline void check_memory(const std::span<const OptimUpdate>& a) {
  for (const OptimUpdate& update : a) {
    for (const void* data : update.data) must_be_ours(data);
  }
}

// An argument for later: a copy of it and of the host memory that it refers to.
template <class T> struct Kept {
  T value;
  explicit Kept(const T& v) : value(v) {}
  const T& get() const { return value; }
};
template <class T> struct Kept<std::span<const T>> {
  std::vector<T> value;
  explicit Kept(std::span<const T> v) : value(v.begin(), v.end()) {}
  std::span<const T> get() const { return value; }
};
template <> struct Kept<ReduceInput> {
  ReduceInput value;
  Dims sizes, strides;
  explicit Kept(const ReduceInput& v) : value(v), sizes(v.sizes), strides(v.strides) {}
  ReduceInput get() const { return {value.data, value.dtype, sizes, strides, value.reduced}; }
};
template <> struct Kept<CtcShape> {
  CtcShape value;
  Dims begin, lengths, inputs;
  explicit Kept(const CtcShape& v)
      : value(v),
        begin(of(v.target_begin)),
        lengths(of(v.target_lengths)),
        inputs(of(v.input_lengths)) {}
  Dims of(const int64_t* list) const { return DimsRef(list, static_cast<size_t>(value.batch)); }
  CtcShape get() const {
    CtcShape s = value;
    s.target_begin = begin.data();
    s.target_lengths = lengths.data();
    s.input_lengths = inputs.data();
    return s;
  }
};
template <> struct Kept<RnnShape> {
  RnnShape value;
  Dims sizes, offsets;
  explicit Kept(const RnnShape& v) : value(v), sizes(of(v.sizes)), offsets(of(v.offsets)) {}
  Dims of(const int64_t* list) const { return DimsRef(list, static_cast<size_t>(value.steps)); }
  RnnShape get() const {
    RnnShape s = value;
    s.sizes = sizes.data();
    s.offsets = offsets.data();
    return s;
  }
};

// Results, and lists whose lengths only the kernel knows, are wanted at once; so is a random
// engine's next state.
template <class A>
concept Immediate = std::is_same_v<A, int64_t* const*> ||
                    (std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>);

// References to the members of a table: pointers to kernels, and a bool at most.
template <class K> auto members(K& k) {
  constexpr size_t n = sizeof(K) / sizeof(KernelFn<void()>);
  if constexpr (n == 1) {
    auto& [a] = k;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = k;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = k;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = k;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = k;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = k;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = k;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = k;
    return std::tie(a, b, c, d, e, f, g, h);
  } else {
    static_assert(n == 13, "add a case for a table of this size");
    auto& [a, b, c, d, e, f, g, h, i, j, l, m, o] = k;
    return std::tie(a, b, c, d, e, f, g, h, i, j, l, m, o);
  }
}

// Kernel number I of table K.
template <class K, size_t I, class Function> struct Guarded;
template <class K, size_t I, class R, class... A> struct Guarded<K, I, KernelFn<R(A...)>> {
  static R call(A... a) {
    (check_memory<std::remove_cvref_t<A>>(a), ...);
    const auto kernel = std::get<I>(members(host->cpu<K>())).get();
    if constexpr (!std::is_void_v<R>) {
      R result{};
      run_now([&] { result = kernel(std::forward<A>(a)...); });
      return result;
    } else if constexpr ((Immediate<A> || ...)) {
      run_now([&] { kernel(std::forward<A>(a)...); });
    } else {
      enqueue([kernel, kept = std::tuple(Kept<std::decay_t<A>>(a)...)] {
        std::apply([kernel](const auto&... k) { kernel(k.get()...); }, kept);
      });
    }
  }
};

template <class K> const K& guarded() {
  static const K table = [] {
    K made{};
    const auto ours = members(made);
    const auto theirs = members(host->cpu<K>());
    const auto fill = [&]<size_t... I>(std::index_sequence<I...>) {
      const auto one = [&]<size_t J>() {
        using Member = std::remove_cvref_t<decltype(std::get<J>(ours))>;
        if constexpr (std::is_same_v<Member, bool>) std::get<J>(ours) = std::get<J>(theirs);
        else if (std::get<J>(theirs)) std::get<J>(ours) = Guarded<K, J, Member>::call;
      };
      (one.template operator()<I>(), ...);
    };
    fill(std::make_index_sequence<std::tuple_size_v<decltype(members(made))>>());
    return made;
  }();
  return table;
}

}  // namespace guard
