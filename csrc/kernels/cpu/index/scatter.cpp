#include "kernels/scatter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/thread_pool.h"
#include "kernels/cpu/common/sizes.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/index/simd/combine.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kGrain = 16384;

// One dimension: its size, and the strides of the index, of the indexed array (the target) and of
// the dense one (the other).
struct Axis {
  int64_t n = 1, index = 0, target = 0, other = 0;
};

// The dimensions of one call: `dim`, along which the index counts, the last one where that is
// another, and all others, merged where they lie contiguously.
struct Axes {
  const int64_t* index = nullptr;
  int64_t size = 0;  // indices lie in [0, size)
  std::vector<Axis> outer;
  Axis dim, last;
  bool along_dim = true;  // there is no `last`
  int64_t outer_count = 1;

  void add_outer(const Axis& a) {
    if (a.n == 1) return;
    outer_count *= a.n;
    if (!outer.empty()) {
      Axis& b = outer.back();
      if (b.index == a.n * a.index && b.target == a.n * a.target && b.other == a.n * a.other) {
        b = {b.n * a.n, a.index, a.target, a.other};
        return;
      }
    }
    outer.push_back(a);
  }
  bool empty() const { return outer_count == 0 || dim.n == 0 || last.n == 0; }
};

Axes axes_of(const ScatterLayout& l) {
  Axes w;
  w.index = l.index;
  w.size = l.size;
  const size_t nd = l.sizes.size();
  if (nd == 0) return w;
  const auto axis = [&l](size_t d) {
    return Axis{l.sizes[d], l.index_strides[d], l.target_strides[d], l.other_strides[d]};
  };
  w.dim = axis(l.dim);
  size_t last = nd - 1;  // the last dimension that is worth a loop
  while (last != l.dim && l.sizes[last] == 1) --last;
  w.along_dim = last == l.dim;
  if (!w.along_dim) w.last = axis(last);
  for (size_t d = 0; d < nd; ++d) {
    if (d != l.dim && d != last) w.add_outer(axis(d));
  }
  return w;
}

// The same, where the index holds offsets.
Axes axes_of(const IndexLayout& l) {
  Axes w;
  w.index = l.offsets;
  w.size = INT64_MAX;
  for (size_t d = 0; d < l.outer.size(); ++d)
    w.add_outer({l.outer[d], 0, l.outer_strides[d], l.outer_flat[d]});
  w.dim = {l.count, 1, 1, l.count_flat};
  w.along_dim = l.run == 1;
  if (!w.along_dim) w.last = {l.run, 0, l.run_stride, l.run_flat};
  return w;
}

// `rows` lines of n elements. An element of the target is at its offset plus its index times
// `stride`.
struct Lines {
  const int64_t* index = nullptr;
  int64_t size = 0;
  int64_t target = 0, other = 0;  // offsets of the first element
  int64_t rows = 1, row_index = 0, row_target = 0, row_other = 0;
  int64_t n = 1, step_index = 0, step_target = 0, step_other = 0;
  int64_t stride = 0;

  bool dense() const { return step_index == 1 && step_other == 1 && stride == 1; }
  // Whether each line has one index, and is contiguous in the target; in the other too, or repeats
  // one element of that.
  bool rows_in_target() const { return step_index == 0 && step_target == 1; }
  bool whole_rows() const { return rows_in_target() && step_other == 1; }

  Lines in_bytes(int64_t item) const {
    Lines b = *this;
    for (int64_t* v : {&b.target, &b.other, &b.row_target, &b.row_other, &b.n, &b.stride})
      *v *= item;
    return b;
  }
};

