#include "kernels/cpu/pointwise/pointwise.h"

#include <bit>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"
#include "tensor/plan.h"

namespace taeda {

const LoopTable& loops() {
  using namespace cpu::simd;
  return TAEDA_PICK(loop_table);
}

void division_by_zero() { fail("ZeroDivisionError"); }

namespace {

constexpr int kMax = Plan::kMaxOperands;
constexpr int64_t kBlockBytes = 8192;  // of each buffer: all of them fit into the first cache
constexpr int64_t kBlockItems = 1024;
constexpr int64_t kFilledItems = 256;  // where a buffer holds another value for each row
constexpr int64_t kStreamBytes = 512;  // longer bursts of writing disturb the reading
constexpr int64_t kStreamAhead = 8192;
constexpr int64_t kGrain = 32768;   // elements that are worth a thread's attention
constexpr int64_t kLongRow = 128;   // rows from here on are looped over one by one
constexpr int64_t kScalarRow = 8;   // and from here on where each has a scalar
constexpr int64_t kCutRow = 65536;  // longer rows are cut, so that threads have parts to share

// Where the loop finds the elements of an operand.
enum class AccessMode : uint8_t {
  Direct,    // in the tensor's memory
  Scalar,    // one value for a row or for all rows: in a buffer filled with it
  Repeated,  // all rows are the same one: in a buffer filled with as many of it as a block has
  Gathered,  // in a buffer, collected and converted block by block (the output: scattered)
};

// Reads a byte of each cache line. Loads under a mask, which choices become, start none of the
// machine's own prefetching; these do.
void touch(const char* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) (void)*static_cast<const volatile char*>(p + i);
}
void prefetch(const char* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

// Runs a loop over the operands of a plan: over all of their memory at once where it can, else in
// blocks, which are parts of long rows or several short rows.
class LoopRunner {
 public:
  LoopRunner(const Plan& plan, Loop loop, const uint8_t* compute, const Loops* forms, bool heavy)
      : plan_(plan),
        forms_(forms),
        loop_(loop),
        inner_(plan.sizes[0]),
        rows_(plan.numel / inner_),
        long_rows_(rows_ == 1 || inner_ >= kLongRow) {
    for (int k = 0; k < plan.count; ++k)
      operands_[k] = {AccessMode::Gathered, compute[k], k, size_of(compute[k])};
    if (forms) use_scalar_loop();
    direct_ = true;
    for (int k = 0; k < plan.count; ++k) {
      operands_[k].mode = choose_mode(k);
      direct_ &= operands_[k].mode == AccessMode::Direct;
    }
    streamed_ = can_stream();
    own_streamed_loop_ = streamed_ && forms && forms->streamed &&
                         (!forms->slow || cpu::is_streamed_beside_arithmetic()) &&
                         operands_[1].mode == AccessMode::Direct &&
                         operands_[0].dtype == static_cast<uint8_t>(DType::Float32);
    streamed_ &= !heavy;
    if (direct_ && (!streamed_ || own_streamed_loop_)) return;
    for (int k = 2; k < plan.count; ++k) share_buffer(k);
    choose_blocks();
  }

  void run() const {
    if (own_streamed_loop_) {
      run_streamed_loop();
    } else if (direct_ && !streamed_) {
      run_direct();
    } else {
      const int64_t in_block =
          long_rows_ ? std::min(inner_, block_items_) : rows_per_block_ * inner_;
      parallel_for(blocks_, kGrain / in_block,
                   [this](int64_t begin, int64_t end) { run_blocks(begin, end); });
    }
  }

 private:
  struct Operand {
    AccessMode mode;
    uint8_t dtype;  // in which the loop takes it
    int buffer;     // the operand whose buffer it shares
    int64_t item;   // bytes of an element in `dtype`
  };
  // What one thread works with.
  struct Workspace {
    alignas(64) char buffers[kMax][kBlockBytes];
    const void* in[kMax];
  };

  static int64_t size_of(uint8_t dtype) {
    return static_cast<int64_t>(itemsize(static_cast<DType>(dtype)));
  }
  uint8_t stored_dtype(int k) const { return static_cast<uint8_t>(plan_.dtype[k]); }
  bool is_scalar(int k) const { return k > 0 && (scalars_ >> (k - 1) & 1) != 0; }

  // Chooses the functor's loop that takes scalars or half types as they are, where all other
  // operands are contiguous.
  void use_scalar_loop() {
    const int form = static_cast<int>(plan_.dtype[0]) - kFirstFloat;
    if (form < 0 || form >= 4 || !forms_->scalar[form].loop || plan_.numel == 1) return;
    const DType wide = is_half(plan_.dtype[0]) ? DType::Float32 : plan_.dtype[0];
    unsigned scalars = 0, constants = 0;
    for (int k = 0; k < plan_.count; ++k) {
      if (operands_[k].dtype != static_cast<uint8_t>(wide)) return;
      if (k > 0 && plan_.strides[k][0] == 0) {
        scalars |= 1u << (k - 1);
        if (plan_.constant(k)) constants |= 1u << k;
        else if (plan_.dtype[k] != wide) return;
      } else if (plan_.dtype[k] != plan_.dtype[0] ||
                 plan_.strides[k][0] != static_cast<int64_t>(itemsize(plan_.dtype[k]))) {
        return;
      }
    }
    if ((forms_->scalar[form].masks >> scalars & 1) == 0 || (!long_rows_ && inner_ < kScalarRow))
      return;
    scalar_loop_ = forms_->scalar[form].loop;
    scalars_ = scalars;
    constants_ = constants;
    long_rows_ = true;
    for (int k = 0; k < plan_.count; ++k) {
      if ((constants >> k & 1) != 0)
        cast_in(k, reinterpret_cast<char*>(&numbers_[k]), 0, plan_.data[k], 0, 0, 1, 1);
      if (!is_scalar(k)) operands_[k].dtype = stored_dtype(k);
      operands_[k].item = size_of(operands_[k].dtype);
    }
  }

  AccessMode choose_mode(int k) const {
    const Dims& s = plan_.strides[k];
    if (is_scalar(k)) return AccessMode::Direct;
    if (stored_dtype(k) == operands_[k].dtype &&
        ((long_rows_ && s[0] == static_cast<int64_t>(itemsize(plan_.dtype[k]))) || plan_.dense(k)))
      return AccessMode::Direct;
    if (k == 0) return AccessMode::Gathered;
    if (plan_.constant(k) || (long_rows_ && s[0] == 0)) return AccessMode::Scalar;
    bool repeats = !long_rows_;
    for (size_t d = 1; d < s.size(); ++d) repeats &= s[d] == 0;
    return repeats ? AccessMode::Repeated : AccessMode::Gathered;
  }

  void share_buffer(int k) {
    for (int j = 1; j < k && operands_[k].mode != AccessMode::Direct; ++j) {
      if (plan_.data[j] != plan_.data[k] || plan_.dtype[j] != plan_.dtype[k] ||
          operands_[j].dtype != operands_[k].dtype || operands_[j].buffer != j ||
          !same(plan_.strides[j], plan_.strides[k]))
        continue;
      operands_[k].buffer = j;
      return;
    }
  }

  // Whether the result may be written by non-temporal stores: it and all operands but scalars are
  // contiguous. A result that overwrites an operand has just been read into the caches, and is
  // stored there.
  bool can_stream() const {
    if (!cpu::is_streamed(plan_.numel * operands_[0].item) || rows_ != 1 ||
        operands_[0].mode != AccessMode::Direct || !plan_.dense(0) ||
        reinterpret_cast<uintptr_t>(plan_.data[0]) % 64 != 0)
      return false;
    for (int k = 1; k < plan_.count; ++k) {
      if (plan_.constant(k)) continue;
      if (operands_[k].mode != AccessMode::Direct || plan_.data[k] == plan_.data[0]) return false;
    }
    return true;
  }

  void choose_blocks() {
    block_items_ = kBlockItems;
    for (int k = 0; k < plan_.count; ++k) {
      block_items_ = std::min(block_items_, kBlockBytes / operands_[k].item);
      if (long_rows_ && operands_[k].mode == AccessMode::Scalar && !plan_.constant(k))
        block_items_ = std::min(block_items_, kFilledItems);
    }
    if (streamed_) block_items_ = kStreamBytes / operands_[0].item;
    if (long_rows_) {
      blocks_per_row_ = (inner_ + block_items_ - 1) / block_items_;
      blocks_ = rows_ * blocks_per_row_;
    } else {
      rows_per_block_ = block_items_ / inner_;
      blocks_ = (rows_ + rows_per_block_ - 1) / rows_per_block_;
    }
  }

  // Where the loop reads operand k, which lies at an offset from its beginning.
  const void* address(int k, int64_t offset) const {
    if ((constants_ >> k & 1) != 0) return &numbers_[k];
    return plan_.data[k] + offset;
  }

  void call(void* out, const void* const* in, int64_t n) const {
    static constexpr int64_t no_steps[kMax] = {};
    if (scalar_loop_) scalar_loop_(out, in, scalars_, n, 1, no_steps);
    else loop_(out, in, n);
  }

  // The functor's own loop with non-temporal stores.
  void run_streamed_loop() const {
    constexpr int64_t line = 16, bytes = 64;
    parallel_for((inner_ + line - 1) / line, kGrain / line, [&](int64_t begin, int64_t end) {
      const void* in[] = {plan_.data[1] + begin * bytes};
      forms_->streamed(plan_.data[0] + begin * bytes, in,
                       std::min(end * line, inner_) - begin * line);
    });
  }

  // ---- without buffers ----

  void run_direct() const {
    if (rows_ == 1)
      return parallel_for(inner_, kGrain, [this](int64_t begin, int64_t end) {
        run_rows(0, 1, begin, end - begin);
      });
    const int64_t parts = inner_ > kCutRow ? (inner_ + kGrain - 1) / kGrain : 1;
    const int64_t length = parts > 1 ? kGrain : inner_, d1 = plan_.sizes[1];
    parallel_for(rows_ * parts, kGrain / length, [=, this](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t row = begin / parts, first = begin % parts * length;
        const int64_t rows = parts > 1 ? 1 : std::min(d1 - row % d1, end - row);
        run_rows(row, rows, first, std::min(length, inner_ - first));
        begin += rows;
      }
    });
  }

  // Elements [first, first + n) of rows that are equally far from each other.
  void run_rows(int64_t row, int64_t rows, int64_t first, int64_t n) const {
    int64_t offset[kMax], steps[kMax];
    for (int k = 0; k < plan_.count; ++k) {
      offset[k] = plan_.row_offset(k, row) + first * plan_.strides[k][0];
      steps[k] = rows > 1 ? plan_.strides[k][1] : 0;
    }
    const void* in[kMax];
    for (int k = 1; k < plan_.count; ++k) in[k - 1] = address(k, offset[k]);
    if (scalar_loop_) return scalar_loop_(plan_.data[0] + offset[0], in, scalars_, n, rows, steps);
    for (; rows > 0; --rows) {
      loop_(plan_.data[0] + offset[0], in, n);
      offset[0] += steps[0];
      for (int k = 1; k < plan_.count; ++k) in[k - 1] = plan_.data[k] + (offset[k] += steps[k]);
    }
  }

  // ---- with buffers ----

  // dst = src, operand k on its way to the loop, and back from it.
  void cast_in(int k, char* dst, int64_t d1, const char* src, int64_t s0, int64_t s1, int64_t n0,
               int64_t n1) const {
    cast_rows(operands_[k].dtype, stored_dtype(k), dst, operands_[k].item, d1, src, s0, s1, n0, n1);
  }
  void cast_out(char* dst, int64_t d0, int64_t d1, const char* src, int64_t s1, int64_t n0,
                int64_t n1) const {
    cast_rows(stored_dtype(0), operands_[0].dtype, dst, d0, d1, src, operands_[0].item, s1, n0, n1);
  }

  void run_blocks(int64_t begin, int64_t end) const {
    Workspace w;
    const int64_t rows = std::min(rows_, rows_per_block_);
    for (int k = 1; k < plan_.count; ++k) {
      const Operand& o = operands_[k];
      w.in[k - 1] = w.buffers[o.buffer];
      if (o.buffer != k) continue;
      if (o.mode == AccessMode::Repeated)
        cast_in(k, w.buffers[k], o.item * inner_, plan_.data[k], plan_.strides[k][0], 0, inner_,
                rows);
      else if (o.mode == AccessMode::Scalar && plan_.constant(k)) fill(k, w, 0);
    }
    if (long_rows_) run_long_rows(begin, end, w);
    else run_short_rows(begin, end, w);
    if (streamed_) cpu::stream_fence();
  }

  // The value at an offset, for a whole block.
  void fill(int k, Workspace& w, int64_t offset) const {
    const int64_t n =
        long_rows_ ? std::min(inner_, block_items_) : inner_ * std::min(rows_, rows_per_block_);
    cast_in(k, w.buffers[k], 0, plan_.data[k] + offset, 0, 0, n, 1);
  }

  void run_long_rows(int64_t begin, int64_t end, Workspace& w) const {
    int64_t row = begin / blocks_per_row_, block = begin % blocks_per_row_;
    int64_t offset[kMax];
    Dims index(plan_.sizes);
    const size_t dims = index.size();
    for (int k = 0; k < plan_.count; ++k) offset[k] = plan_.row_offset(k, row);
    for (size_t d = 1; d < dims; row /= plan_.sizes[d++]) index[d] = row % plan_.sizes[d];
    for (int64_t left = end - begin; left > 0; block = 0) {
      for (int k = 1; k < plan_.count; ++k) {
        const Operand& o = operands_[k];
        if (o.mode == AccessMode::Scalar && o.buffer == k && !plan_.constant(k))
          fill(k, w, offset[k]);
      }
      const int64_t last = std::min(blocks_per_row_, block + left);
      left -= last - block;
      for (; block < last; ++block) run_block(offset, block * block_items_, w);
      for (size_t d = 1; d < dims; ++d) {  // on to the next row
        const bool carry = ++index[d] == plan_.sizes[d];
        const int64_t steps = carry ? 1 - index[d] : 1;
        for (int k = 0; k < plan_.count; ++k) offset[k] += steps * plan_.strides[k][d];
        if (!carry) break;
        index[d] = 0;
      }
    }
  }

  // The elements of one row from `column` on.
  void run_block(const int64_t* offset, int64_t column, Workspace& w) const {
    const int64_t n = std::min(block_items_, inner_ - column);
    for (int k = 1; k < plan_.count; ++k) {
      const int64_t step = plan_.strides[k][0];
      const int64_t at = offset[k] + column * step;
      if (operands_[k].mode == AccessMode::Direct) w.in[k - 1] = address(k, at);
      else if (operands_[k].mode == AccessMode::Gathered && operands_[k].buffer == k)
        cast_in(k, w.buffers[k], 0, plan_.data[k] + at, step, 0, n, 1);
    }
    char* to = plan_.data[0] + offset[0] + column * plan_.strides[0][0];
    if (streamed_) return stream_block(to, n, w);
    const bool direct = operands_[0].mode == AccessMode::Direct;
    call(direct ? to : w.buffers[0], w.in, n);
    if (!direct) cast_out(to, plan_.strides[0][0], 0, w.buffers[0], 0, n, 1);
  }

  void stream_block(char* to, int64_t n, Workspace& w) const {
    int direct = 0;  // the machine's prefetching keeps up with two operands, but not quite with one
    for (int k = 1; k < plan_.count; ++k) direct += plan_.strides[k][0] != 0;
    // The operands that may be loaded under a mask: of a derivative only the gradient.
    const int masked = forms_ ? plan_.count : 2;
    for (int k = 1; k < plan_.count; ++k) {
      if (plan_.strides[k][0] == 0) continue;
      const auto* from = static_cast<const char*>(w.in[k - 1]);
      const int64_t bytes = n * plan_.strides[k][0];
      if (direct == 1) prefetch(from + kStreamAhead, bytes);
      else if (k < masked) touch(from, bytes);
    }
    call(w.buffers[0], w.in, n);
    cpu::stream_near(to, w.buffers[0], static_cast<size_t>(n * operands_[0].item));
  }

  void run_short_rows(int64_t begin, int64_t end, Workspace& w) const {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t row = b * rows_per_block_, n = std::min(rows_per_block_, rows_ - row);
      for (int k = 1; k < plan_.count; ++k) {
        const Operand& o = operands_[k];
        if (o.mode == AccessMode::Direct) w.in[k - 1] = plan_.data[k] + row * inner_ * o.item;
        else if (o.mode == AccessMode::Gathered && o.buffer == k)
          move_rows(k, w.buffers[k], row, n);
      }
      const bool direct = operands_[0].mode == AccessMode::Direct;
      call(direct ? plan_.data[0] + row * inner_ * operands_[0].item : w.buffers[0], w.in,
           n * inner_);
      if (!direct) move_rows(0, w.buffers[0], row, n);
    }
  }

