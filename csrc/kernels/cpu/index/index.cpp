#include "kernels/cpu/index/index.h"

#include <atomic>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/index/element_sum.h"
#include "kernels/cpu/index/simd/combine.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kGrain = 16384;

struct Offsets {
  int64_t indexed = 0, flat = 0;
};
Offsets locate(const IndexLayout& l, int64_t index) {
  Offsets o;
  for (size_t i = l.outer.size(); i-- > 0;) {
    const int64_t at = i > 0 ? index % l.outer[i] : index;
    if (i > 0) index /= l.outer[i];
    o.indexed += at * l.outer_strides[i];
    o.flat += at * l.outer_flat[i];
  }
  return o;
}
int64_t outer_count(const IndexLayout& l) {
  int64_t n = 1;
  for (int64_t s : l.outer) n *= s;
  return n;
}

// f(offsets) for the outer elements [begin, end), with steps instead of divisions.
template <class F> void for_outer(const IndexLayout& l, int64_t begin, int64_t end, F&& f) {
  const size_t last = l.outer.size() - 1;
  if (l.outer.empty()) return f(Offsets{});
  for (int64_t t = begin; t < end;) {
    Offsets o = locate(l, t);
    const int64_t row = l.outer[last];
    for (const int64_t stop = std::min(end, t - t % row + row); t < stop; ++t) {
      f(o);
      o.indexed += l.outer_strides[last];
      o.flat += l.outer_flat[last];
    }
  }
}

// Writes go through all places in order; only what cannot meet, the outer dimensions and parts of
// the run, is shared out. f(indexed offset, flat offset, run length), called for all places at
// once.
template <class F> void for_each_write(const IndexLayout& l, F&& f) {
  int64_t outer = outer_count(l);
  if (l.count == 0 || outer == 0 || l.run == 0) return;
  // No more pieces of a run than threads can use: every row is read once for each piece. (The
  // pieces do not change the result, so that they may depend on the number of threads.)
  const bool whole = outer >= 8 || get_num_threads() == 1;
  const int64_t least = whole ? l.run : std::max<int64_t>(256, (l.run / 8 + 63) / 64 * 64);
  int64_t part = std::clamp<int64_t>(kGrain / l.count, std::min(least, l.run), l.run);
  int64_t parts = (l.run + part - 1) / part;
  parallel_for(outer * parts, std::max<int64_t>(1, kGrain / (l.count * std::min(part, l.run))),
               [&](int64_t begin, int64_t end) {
                 if (parts == 1) {
                   return for_outer(l, begin, end,
                                    [&](const Offsets& o) { f(o.indexed, o.flat, l.run); });
                 }
                 for (int64_t t = begin; t < end; ++t) {
                   Offsets o = locate(l, t / parts);
                   int64_t from = t % parts * part, n = std::min(part, l.run - from);
                   o.indexed += from * l.run_stride;
                   o.flat += from * l.run_flat;
                   f(o.indexed, o.flat, n);
                 }
               });
}

template <class T>
void read_elements(T* to, int64_t step, const T* from, const int64_t* places, int64_t n) {
  if (step == 1) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < n; ++i) to[i] = from[places[i]];
  } else {
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) to[i * step] = from[places[i]];
  }
}

template <class T> void move_row(T* to, const T* from, int64_t n) {
  if (n * static_cast<int64_t>(sizeof(T)) > 64) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = from[j];
  }
}

template <size_t Bytes>
void read_short_rows(char* to, int64_t step, const char* from, int64_t item, const int64_t* places,
                     int64_t count) {
  constexpr int64_t ahead = 32;
  for (int64_t i = 0; i < count; ++i) {
    __builtin_prefetch(from + places[std::min(i + ahead, count - 1)] * item);
    std::memcpy(to + i * step, from + places[i] * item, Bytes);
  }
}

