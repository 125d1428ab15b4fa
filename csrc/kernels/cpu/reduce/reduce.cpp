#include "kernels/cpu/reduce/reduce.h"

#include <array>
#include <numeric>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/pointwise/simd/transpose.h"

namespace taeda::cpu {
namespace {

using simd::kMaxColumns;
using simd::ReduceKernel;

const ReduceKernel* find(ReduceOp op, DType dtype) {
  auto e = static_cast<simd::Element>(dtype);
  if (is_complex(dtype)) return nullptr;
  using namespace simd;
  return op >= ReduceOp::Prod ? TAEDA_PICK(find_reduce_sum)(op, e)
                              : TAEDA_PICK(find_reduce_order)(op, e);
}

constexpr int64_t kGrain = 32768;
// Columns of one call: their accumulators stay in the first cache beside the rows.
constexpr int64_t kStrip = 1024;

bool finds_index(ReduceOp op) { return op == ReduceOp::ArgMax || op == ReduceOp::ArgMin; }

// The longest rows that are reduced faster when they are transposed to columns.
int64_t short_row(ReduceOp op, int64_t item) {
  if (item == 8 && !finds_index(op)) return 8;
  return op == ReduceOp::Prod ? 16 : 63;
}

struct Dim {
  int64_t size, in, out;  // strides in elements; out is 0 for a reduced dimension
};
constexpr size_t kMaxDims = 64;

struct DimList {
  DimList() {}  // the array stays uninitialised
  std::array<Dim, kMaxDims> d;
  size_t n = 0;
  void add(Dim x) { d[n++] = x; }
  Dim take_last(Dim none) { return n ? d[--n] : none; }
  int64_t count() const {
    int64_t c = 1;
    for (size_t i = 0; i < n; ++i) c *= d[i].size;
    return c;
  }
  // Largest stride first; dimensions that continue one another become one.
  void sort_and_join() {
    for (size_t i = 1; i < n; ++i) {  // few: std::stable_sort would allocate memory
      for (size_t j = i; j > 0 && d[j - 1].in < d[j].in; --j) std::swap(d[j - 1], d[j]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; ++i) {
      if (kept && d[kept - 1].in == d[i].in * d[i].size &&
          d[kept - 1].out == d[i].out * d[i].size) {
        d[kept - 1] = {d[kept - 1].size * d[i].size, d[i].in, d[i].out};
      } else {
        d[kept++] = d[i];
      }
    }
    n = kept;
  }
  void locate(int64_t index, int64_t* in, int64_t* out) const {
    for (size_t i = n; i-- > 0;) {
      int64_t at = index % d[i].size;
      index /= d[i].size;
      *in += at * d[i].in;
      *out += at * d[i].out;
    }
  }
};

struct Plan {
  // A constructor, since to initialise an aggregate is to clear its lists of dimensions first.
  Plan(ReduceOp op, DType dtype, const ReduceKernel& kernel, const void* input)
      : k(kernel),
        x(static_cast<const char*>(input)),
        item(static_cast<int64_t>(itemsize(dtype))),
        longest_transposed(short_row(op, item)),
        foldable(!finds_index(op)) {}

  const ReduceKernel& k;
  const char* x;
  int64_t item;
  int64_t longest_transposed;  // elements of a row
  bool by_columns = false, far = false;
  bool in_strips = false;  // whole columns to each task: merging partial results takes long
  bool foldable;           // the order of elements does not matter to the result
  DimList outer_kept, outer_reduced;
  Dim kept{1, 0, 0};     // the kept dimension that a kernel call covers
  Dim reduced{1, 0, 0};  // the reduced dimension that it walks
  int64_t kept_per_call = 64, chunk = 1;
  int64_t transposed = 0;  // rows that are transposed as one, where rows are short; else 0
  int64_t blocks = 1, chunks = 1, units = 1;  // of kept; of reduced; (outer reduced) x chunks

  int64_t tasks() const { return outer_kept.count() * blocks; }
  bool has_few_tasks() const { return tasks() < (in_strips ? 4 : 16); }
  int64_t acc_bytes() const {
    return (static_cast<int64_t>(k.acc_size) * kept_per_call + 63) / 64 * 64;
  }

  // Adds units [begin, end) of the reduction to the accumulators of one block of results.
  void accumulate(const char* base, int64_t count, int64_t begin, int64_t end, char* acc) const {
    for (int64_t u = begin; u < end; ++u) {
      int64_t offset = 0, unused = 0, first = u % chunks * chunk;
      outer_reduced.locate(u / chunks, &offset, &unused);
      const char* p = base + (offset + first * reduced.in) * item;
      int64_t n = std::min(chunk, reduced.size - first);
      if (by_columns) columns(p, n, count, first, acc);
      else k.rows(p, count, kept.in, n, reduced.in, first, far, acc);
    }
  }