  // Rows [row, row + n) of operand k into its buffer, of the output out of it.
  void move_rows(int k, char* buffer, int64_t row, int64_t n) const {
    const Dims& s = plan_.strides[k];
    const int64_t in_buffer = operands_[k].item * inner_, d1 = plan_.sizes[1];
    while (n > 0) {
      const int64_t run = std::min(n, d1 - row % d1);
      char* p = plan_.data[k] + plan_.row_offset(k, row);
      if (k == 0) cast_out(p, s[0], s[1], buffer, in_buffer, inner_, run);
      else cast_in(k, buffer, in_buffer, p, s[0], s[1], inner_, run);
      buffer += run * in_buffer;
      row += run;
      n -= run;
    }
  }

  const Plan& plan_;
  const Loops* forms_;  // null for derivatives
  Loop loop_;
  ScalarLoop scalar_loop_ = nullptr;  // instead, where there is one for these operands
  unsigned scalars_ = 0;              // which of its inputs are scalars
  unsigned constants_ = 0;            // which operands are one number for all elements
  double numbers_[kMax];              // those numbers, as the loop takes them
  Operand operands_[kMax];
  bool direct_, streamed_;
  bool own_streamed_loop_;  // the functor's, which stores from registers
  int64_t inner_, rows_;    // elements of a row, and rows
  bool long_rows_;
  int64_t block_items_, rows_per_block_ = 1, blocks_per_row_ = 1, blocks_;
};