// Rows of `bytes` bytes, `step` bytes apart in the result; places count items of `item` bytes. The
// first lines of each are asked for before: nobody could guess them.
void read_rows(char* to, int64_t step, const char* from, int64_t item, const int64_t* places,
               int64_t count, int64_t bytes, bool streamed) {
  switch (bytes) {
    case 4: return read_short_rows<4>(to, step, from, item, places, count);
    case 8: return read_short_rows<8>(to, step, from, item, places, count);
    case 16: return read_short_rows<16>(to, step, from, item, places, count);
    case 32: return read_short_rows<32>(to, step, from, item, places, count);
    case 64:
      if (!streamed) return read_short_rows<64>(to, step, from, item, places, count);
      break;
    default: break;
  }
  const int64_t ahead = std::clamp<int64_t>(4096 / bytes, 4, 32);
  const int64_t asked = std::min<int64_t>(bytes, 512);
  for (int64_t i = 0; i < count; ++i) {
    const char* next = from + places[std::min(i + ahead, count - 1)] * item;
    for (int64_t j = 0; j < asked; j += 64) __builtin_prefetch(next + j);
    const char* row = from + places[i] * item;
    if (streamed) stream_near(to + i * step, row, static_cast<size_t>(bytes));
    else std::memcpy(to + i * step, row, static_cast<size_t>(bytes));
  }
  if (streamed) stream_fence();
}

}  // namespace

void take_rows(int64_t count, int64_t row_bytes, const void* table, const int64_t* index,
               void* out) {
  const bool streamed = row_bytes % 64 == 0 && is_streamed(count * row_bytes);
  const int64_t grain = (streamed ? 256 << 10 : 64 << 10) / row_bytes;
  parallel_for(count, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    read_rows(static_cast<char*>(out) + begin * row_bytes, row_bytes,
              static_cast<const char*>(table), row_bytes, index + begin, end - begin, row_bytes,
              streamed);
  });
}

bool any_outside(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  return TAEDA_PICK(index_kernels).any_outside(index, n, low, high);
}

int64_t first_outside(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  std::atomic<bool> found{false};
  parallel_for(n, 4 * kGrain, [&](int64_t begin, int64_t end) {
    if (any_outside(index + begin, end - begin, low, high))
      found.store(true, std::memory_order_relaxed);
  });
  if (!found) return -1;
  int64_t i = 0;
  while (index[i] >= low && index[i] < high) ++i;
  return i;
}

void add_offsets(const int64_t* index, int64_t n, int64_t size, int64_t stride, bool first,
                 int64_t* offsets) {
  parallel_for(n, 2 * kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = (index[i] < 0 ? index[i] + size : index[i]) * stride;
      offsets[i] = first ? at : offsets[i] + at;
    }
  });
}

bool take_elements(void* out, const void* x, const int64_t* index, int64_t n, int64_t size,
                   DType dtype) {
  std::atomic<bool> outside{false};
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(out);
    auto* from = static_cast<const T*>(x);
    parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end; first += 512) {
        const int64_t last = std::min(first + 512, end);
        if (any_outside(index + first, last - first, -size, size)) {
          outside.store(true, std::memory_order_relaxed);
          return;
        }
        for (int64_t i = first; i < last; ++i) to[i] = from[index[i] + (index[i] < 0 ? size : 0)];
      }
    });
  });
  return !outside;
}