// f(lines) for lines along dim (where nothing comes after it), or along the last dimension at the
// indices of dim in order; returns whether all calls gave true. `Read`: threads may share the
// indices of dim too. Writes to the same element stay in order: only what cannot meet is shared.
template <bool Read, class F> bool for_lines(Axes w, F&& f) {
  if (w.empty()) return true;
  const int64_t stride = w.dim.target;
  Axis line = w.along_dim ? w.dim : w.last, row = w.dim;
  bool apart = Read;  // rows do not meet
  (w.along_dim ? line : row).target = 0;
  if (w.along_dim || row.n == 1) {
    row = {};
    apart = true;
    if (!w.outer.empty()) {
      row = w.outer.back();
      w.outer.pop_back();
      w.outer_count /= row.n;
    }
    if (line.n == 1) std::swap(line, row);
  }
  int64_t part = line.n;
  if (Read) {
    part = std::min(part, kGrain);
  } else if (line.target != 0 && w.outer_count * (apart ? row.n : 1) < 8 && get_num_threads() > 1) {
    // No more pieces of a line than threads can use: every row is read once for each. (They do not
    // change the result, so that they may depend on the number of threads.)
    const int64_t least = std::max<int64_t>(256, (line.n / 8 + 63) / 64 * 64);
    part = std::clamp<int64_t>(kGrain / row.n, std::min(least, line.n), line.n);
  }
  const int64_t rows = apart ? std::clamp<int64_t>(kGrain / part, 1, row.n) : row.n;
  const int64_t parts = ceil_div(line.n, part), groups = ceil_div(row.n, rows);
  std::atomic<bool> good{true};
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = t % parts * part, first = t / parts % groups * rows;
      Lines x{.index = w.index + from * line.index + first * row.index,
              .size = w.size,
              .target = from * line.target + first * row.target,
              .other = from * line.other + first * row.other,
              .rows = std::min(rows, row.n - first),
              .row_index = row.index,
              .row_target = row.target,
              .row_other = row.other,
              .n = std::min(part, line.n - from),
              .step_index = line.index,
              .step_target = line.target,
              .step_other = line.other,
              .stride = stride};
      int64_t rest = t / parts / groups;
      for (size_t d = w.outer.size(); d-- > 0;) {
        const int64_t at = rest % w.outer[d].n;
        rest /= w.outer[d].n;
        x.index += at * w.outer[d].index;
        x.target += at * w.outer[d].target;
        x.other += at * w.outer[d].other;
      }
      if (!f(x)) good.store(false, std::memory_order_relaxed);
    }
  };
  parallel_for(w.outer_count * groups * parts, kGrain / (part * rows), run);
  return good;
}

// f(element of the target, element of the other), one by one. Returns false at the first index that
// is out of bounds. (The lines are a copy, which no store to the target can change.)
template <class T, class U, class F> bool each_element(T* target, U* other, const Lines l, F&& f) {
  const auto size = static_cast<uint64_t>(l.size);
  for (int64_t r = 0; r < l.rows; ++r) {
    T* t = target + l.target + r * l.row_target;
    U* o = other + l.other + r * l.row_other;
    const int64_t* index = l.index + r * l.row_index;
    if (l.step_index == 0) {
      if (static_cast<uint64_t>(*index) >= size) return false;
      t += *index * l.stride;
      for (int64_t j = 0; j < l.n; ++j) f(t[j * l.step_target], o[j * l.step_other]);
    } else if (l.dense() && l.step_target == 0) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < l.n; ++j) {
        const int64_t at = index[j];
        if (static_cast<uint64_t>(at) >= size) return false;
        f(t[at], o[j]);
      }
    } else {
#pragma GCC unroll 4
      for (int64_t j = 0; j < l.n; ++j) {
        const int64_t at = index[j * l.step_index];
        if (static_cast<uint64_t>(at) >= size) return false;
        f(t[j * l.step_target + at * l.stride], o[j * l.step_other]);
      }
    }
  }
  return true;
}