const Loops& loops_of(const Functor& f) { return static_cast<const Loops&>(*f.types); }

Loop find_loop(const Loops& l, int part, DType compute) {
  return part == kValue ? l.f[static_cast<size_t>(compute)]
                        : l.d[part - kDerivative][compute == DType::Float64];
}

void run_plan(const Plan& plan, const Functor& f, int part, DType compute) {
  if (plan.numel == 0) return;
  const Loops& l = loops_of(f);
  const bool value = part == kValue;
  uint8_t dtypes[kMax];
  std::fill_n(dtypes, plan.count, static_cast<uint8_t>(compute));
  if (value) dtypes[0] = l.result[static_cast<size_t>(compute)];
  if (l.bool_first) dtypes[value ? 1 : 2] = static_cast<uint8_t>(DType::Bool);
  LoopRunner(plan, find_loop(l, part, compute), dtypes, value ? &l : nullptr,
             value ? l.heavy && !cpu::is_streamed_beside_arithmetic() : l.heavy_derivatives)
      .run();
}

[[gnu::noinline]] void run_repeated(Loop loop, DType compute, void* out, ContiguousInputs in,
                                    int64_t n) {
  alignas(16) char repeated[ContiguousInputs::kMost][kMostRepeated * 16];
  const auto item = static_cast<int64_t>(itemsize(compute));
  for (uint32_t left = in.repeated; left; left &= left - 1) {
    const int k = std::countr_zero(left);
    cast_rows(static_cast<uint8_t>(compute), static_cast<uint8_t>(in.dtype[k]), repeated[k], item,
              0, static_cast<const char*>(in.data[k]), 0, 0, n, 1);
    in.data[k] = repeated[k];
  }
  loop(out, in.data, n);
}