void index_read(void* flat, const void* indexed, const IndexLayout& l, DType dtype) {
  int64_t outer = outer_count(l);
  if (l.count == 0 || outer == 0 || l.run == 0) return;
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(flat);
    auto* from = static_cast<const T*>(indexed);
    const int64_t row_bytes = l.run * static_cast<int64_t>(sizeof(T));
    if (l.run == 1 && outer > 1) {  // rows
      parallel_for(outer, std::max<int64_t>(1, kGrain / l.count), [&](int64_t begin, int64_t end) {
        for_outer(l, begin, end, [&](const Offsets& o) {
          read_elements(to + o.flat, l.count_flat, from + o.indexed, l.places, l.count);
        });
      });
      return;
    }
    const bool streamed = row_bytes % 64 == 0 && is_streamed(outer * l.count * row_bytes);
    // One range of (outer, place) pairs, cut anywhere.
    const int64_t grain = streamed ? (256 << 10) / row_bytes : kGrain / l.run;
    parallel_for(outer * l.count, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end;) {
        int64_t first = t % l.count, last = std::min(l.count, first + end - t);
        Offsets o = locate(l, t / l.count);
        const T* src = from + o.indexed;
        T* dst = to + o.flat;
        if (l.run == 1) {
          read_elements(dst + first * l.count_flat, l.count_flat, src, l.places + first,
                        last - first);
        } else if (l.run_stride == 1 && l.run_flat == 1) {
          constexpr int64_t item = sizeof(T);
          read_rows(reinterpret_cast<char*>(dst + first * l.count_flat), l.count_flat * item,
                    reinterpret_cast<const char*>(src), item, l.places + first, last - first,
                    row_bytes, streamed);
        } else {
          for (int64_t i = first; i < last; ++i) {
            const T* s = src + l.places[i];
            T* d = dst + i * l.count_flat;
            for (int64_t j = 0; j < l.run; ++j) d[j * l.run_flat] = s[j * l.run_stride];
          }
        }
        t += last - first;
      }
    });
  });
}

void index_write(void* indexed, const void* flat, const IndexLayout& l, DType dtype) {
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(indexed);
    auto* from = static_cast<const T*>(flat);
    for_each_write(l, [&](int64_t d, int64_t s, int64_t n) {
      if (n == 1) {
        for (int64_t i = 0; i < l.count; ++i) to[d + l.places[i]] = from[s + i * l.count_flat];
        return;
      }
      const bool dense = l.run_stride == 1 && l.run_flat == 1;
      for (int64_t i = 0; i < l.count; ++i, s += l.count_flat) {
        T* row = to + d + l.places[i];
        if (dense) {
          move_row(row, from + s, n);
        } else if (l.run_flat == 0 && l.run_stride == 1) {
          std::fill_n(row, n, from[s]);
        } else {
          for (int64_t j = 0; j < n; ++j) row[j * l.run_stride] = from[s + j * l.run_flat];
        }
      }
    });
  });
}

void index_accumulate(void* indexed, const void* flat, const IndexLayout& l, DType dtype) {
  using namespace simd;
  const Combine add_line = TAEDA_PICK(index_kernels).combine[kAdd][static_cast<int>(dtype)];
  visit_all(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* to = static_cast<T*>(indexed);
    auto* from = static_cast<const T*>(flat);
    const auto add = [](T a, T b) { return sum_of(a, b); };
    for_each_write(l, [&](int64_t d, int64_t s, int64_t n) {
      if (n == 1) {
        for (int64_t i = 0; i < l.count; ++i) {
          T& t = to[d + l.places[i]];
          t = add(t, from[s + i * l.count_flat]);
        }
        return;
      }
      const bool dense = l.run_stride == 1 && l.run_flat == 1 && n >= 16;
      constexpr int64_t line = 64 / sizeof(T);
      for (int64_t i = 0; i < l.count; ++i, s += l.count_flat) {
        T* row = to + d + l.places[i];
        if (dense) {
          const T* next = to + d + l.places[std::min(i + 1, l.count - 1)];
          for (int64_t j = 0; j < std::min(n, 16 * line); j += line) __builtin_prefetch(next + j);
          add_line(row, from + s, n);
        } else {
          for (int64_t j = 0; j < n; ++j)
            row[j * l.run_stride] = add(row[j * l.run_stride], from[s + j * l.run_flat]);
        }
      }
    });
  });
}

namespace {
constexpr int64_t kMaskChunk = 65536;
int64_t count_line(const uint8_t* mask, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i += 128) {
    int64_t end = std::min(n, i + 128);
    uint8_t c = 0;
    for (int64_t j = i; j < end; ++j) c = static_cast<uint8_t>(c + (mask[j] != 0));
    total += c;
  }
  return total;
}
}  // namespace