// f(row of the target, row of the other); see each_element. The first cache lines of some rows
// ahead are prefetched: no hardware prefetcher knows which they will be.
template <class T, class U, class F> bool each_row(T* target, U* other, const Lines l, F&& f) {
  constexpr int64_t line = 64 / sizeof(T), most = 1024 / sizeof(T);
  const int64_t fetched = std::min(l.n, most);
  const int64_t ahead = std::clamp<int64_t>(4 * most / l.n, 1, 32);
  const int64_t next_index = ahead * l.row_index, next_target = ahead * l.row_target;
  const int64_t* index = l.index;
  target += l.target;
  other += l.other;
  for (int64_t r = 0; r < l.rows; ++r) {
    if (r + ahead < l.rows) {
      const T* next = target + next_target + index[next_index] * l.stride;
      __builtin_prefetch(next);
      for (int64_t j = line; j < fetched; j += line) __builtin_prefetch(next + j);
    }
    if (static_cast<uint64_t>(*index) >= static_cast<uint64_t>(l.size)) return false;
    f(target + *index * l.stride, other);
    index += l.row_index;
    target += l.row_target;
    other += l.row_other;
  }
  return true;
}

// f(copy), where copy(to, from) copies a row of so many bytes: short ones without a call.
template <class F> bool with_copy(int64_t bytes, bool streamed, F&& f) {
  const auto fixed = [&]<size_t N>() {
    return f([](char* to, const char* from) { std::memcpy(to, from, N); });
  };
  const auto size = static_cast<size_t>(bytes);
  if (streamed) {
    const bool good = f([=](char* to, const char* from) { stream_near(to, from, size); });
    stream_fence();
    return good;
  }
  switch (bytes) {
    case 4: return fixed.template operator()<4>();
    case 8: return fixed.template operator()<8>();
    case 16: return fixed.template operator()<16>();
    case 32: return fixed.template operator()<32>();
    case 64: return fixed.template operator()<64>();
    default: return f([=](char* to, const char* from) { std::memcpy(to, from, size); });
  }
}

// Rows in bytes.
bool read_rows(char* to, const char* from, const Lines& l, bool streamed) {
  return with_copy(l.n, streamed, [&](const auto& copy) {
    return each_row(from, to, l, [&](const char* row, char* o) { copy(o, row); });
  });
}

bool read(void* out, const void* indexed, const Axes& w, DType dtype) {
  const auto item = static_cast<int64_t>(itemsize(dtype));
  const int64_t bytes = w.last.n * item;
  const bool streamed = bytes % 64 == 0 && is_streamed(w.outer_count * w.dim.n * bytes);
  bool good = true;
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    auto* to = static_cast<T*>(out);
    auto* from = static_cast<const T*>(indexed);
    good = for_lines<true>(w, [&](const Lines& x) {
      if (x.whole_rows() && x.n > 1)
        return read_rows(static_cast<char*>(out), static_cast<const char*>(indexed),
                         x.in_bytes(item), streamed);
      return each_element(from, to, x, [](const T& t, T& o) { o = t; });
    });
  });
  return good;
}

bool write(void* target, const void* src, const Axes& w, DType dtype) {
  bool good = true;
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    auto* to = static_cast<T*>(target);
    auto* from = static_cast<const T*>(src);
    good = for_lines<false>(w, [&](const Lines& x) {
      if (x.whole_rows() && x.n > 1) {
        const Lines rows = x.in_bytes(sizeof(T));
        return with_copy(rows.n, false, [&](const auto& copy) {
          return each_row(static_cast<char*>(target), static_cast<const char*>(src), rows, copy);
        });
      }
      if (x.rows_in_target() && x.step_other == 0)
        return each_row(to, from, x, [&](T* t, const T* o) { std::fill_n(t, x.n, *o); });
      return each_element(to, from, x, [](T& t, const T& o) { t = o; });
    });
  });
  return good;
}

// ---- combining with what is there ----

#if defined(__SSE2__)
// Within one kind of registers: to change over twice takes longer than the sum.
BFloat16 sum_of(BFloat16 a, BFloat16 b) {
  const auto widened = [](BFloat16 v) {
    return _mm_castsi128_ps(_mm_insert_epi16(_mm_setzero_si128(), v.bits, 1));
  };
  const __m128 sum = _mm_add_ss(widened(a), widened(b));
  BFloat16 r;
  r.bits = 0x7fc0;
  if (_mm_comieq_ss(sum, sum)) {
    const __m128i u = _mm_castps_si128(sum), odd = _mm_set1_epi32(1);
    const __m128i half =
        _mm_add_epi32(_mm_and_si128(_mm_srli_epi32(u, 16), odd), _mm_set1_epi32(0x7fff));
    r.bits = static_cast<uint16_t>(_mm_extract_epi16(_mm_add_epi32(u, half), 1));
  }
  return r;
}
#endif