void run_contiguous(const Functor& f, int part, DType compute, void* out,
                    const ContiguousInputs& in, int64_t n) {
  const Loop loop = find_loop(loops_of(f), part, compute);
  if (in.repeated) run_repeated(loop, compute, out, in, n);
  else loop(out, in.data, n);
}

void copy_memory(void* to, const void* from, int64_t bytes) {
  auto* d = static_cast<char*>(to);
  const auto* s = static_cast<const char*>(from);
  parallel_for(bytes, 1 << 18, [&](int64_t begin, int64_t end) {
    const auto part = static_cast<size_t>(end - begin);
    if (cpu::is_streamed(bytes)) {
      cpu::stream_copy(d + begin, s + begin, part);
      cpu::stream_fence();
    } else {
      std::memcpy(d + begin, s + begin, part);
    }
  });
}

void clear_memory(void* to, int64_t bytes) { std::memset(to, 0, static_cast<size_t>(bytes)); }

}  // namespace

Functor find_functor(FunctorList list, int index) {
  const LoopTable& t = loops();
  const LoopList lists[] = {t.arithmetic, t.rounding,   t.logic,      t.math, t.special,
                            t.bessel,     t.polynomial, t.activation, t.loss};
  return {list, static_cast<uint8_t>(index), *lists[static_cast<size_t>(list)] + index};
}

const PointwiseKernels PointwiseKernels::cpu = {run_plan, run_contiguous, run_copy, copy_memory,
                                                clear_memory};

}  // namespace taeda