int64_t count_true(const uint8_t* mask, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i += kMaskChunk)
    total += count_line(mask + i, std::min(kMaskChunk, n - i));
  return total;
}

namespace {
// f(begin, end, before, count) for chunks of a mask with `total` true elements: `before` of them
// are in front of the chunk and `count` in it. Another thread may write to the mask meanwhile: no
// more than that many may be taken.
template <class F> void for_chunks(const uint8_t* mask, int64_t n, int64_t total, F&& f) {
  if (n <= kMaskChunk) return f(int64_t(0), n, int64_t(0), total);
  const int64_t chunks = (n + kMaskChunk - 1) / kMaskChunk;
  std::vector<int64_t> start(static_cast<size_t>(chunks) + 1);
  for (int64_t c = 0; c < chunks; ++c) {
    start[static_cast<size_t>(c) + 1] =
        start[static_cast<size_t>(c)] +
        count_line(mask + c * kMaskChunk, std::min(kMaskChunk, n - c * kMaskChunk));
  }
  check(start.back() == total, "a mask was changed by another thread while it was read");
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t before = start[static_cast<size_t>(c)];
      f(c * kMaskChunk, std::min(n, (c + 1) * kMaskChunk), before,
        start[static_cast<size_t>(c) + 1] - before);
    }
  });
}

// Stores value(i) for every true element i. Without a branch on the mask, which nothing could
// foresee: what is written for a false element is overwritten by the next.
template <class T, class F>
void store_true(const uint8_t* mask, int64_t n, T* out, int64_t total, F&& value) {
  for_chunks(mask, n, total, [&](int64_t begin, int64_t end, int64_t before, int64_t count) {
    T* o = out + before;
    int64_t k = 0;
    for (int64_t i = begin; k < count && i < end; ++i) {
      o[k] = value(i);
      k += static_cast<int64_t>(mask[i] != 0);
    }
    std::fill(o + k, o + count, T());  // nothing, but where the mask has changed
  });
}
}  // namespace

void true_places(const uint8_t* mask, int64_t n, int64_t* out, int64_t total) {
  store_true(mask, n, out, total, [](int64_t i) { return i; });
}

void take_true(const void* x, const uint8_t* mask, int64_t n, void* out, int64_t total,
               DType dtype) {
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x);
    store_true(mask, n, static_cast<T*>(out), total, [&](int64_t i) { return from[i]; });
  });
}

void put_true(void* out, const uint8_t* mask, int64_t n, const void* from, int64_t total,
              DType dtype) {
  visit_bytes(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_chunks(mask, n, total, [&](int64_t begin, int64_t end, int64_t before, int64_t count) {
      if (count == 0) return;
      const T* next = static_cast<const T*>(from) + before;
      T* to = static_cast<T*>(out);
      for (int64_t i = begin, k = 0; i < end; ++i) {
        const auto taken = static_cast<int64_t>(mask[i] != 0);
        const T* choice[] = {to + i, next + std::min(k, count - 1)};  // no branch: see above
        to[i] = *choice[taken];
        k += taken;
      }
    });
  });
}

void place_coordinates(const int64_t* places, int64_t n, DimsRef sizes, int64_t* const* out,
                       int64_t step) {
  const size_t nd = sizes.size();
  const int64_t row = sizes[nd - 1];
  parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {  // one row of the last dimension after the other
      int64_t rest = places[i] / row, first = rest * row, last = i;
      while (last < end && places[last] - first < row) ++last;
      for (int64_t j = i; j < last; ++j) out[nd - 1][j * step] = places[j] - first;
      for (size_t d = nd - 1; d-- > 0;) {
        const int64_t at = rest % sizes[d];
        rest /= sizes[d];
        for (int64_t j = i; j < last; ++j) out[d][j * step] = at;
      }
      i = last;
    }
  });
}

}  // namespace taeda::cpu