  // Short rows are transposed, some at a time, to columns in a cache. Several contiguous ones count
  // as one row, of which each becomes some columns, so that a register is filled.
  void choose_transposed() {
    constexpr int64_t bytes = 8192;
    if (reduced.in != 1 || reduced.size > longest_transposed || units != 1 || kept.size < 128)
      return;
    const int64_t lanes = 64 / item;
    transposed = kept.in == reduced.size ? lanes / std::gcd(lanes, reduced.size) : 1;
    const int64_t least = transposed * lanes, most = bytes / (reduced.size * item);
    kept_per_call = std::min(kMaxColumns, std::max(most / least, int64_t{1}) * least);
    blocks = (kept.size + kept_per_call - 1) / kept_per_call;
  }
  void transposed_rows(const char* p, int64_t count, int64_t out, char* acc,
                       ReduceFinish finish) const {
    const int64_t n = reduced.size, cols = count / transposed, rest = count % transposed;
    // An odd number of cache lines, which then fall into different sets.
    const int64_t step = (cols * item / 128 * 2 + 3) * 64;
    const Scratch<char> memory(transposed * n * step);
    const char* next = p + count * kept.in * item;
    for (int64_t i = 0; i < count * n * item; i += 64) __builtin_prefetch(next + i, 0, 2);
    TAEDA_PICK(transpose_kernels)
        .of(item, false)(memory.data(), step, p, transposed * kept.in * item, cols, transposed * n);
    for (int64_t i = 0; i < transposed && cols; ++i) {
      k.init(acc, cols);
      k.cols(memory.data() + i * n * step, n, step / item, cols, 0, acc);
      finish.call(finish.context, acc, cols, out + i * kept.out, transposed * kept.out);
    }
    if (rest) {
      k.init(acc, rest);
      k.rows(p + cols * transposed * kept.in * item, rest, kept.in, n, 1, 0, far, acc);
      finish.call(finish.context, acc, rest, out + cols * transposed * kept.out, kept.out);
    }
  }

