#include "kernels/resample.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/nn/simd/resample.h"
#include "kernels/cpu/nn/taps.h"
#include "kernels/resample_taps.h"

namespace taeda::cpu {
namespace {

template <class T> const auto& resample_loops() { return typed<T>(TAEDA_PICK(resample_kernels)); }

constexpr int64_t kResampleGrain = 16384;  // sums that are worth a thread's attention

template <class T> simd::TapTable<T> table_of(const Taps<T>& taps) {
  return {taps.in,
          taps.out,
          taps.first.data(),
          taps.index.data(),
          taps.weight.data(),
          taps.each,
          taps.each_index.data(),
          taps.each_weight.data()};
}

}  // namespace

// The same taps once more, tap by tap, where every output has as many.
template <class T> void Taps<T>::arrange() {
  const int64_t count = out ? first[1] : 0;
  if (count != 1 && count != 2 && count != 4) return;
  for (int64_t i = 0; i <= out; ++i) {
    if (first[static_cast<size_t>(i)] != i * count) return;
  }
  each = count;
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t i = 0; i < out; ++i) {
      each_index.push_back(index[static_cast<size_t>(i * count + t)]);
      each_weight.push_back(weight[static_cast<size_t>(i * count + t)]);
    }
  }
}

template <class T> Taps<T> Taps<T>::make(const ResampleShape& s, int d) {
  Taps<T> taps;
  taps.in = s.in[d];
  taps.out = s.out[d];
  for (int64_t i = 0; i < taps.out; ++i) {
    taps.first.push_back(std::ssize(taps.index));
    for_each_tap<T>(s, d, i, [&](int64_t input, T weight) {
      taps.index.push_back(static_cast<int32_t>(input));
      taps.weight.push_back(weight);
    });
  }
  taps.first.push_back(std::ssize(taps.index));
  taps.arrange();
  return taps;
}

template <class T> Taps<T> Taps<T>::transposed() const {
  // Where the taps of each input begin, then one output after the other.
  std::vector<int64_t> next(static_cast<size_t>(in) + 1);
  for (int32_t i : index) ++next[static_cast<size_t>(i) + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  Taps<T> back;
  back.in = out;
  back.out = in;
  back.first = next;
  back.index.resize(index.size());
  back.weight.resize(index.size());
  for (size_t i = 0; i + 1 < first.size(); ++i) {
    for (auto t = static_cast<size_t>(first[i]); t < static_cast<size_t>(first[i + 1]); ++t) {
      const auto to = static_cast<size_t>(next[static_cast<size_t>(index[t])]++);
      back.index[to] = static_cast<int32_t>(i);
      back.weight[to] = weight[t];
    }
  }
  return back;
}

template <class T> void Taps<T>::apply(int64_t before, int64_t after, const T* x, T* y) const {
  const auto table = table_of(*this);
  const bool lines = after == 1;
  const int64_t work = lines ? out : after;
  parallel_for(lines ? before : before * out, kResampleGrain / std::max<int64_t>(work, 1),
               [&](int64_t begin, int64_t end) {
                 if (lines) resample_loops<T>().lines(table, begin, end, x, y);
                 else resample_loops<T>().rows(table, begin, end, after, x, y);
               });
}

template <class T>
void Taps<T>::multiply(int64_t after, const T* x, const T* g, T* products) const {
  const auto table = table_of(*this);
  parallel_for(out, kResampleGrain / after, [&](int64_t begin, int64_t end) {
    resample_loops<T>().products(table, begin, end, after, x, g, products);
  });
}

template struct Taps<float>;
template struct Taps<double>;

namespace {

// One dimension after the other.
template <class T>
void apply_all(int64_t outer, const std::vector<Taps<T>>& dims, int64_t inner, const T* x, T* y) {
  if (dims.size() == 1) return dims[0].apply(outer, inner, x, y);  // all planes at once
  // Dimensions that shrink come first, and those that grow begin with the innermost: so most sums
  // are made of whole rows.
  std::vector<size_t> order;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].out < dims[d].in) order.push_back(d);
  }
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d].out >= dims[d].in) order.push_back(d);
  }
  int64_t plane_in = inner, plane_out = inner, largest = 0;
  for (const auto& t : dims) {
    plane_in *= t.in;
    plane_out *= t.out;
  }
  int64_t size = plane_in;
  for (size_t d : order) {
    size = size / dims[d].in * dims[d].out;
    largest = std::max(largest, size);
  }
  auto planes = [&](int64_t begin, int64_t end) {
    const Scratch<T> between(2 * largest);
    for (int64_t p = begin; p < end; ++p) {
      const T* from = x + p * plane_in;
      std::vector<int64_t> sizes;
      for (const auto& t : dims) sizes.push_back(t.in);
      for (size_t s = 0; s < order.size(); ++s) {
        const size_t d = order[s];
        int64_t before = 1, after = inner;
        for (size_t i = 0; i < d; ++i) before *= sizes[i];
        for (size_t i = d + 1; i < dims.size(); ++i) after *= sizes[i];
        T* to = s + 1 == order.size() ? y + p * plane_out
                                      : between.data() + static_cast<int64_t>(s % 2) * largest;
        dims[d].apply(before, after, from, to);
        sizes[d] = dims[d].out;
        from = to;
      }
    }
  };
  if (outer < 16) planes(0, outer);
  else parallel_for(outer, kResampleGrain / std::max<int64_t>(largest, 1), planes);
}

template <class T> void resample(const ResampleShape& s, const T* x, T* y) {
  std::vector<Taps<T>> dims;
  for (int d = 0; d < s.spatial; ++d) dims.push_back(Taps<T>::make(s, d));
  apply_all(s.outer, dims, s.inner, x, y);
}

template <class T> void resample_backward(const ResampleShape& s, const T* gy, T* gx) {
  std::vector<Taps<T>> dims;
  for (int d = 0; d < s.spatial; ++d) dims.push_back(Taps<T>::make(s, d).transposed());
  apply_all(s.outer, dims, s.inner, gy, gx);
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(ResampleKernels, cpu::resample<T>, cpu::resample_backward<T>)
