#include "kernels/index.h"

#include <atomic>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/index/simd/combine.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kIndexGrain = 16384;

bool any_outside(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  return TAEDA_PICK(index_kernels).any_outside(index, n, low, high);
}

std::optional<int64_t> find_outside(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  std::atomic<bool> found{false};
  parallel_for(n, 4 * kIndexGrain, [&](int64_t begin, int64_t end) {
    if (any_outside(index + begin, end - begin, low, high))
      found.store(true, std::memory_order_relaxed);
  });
  if (!found) return std::nullopt;
  return *std::find_if(index, index + n, [=](int64_t i) { return i < low || i >= high; });
}

void add_offsets(const int64_t* index, int64_t n, int64_t size, int64_t stride, bool first,
                 int64_t* offsets) {
  parallel_each(n, 2 * kIndexGrain, [&](int64_t i) {
    const int64_t at = (index[i] < 0 ? index[i] + size : index[i]) * stride;
    offsets[i] = first ? at : offsets[i] + at;
  });
}

bool take_elements(void* out, const void* x, const int64_t* index, int64_t n, int64_t size,
                   DType dtype) {
  std::atomic<bool> outside{false};
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    auto* to = static_cast<T*>(out);
    auto* from = static_cast<const T*>(x);
    parallel_for(n, kIndexGrain, [&](int64_t begin, int64_t end) {
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

void mark(const int64_t* index, int64_t n, int64_t classes, int64_t* out) {
  for (int64_t i = 0; i < n; ++i) out[i * classes + index[i]] = 1;
}

void split_indices(const int64_t* index, int64_t n, int64_t size, int64_t wrap, int64_t* rows,
                   int64_t* rest) {
  const double inverse = 1 / static_cast<double>(size);  // 5x faster than dividing
  parallel_each(n, kIndexGrain, [&](int64_t i) {
    const int64_t flat = index[i] + (index[i] < 0 ? wrap : 0);
    if (!rows) {
      rest[i] = flat;
      return;
    }
    auto row = static_cast<int64_t>(static_cast<double>(flat) * inverse);
    row -= row * size > flat;  // off by at most 1, since there are fewer than 2^52 elements
    row += flat - row * size >= size;
    rows[i] = row;
    rest[i] = flat - row * size;
  });
}

void write_sequences(int64_t n, int64_t r, bool repeated, int64_t count, int64_t* out) {
  const int64_t step = repeated ? 0 : 1;
  for (int64_t k = 0; k < count; ++k, out += r) {
    if (k == 0) {
      for (int64_t i = 0; i < r; ++i) out[i] = i * step;
      continue;
    }
    std::copy_n(out - r, r, out);
    int64_t i = r - 1;
    while (out[i] == n - 1 - (r - 1 - i) * step) --i;
    for (int64_t next = out[i] + 1; i < r; ++i, next += step) out[i] = next;
  }
}

void repeat(const int64_t* counts, int64_t n, int64_t* out) {
  for (int64_t i = 0; i < n; ++i) out = std::fill_n(out, counts[i], i);
}

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

int64_t count_true(const uint8_t* mask, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i += kMaskChunk)
    total += count_line(mask + i, std::min(kMaskChunk, n - i));
  return total;
}

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
  parallel_each(chunks, 1, [&](int64_t c) {
    const int64_t before = start[static_cast<size_t>(c)];
    f(c * kMaskChunk, std::min(n, (c + 1) * kMaskChunk), before,
      start[static_cast<size_t>(c) + 1] - before);
  });
}

// Stores value(i) for every true element i. Without a branch on the mask, which cannot be
// predicted: what is written for a false element is overwritten by the next.
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

void true_indices(const uint8_t* mask, int64_t n, int64_t* out, int64_t total) {
  store_true(mask, n, out, total, [](int64_t i) { return i; });
}

void take_true(const void* x, const uint8_t* mask, int64_t n, void* out, int64_t total,
               DType dtype) {
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    const T* from = static_cast<const T*>(x);
    store_true(mask, n, static_cast<T*>(out), total, [&](int64_t i) { return from[i]; });
  });
}

void put_true(void* out, const uint8_t* mask, int64_t n, const void* from, int64_t total,
              DType dtype) {
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
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

void index_coordinates(const int64_t* indices, int64_t n, DimsRef sizes, int64_t* const* out,
                       int64_t step) {
  const size_t nd = sizes.size();
  const int64_t row = sizes[nd - 1];
  parallel_for(n, kIndexGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {  // one row of the last dimension after the other
      int64_t rest = indices[i] / row, first = rest * row, last = i;
      while (last < end && indices[last] - first < row) ++last;
      for (int64_t j = i; j < last; ++j) out[nd - 1][j * step] = indices[j] - first;
      for (size_t d = nd - 1; d-- > 0;) {
        const int64_t at = rest % sizes[d];
        rest /= sizes[d];
        for (int64_t j = i; j < last; ++j) out[d][j * step] = at;
      }
      i = last;
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::IndexKernels taeda::IndexKernels::cpu = {
    .find_outside = cpu::find_outside,
    .keep_inside = nullptr,
    .take_elements = cpu::take_elements,
    .add_offsets = cpu::add_offsets,
    .mark = cpu::mark,
    .split = cpu::split_indices,
    .coordinates = cpu::index_coordinates,
    .sequences = cpu::write_sequences,
    .repeat = cpu::repeat,
    .count_true = cpu::count_true,
    .true_indices = cpu::true_indices,
    .take_true = cpu::take_true,
    .put_true = cpu::put_true,
};