  // Few columns, contiguous in memory: several rows together make one long row.
  void columns(const char* p, int64_t n, int64_t cols, int64_t first, char* acc) const {
    constexpr int64_t most = 256;
    int64_t fold = foldable && reduced.in == cols ? most / cols : 1;
    if (fold >= 2 && n >= 4 * fold && cols < 48) {
      alignas(64) char wide[most * sizeof(Moments)];
      k.init(wide, fold * cols);
      k.cols(p, n / fold, fold * cols, fold * cols, first, wide);
      auto bytes = static_cast<int64_t>(k.acc_size) * cols;
      for (int64_t f = 0; f < fold; ++f) k.combine(acc, wide + f * bytes, cols);
      int64_t done = n / fold * fold;
      p += done * reduced.in * item;
      n -= done;
    }
    if (n > 0) k.cols(p, n, reduced.in, cols, first, acc);
  }
};

void run(const Plan& p, ReduceFinish finish) {
  const int64_t tasks = p.tasks();
  int64_t per_task =
      p.outer_reduced.count() * p.reduced.size * std::min(p.kept_per_call, p.kept.size);
  auto block = [&](int64_t task, const char** base, int64_t* count, int64_t* out) {
    int64_t in = 0, first_kept = task % p.blocks * p.kept_per_call;
    *out = first_kept * p.kept.out;
    p.outer_kept.locate(task / p.blocks, &in, out);
    *base = p.x + (in + first_kept * p.kept.in) * p.item;
    *count = std::min(p.kept_per_call, p.kept.size - first_kept);
  };
  // Few results of much input: the reduction itself is cut.
  int64_t parts = 1;
  if (p.has_few_tasks() && per_task >= 4 * kGrain)
    parts = std::min({per_task / (2 * kGrain), p.units, int64_t(128)});
  if (parts == 1) {
    parallel_for(tasks, kGrain / std::max<int64_t>(per_task, 1), [&](int64_t begin, int64_t end) {
      const Scratch<char> memory(p.acc_bytes());
      char* acc = memory.data();
      for (int64_t t = begin; t < end; ++t) {
        const char* base;
        int64_t count, out;
        block(t, &base, &count, &out);
        if (p.transposed) {
          p.transposed_rows(base, count, out, acc, finish);
          continue;
        }
        p.k.init(acc, count);
        p.accumulate(base, count, 0, p.units, acc);
        finish.call(finish.context, acc, count, out, p.kept.out);
      }
    });
    return;
  }
  const int64_t acc_bytes = p.acc_bytes();
  const Scratch<char> memory(tasks * parts * acc_bytes);
  parallel_each(tasks * parts, 1, [&](int64_t i) {
    const char* base;
    int64_t count, out, part = i % parts;
    block(i / parts, &base, &count, &out);
    char* acc = memory.data() + i * acc_bytes;
    p.k.init(acc, count);
    p.accumulate(base, count, p.units * part / parts, p.units * (part + 1) / parts, acc);
  });
  for (int64_t t = 0; t < tasks; ++t) {
    const char* base;
    int64_t count, out;
    block(t, &base, &count, &out);
    char* acc = memory.data() + t * parts * acc_bytes;
    parallel_for(count, 512, [&](int64_t begin, int64_t end) {
      char* to = acc + begin * static_cast<int64_t>(p.k.acc_size);
      for (int64_t i = 1; i < parts; ++i) p.k.combine(to, to + i * acc_bytes, end - begin);
    });
    finish.call(finish.context, acc, count, out, p.kept.out);
  }
}

// Of a small tensor without gaps to one number: a single call, without a plan.
bool reduce_whole(const ReduceKernel& k, const void* x, DimsRef sizes, DimsRef strides,
                  uint64_t reduced, ReduceFinish finish) {
  int64_t total = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (!(reduced >> i & 1) || strides[i] != total) return false;
    total *= sizes[i];
  }
  if (total == 0 || total > kGrain) return false;
  alignas(64) char acc[64];
  if (k.acc_size > sizeof acc) return false;
  k.init(acc, 1);
  k.rows(x, 1, 0, total, 1, 0, false, acc);
  finish.call(finish.context, acc, 1, 0, 1);
  return true;
}

}  // namespace

void reduce(ReduceOp op, const ReduceInput& input, ReduceFinish finish) {
  const auto [x, dtype, sizes, strides, reduced] = input;
  const ReduceKernel* k = find(op, dtype);
  if (!k) unsupported_dtype("reduce", dtype);
  check(sizes.size() <= kMaxDims, "reduce: more than ", kMaxDims, " dimensions");
  if (reduce_whole(*k, x, sizes, strides, reduced, finish)) return;
  Plan p(op, dtype, *k, x);
  int64_t out = 1, total = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    bool gone = reduced >> i & 1;
    if (sizes[i] != 1) {
      if (gone) p.outer_reduced.add({sizes[i], strides[i], 0});
      else p.outer_kept.add({sizes[i], strides[i], out});
    }
    if (!gone) out *= sizes[i];
    total *= sizes[i];
  }
  if (out == 0) return;
  if (total == 0) {  // every result is the identity
    constexpr int64_t most = 64;
    alignas(64) char acc[most * sizeof(Moments)];
    for (int64_t i = 0; i < out; i += most) {
      int64_t n = std::min(out - i, most);
      k->init(acc, n);
      finish.call(finish.context, acc, n, i, 1);
    }
    return;
  }
  p.far = is_prefetched(total * p.item);
  p.outer_kept.sort_and_join();
  p.outer_reduced.sort_and_join();
  p.kept = p.outer_kept.take_last({1, 0, 1});
  p.reduced = p.outer_reduced.take_last({1, 0, 0});
  p.by_columns = p.kept.in == 1 && p.reduced.in != 1;
  p.in_strips = p.by_columns && (op == ReduceOp::Moments || finds_index(op));
  if (p.by_columns) {
    const int64_t blocks = (p.kept.size + kStrip - 1) / kStrip;
    p.kept_per_call = std::min(p.kept.size, ((p.kept.size + blocks - 1) / blocks + 63) / 64 * 64);
    const int64_t most = 4096 * std::max<int64_t>(1, 64 / p.kept.size);
    const int64_t least = std::max(p.reduced.size / 16, 8 * kGrain / p.kept.size);
    p.chunk = std::clamp<int64_t>((least + 63) / 64 * 64, 64, most);
  } else {
    p.kept_per_call =
        std::clamp<int64_t>(kGrain / (p.reduced.size * p.outer_reduced.count()), 1, 64);
    p.chunk = 32768;
  }
  p.blocks = (p.kept.size + p.kept_per_call - 1) / p.kept_per_call;
  if (p.in_strips && !p.has_few_tasks()) p.chunk = p.reduced.size;
  p.chunks = (p.reduced.size + p.chunk - 1) / p.chunk;
  p.units = p.outer_reduced.count() * p.chunks;
  if (!p.by_columns) p.choose_transposed();
  run(p, finish);
}

}  // namespace taeda::cpu