template <class T> T sum_of(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) return a || b;
  else return static_cast<T>(a + b);
}

template <ScatterMode Mode, class T> T combined(T a, T b) {
  if constexpr (Mode == ScatterMode::Add) {
    return sum_of(a, b);
  } else if constexpr (Mode == ScatterMode::Multiply) {
    if constexpr (std::is_same_v<T, bool>) return a && b;
    else return static_cast<T>(a * b);
  } else if constexpr (is_complex_type<T>) {
    return b;  // refused by the caller
  } else if constexpr (Mode == ScatterMode::Max) {
    return a != a || a > b ? a : b;
  } else {
    return a != a || a < b ? a : b;
  }
}

template <ScatterMode Mode>
bool combine(void* target, const void* src, const Axes& w, DType dtype) {
  using namespace simd;
  constexpr Combination mode = Mode == ScatterMode::Add        ? kAdd
                               : Mode == ScatterMode::Multiply ? kMultiply
                               : Mode == ScatterMode::Max      ? kMax
                                                               : kMin;
  const Combine row = TAEDA_PICK(index_kernels).combine[mode][static_cast<int>(dtype)];
  bool good = true;
  visit_all(dtype, [&]<class T>(Tag<T>) {
    auto* to = static_cast<T*>(target);
    auto* from = static_cast<const T*>(src);
    good = for_lines<false>(w, [&](const Lines& x) {
      if (x.whole_rows() && x.n >= 16)
        return each_row(to, from, x, [&](T* t, const T* o) { row(t, o, x.n); });
      return each_element(to, from, x, [](T& t, const T& o) { t = combined<Mode, T>(t, o); });
    });
  });
  return good;
}

bool gather(void* out, const void* x, const ScatterLayout& l, DType dtype) {
  return read(out, x, axes_of(l), dtype);
}

bool scatter(void* target, const void* src, const ScatterLayout& l, DType dtype, ScatterMode mode) {
  const Axes w = axes_of(l);
  switch (mode) {
    case ScatterMode::Add: return combine<ScatterMode::Add>(target, src, w, dtype);
    case ScatterMode::Multiply: return combine<ScatterMode::Multiply>(target, src, w, dtype);
    case ScatterMode::Max: return combine<ScatterMode::Max>(target, src, w, dtype);
    case ScatterMode::Min: return combine<ScatterMode::Min>(target, src, w, dtype);
    case ScatterMode::Copy: break;
  }
  return write(target, src, w, dtype);
}

void index_read(void* flat, const void* indexed, const IndexLayout& l, DType dtype) {
  read(flat, indexed, axes_of(l), dtype);
}
void index_write(void* indexed, const void* flat, const IndexLayout& l, DType dtype) {
  write(indexed, flat, axes_of(l), dtype);
}
void index_accumulate(void* indexed, const void* flat, const IndexLayout& l, DType dtype) {
  combine<ScatterMode::Add>(indexed, flat, axes_of(l), dtype);
}

void take_rows(int64_t count, int64_t row_bytes, const void* table, const int64_t* index,
               void* out) {
  const bool streamed = row_bytes % 64 == 0 && is_streamed(count * row_bytes);
  parallel_for(count, (64 << 10) / row_bytes, [&](int64_t begin, int64_t end) {
    const Lines l{.index = index + begin,
                  .size = INT64_MAX,
                  .other = begin * row_bytes,
                  .rows = end - begin,
                  .row_index = 1,
                  .row_other = row_bytes,
                  .n = row_bytes,
                  .stride = row_bytes};
    read_rows(static_cast<char*>(out), static_cast<const char*>(table), l, streamed);
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::ScatterKernels taeda::ScatterKernels::cpu = {
    cpu::index_read, cpu::index_write, cpu::index_accumulate,
    cpu::take_rows,  cpu::gather,      cpu::scatter,
};
