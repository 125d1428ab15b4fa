#include "kernels/cpu/pointwise/pointwise.h"

#include <cstring>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"
#include "tensor/plan.h"

namespace taeda {

#if defined(__x86_64__)
namespace v2 {
const LoopTable& loop_table();
}
namespace v3 {
const LoopTable& loop_table();
}
namespace v4 {
const LoopTable& loop_table();
}
#else
namespace base {
const LoopTable& loop_table();
}
#endif

const LoopTable& loops() {
#if defined(__x86_64__)
  static const LoopTable& table = cpu_level() >= CpuLevel::v4   ? v4::loop_table()
                                  : cpu_level() == CpuLevel::v3 ? v3::loop_table()
                                                                : v2::loop_table();
  return table;
#else
  return base::loop_table();
#endif
}

void division_by_zero() { fail("ZeroDivisionError"); }

namespace {

constexpr int kMax = Plan::kMaxOperands;
constexpr int64_t kBlockBytes = 8192;  // of each operand: what fits into the first cache together
constexpr int64_t kBlockItems = 1024;
constexpr int64_t kFilledItems = 256;  // of a block whose operand holds one value for a row
constexpr int64_t kGrain = 32768;      // elements that are worth a thread's attention
constexpr int64_t kLongRow = 128;      // rows from here on are walked one by one

// How a block of an operand gets to the loop.
enum class Way : uint8_t {
  Direct,    // the loop reads and writes the tensor's memory
  Constant,  // one value: a buffer filled once
  Periodic,  // the same row again and again: a buffer filled once with as many rows as a block has
  Buffer,    // gathered and converted block by block
  Shared,    // what an earlier operand is: one buffer serves both
};

struct Walk {
  const Plan& plan;
  Loop loop;
  const uint8_t* compute;
  Way way[kMax];
  int buffer_of[kMax];  // whose buffer the loop reads
  bool long_rows;
  int64_t inner, rows, block_items, rows_per_block, blocks_per_row, blocks;

  Walk(const Plan& p, Loop l, const uint8_t* c) : plan(p), loop(l), compute(c) {
    inner = p.sizes[0];
    rows = p.numel / inner;
    block_items = kBlockItems;
    for (int k = 0; k < p.count; ++k) {
      block_items =
          std::min(block_items, kBlockBytes / static_cast<int64_t>(itemsize(DType(c[k]))));
    }
    long_rows = rows == 1 || inner >= kLongRow;
    if (long_rows) {
      for (int k = 1; k < p.count; ++k) {
        if (p.strides[k][0] == 0 && !p.constant(k))
          block_items = std::min(block_items, kFilledItems);
      }
      blocks_per_row = (inner + block_items - 1) / block_items;
      rows_per_block = 1;
      blocks = rows * blocks_per_row;
    } else {
      rows_per_block = block_items / inner;
      blocks_per_row = 1;
      blocks = (rows + rows_per_block - 1) / rows_per_block;
    }
    for (int k = 0; k < p.count; ++k) {
      way[k] = choose(k);
      buffer_of[k] = k;
      for (int j = 1; j < k && way[k] != Way::Direct; ++j) {
        if (!alike(j, k)) continue;
        way[k] = Way::Shared;
        buffer_of[k] = j;
        break;
      }
    }
  }

  bool alike(int j, int k) const {
    return plan.data[j] == plan.data[k] && plan.dtype[j] == plan.dtype[k] &&
           compute[j] == compute[k] && way[j] != Way::Shared &&
           same(plan.strides[j], plan.strides[k]);
  }

  Way choose(int k) const {
    const bool same_type = static_cast<uint8_t>(plan.dtype[k]) == compute[k];
    const Dims& s = plan.strides[k];
    if (same_type &&
        (plan.dense(k) || (long_rows && s[0] == static_cast<int64_t>(itemsize(plan.dtype[k]))))) {
      return Way::Direct;
    }
    if (k == 0) return Way::Buffer;
    if (plan.constant(k)) return Way::Constant;
    bool repeats = !long_rows;
    for (size_t d = 1; d < s.size(); ++d) repeats &= s[d] == 0;
    return repeats ? Way::Periodic : Way::Buffer;
  }

  // dst = src, operand k on its way to the loop.
  void cast_in(int k, char* dst, int64_t d0, int64_t d1, const char* src, int64_t s0, int64_t s1,
               int64_t n0, int64_t n1) const {
    cast_rows(compute[k], static_cast<uint8_t>(plan.dtype[k]), dst, d0, d1, src, s0, s1, n0, n1);
  }

  // Moves rows [row, row + n) of operand k between memory and a buffer.
  void move_rows(int k, char* buffer, int64_t row, int64_t n) const {
    const Dims& s = plan.strides[k];
    const auto item = static_cast<int64_t>(itemsize(DType(compute[k])));
    const int64_t d1 = plan.sizes.size() > 1 ? plan.sizes[1] : 1,
                  s1 = plan.sizes.size() > 1 ? s[1] : 0;
    while (n > 0) {
      const int64_t run = std::min(n, d1 - row % d1);
      char* p = plan.data[k] + plan.row_offset(k, row);
      if (k == 0) {
        cast_rows(static_cast<uint8_t>(plan.dtype[0]), compute[0], p, s[0], s1, buffer, item,
                  item * inner, inner, run);
      } else {
        cast_in(k, buffer, item, item * inner, p, s[0], s1, inner, run);
      }
      buffer += run * inner * item;
      row += run;
      n -= run;
    }
  }

  void operator()(int64_t begin, int64_t end) const {
    alignas(64) char buffers[kMax][kBlockBytes];
    const void* in[kMax];
    for (int k = 1; k < plan.count; ++k) {
      const auto item = static_cast<int64_t>(itemsize(DType(compute[k])));
      in[k - 1] = buffers[buffer_of[k]];
      if (way[k] == Way::Constant) {
        const int64_t n =
            long_rows ? std::min(inner, block_items) : inner * std::min(rows, rows_per_block);
        cast_in(k, buffers[k], item, 0, plan.data[k], 0, 0, n, 1);
      } else if (way[k] == Way::Periodic) {
        const int64_t n = std::min(rows, rows_per_block);
        cast_in(k, buffers[k], item, item * inner, plan.data[k], plan.strides[k][0], 0, inner, n);
      }
    }
    if (long_rows && only_filled()) walk_filled(begin, end, buffers, in);
    else if (long_rows) walk_long(begin, end, buffers, in);
    else walk_short(begin, end, buffers, in);
  }

  // Whether nothing goes through a buffer but one value for all or for a whole row.
  bool only_filled() const {
    bool yes = way[0] == Way::Direct;
    for (int k = 1; k < plan.count; ++k) yes &= way[k] != Way::Buffer || plan.strides[k][0] == 0;
    return yes;
  }

  int64_t offset_of(int k, int64_t row) const {
    return plan.sizes.size() == 2 ? row * plan.strides[k][1] : plan.row_offset(k, row);
  }

  void walk_filled(int64_t begin, int64_t end, char (*buffers)[kBlockBytes],
                   const void** in) const {
    int64_t row = begin / blocks_per_row, block = begin % blocks_per_row;
    for (int64_t left = end - begin; left > 0; ++row, block = 0) {
      const int64_t last = std::min(blocks_per_row, block + left);
      left -= last - block;
      char* place[kMax];
      int64_t step[kMax];
      int moving = 0, which[kMax];
      for (int k = 0; k < plan.count; ++k) {
        char* p = plan.data[k] + offset_of(k, row);
        if (way[k] == Way::Direct) {
          step[moving] = block_items * plan.strides[k][0];
          place[moving] = p + block * step[moving];
          which[moving++] = k - 1;
        } else if (way[k] == Way::Buffer) {
          const auto item = static_cast<int64_t>(itemsize(DType(compute[k])));
          cast_in(k, buffers[k], item, 0, p, 0, 0, std::min(inner, block_items), 1);
        }
      }
      for (; block < last; ++block) {
        for (int i = 1; i < moving; ++i) {
          in[which[i]] = place[i];
          place[i] += step[i];
        }
        loop(place[0], in, std::min(block_items, inner - block * block_items));
        place[0] += step[0];
      }
    }
  }

  void walk_long(int64_t begin, int64_t end, char (*buffers)[kBlockBytes], const void** in) const {
    int64_t row = begin / blocks_per_row, column = begin % blocks_per_row * block_items;
    bool new_row = true;
    int64_t offset[kMax] = {};
    for (int64_t b = begin; b < end; ++b) {
      const int64_t n = std::min(block_items, inner - column);
      if (new_row) {
        for (int k = 0; k < plan.count; ++k) offset[k] = offset_of(k, row);
      }
      char* out = buffers[0];
      for (int k = 0; k < plan.count; ++k) {
        const int64_t step = plan.strides[k][0];
        char* p = plan.data[k] + offset[k] + column * step;
        if (way[k] == Way::Direct) {
          if (k == 0) out = p;
          else in[k - 1] = p;
        } else if (way[k] == Way::Buffer && k > 0) {
          const auto item = static_cast<int64_t>(itemsize(DType(compute[k])));
          if (step != 0) cast_in(k, buffers[k], item, 0, p, step, 0, n, 1);
          else if (new_row)
            cast_in(k, buffers[k], item, 0, p, 0, 0, std::min(inner, block_items), 1);
        }
      }
      loop(out, in, n);
      if (way[0] == Way::Buffer) {
        const int64_t step = plan.strides[0][0];
        cast_rows(static_cast<uint8_t>(plan.dtype[0]), compute[0],
                  plan.data[0] + offset[0] + column * step, step, 0, out,
                  static_cast<int64_t>(itemsize(DType(compute[0]))), 0, n, 1);
      }
      column += block_items;
      new_row = column >= inner;
      if (new_row) {
        column = 0;
        ++row;
      }
    }
  }

  void walk_short(int64_t begin, int64_t end, char (*buffers)[kBlockBytes], const void** in) const {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t row = b * rows_per_block, n = std::min(rows_per_block, rows - row);
      char* out = buffers[0];
      for (int k = 0; k < plan.count; ++k) {
        if (way[k] == Way::Direct) {
          char* p = plan.data[k] + row * inner * static_cast<int64_t>(itemsize(plan.dtype[k]));
          if (k == 0) out = p;
          else in[k - 1] = p;
        } else if (way[k] == Way::Buffer && k > 0) {
          move_rows(k, buffers[k], row, n);
        }
      }
      loop(out, in, n * inner);
      if (way[0] == Way::Buffer) move_rows(0, out, row, n);
    }
  }
};

constexpr int64_t kStreamBlock = 512;  // longer bursts of writing disturb the reading
constexpr int64_t kStreamAhead = 8192;

// Whether a result is stored past the caches: one stretch of memory, and so are the operands that
// are not numbers. What takes an operand's place has been read, and is stored where it lies.
bool streams(const Walk& walk) {
  const Plan& plan = walk.plan;
  if (walk.rows != 1 || walk.way[0] != Way::Direct || !plan.dense(0) ||
      reinterpret_cast<uintptr_t>(plan.data[0]) % 64 != 0 ||
      !cpu::is_streamed(plan.numel * static_cast<int64_t>(itemsize(plan.dtype[0]))))
    return false;
  for (int k = 1; k < plan.count; ++k) {
    const Way way = walk.way[walk.buffer_of[k]];
    if (way != Way::Constant && (way != Way::Direct || plan.data[k] == plan.data[0])) return false;
  }
  return true;
}

// Reads a byte of each cache line. Loads under a mask, which choices become, start none of the
// machine's own prefetching; these do.
void touch(const char* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) (void)*static_cast<const volatile char*>(p + i);
}
void ask_for(const char* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
}

// A functor that takes long, with a loop for this.
bool run_past(const Walk& walk, const Loops* forms) {
  constexpr auto wide = static_cast<uint8_t>(DType::Float32);
  if (!forms || !forms->past || walk.compute[0] != wide || walk.way[1] != Way::Direct) return false;
  const Plan& plan = walk.plan;
  constexpr int64_t line = 16, item = 4;
  parallel_for((plan.numel + line - 1) / line, kGrain / line, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * line, n = std::min(end * line, plan.numel) - first;
    const void* in[] = {plan.data[1] + first * item};
    forms->past(plan.data[0] + first * item, in, n);
  });
  return true;
}

// Block by block. The first `masked` operands may be loaded under a mask.
void run_streamed(const Walk& walk, int masked) {
  constexpr int64_t kWidest = 16;  // bytes of an element
  const Plan& plan = walk.plan;
  const auto item = static_cast<int64_t>(itemsize(plan.dtype[0]));
  int direct = 0;  // the machine's prefetching keeps up with two operands, but not quite with one
  for (int k = 1; k < plan.count; ++k) direct += walk.way[k] == Way::Direct;
  const cpu::simd::Stream& kernels = cpu::simd::streams();
  const int64_t block = kStreamBlock / item, blocks = (plan.numel + block - 1) / block;
  parallel_for(blocks, kGrain / block, [&](int64_t begin, int64_t end) {
    alignas(64) char buffer[kStreamBlock], numbers[kMax][kStreamBlock * kWidest];
    const void* in[kMax];
    for (int k = 1; k < plan.count; ++k) {
      in[k - 1] = numbers[walk.buffer_of[k]];
      if (walk.way[k] == Way::Constant) {
        const auto step = static_cast<int64_t>(itemsize(DType(walk.compute[k])));
        walk.cast_in(k, numbers[k], step, 0, plan.data[k], 0, 0, block, 1);
      }
    }
    for (int64_t b = begin; b < end; ++b) {
      const int64_t i = b * block, n = std::min(block, plan.numel - i);
      for (int k = 1; k < plan.count; ++k) {
        if (walk.way[k] != Way::Direct) continue;
        const char* from = plan.data[k] + i * plan.strides[k][0];
        in[k - 1] = from;
        const int64_t bytes = n * plan.strides[k][0];
        if (direct == 1) ask_for(from + kStreamAhead, bytes);
        else if (k <= masked) touch(from, bytes);
      }
      walk.loop(buffer, in, n);
      char* to = plan.data[0] + i * item;
      kernels.store(to, buffer, n * item / 64);
      const int64_t whole = n * item / 64 * 64;
      std::memcpy(to + whole, buffer + whole, static_cast<size_t>(n * item - whole));
    }
    kernels.fence();
  });
}

// Lines of one operand with a number for each: nothing goes through a buffer. False where the
// operands are not such.
bool run_lines(const Plan& plan, const LineLoop (*line)[2], const uint8_t* compute) {
  constexpr int64_t kShortest = 8, kLongest = 2 * kGrain;
  const int64_t n = plan.sizes[0];
  if (plan.sizes.size() < 2 || n < kShortest || plan.numel == n) return false;
  for (int k = 0; k < 3; ++k) {
    if (static_cast<uint8_t>(plan.dtype[k]) != compute[0] || compute[k] != compute[0]) return false;
  }
  const DType d = plan.dtype[0];
  if (d != DType::Float32 && d != DType::Float64) return false;
  const auto item = static_cast<int64_t>(itemsize(d));
  const int number = plan.strides[1][0] == 0 ? 1 : 2, other = 3 - number;
  if (plan.strides[number][0] != 0 || plan.strides[other][0] != item || plan.strides[0][0] != item)
    return false;
  const LineLoop loop = line[number - 1][d == DType::Float64];
  // Long lines are cut, so that there is something to share among threads.
  const int64_t parts = n > kLongest ? (n + kGrain - 1) / kGrain : 1;
  const int64_t length = parts > 1 ? kGrain : n, rows = plan.numel / n, d1 = plan.sizes[1];
  parallel_for(rows * parts, std::max<int64_t>(1, kGrain / length),
               [&](int64_t begin, int64_t end) {
                 while (begin < end) {
                   const int64_t row = begin / parts, first = begin % parts * length;
                   const int64_t run = parts > 1 ? 1 : std::min(d1 - row % d1, end - row);
                   char* p[3];
                   for (int k = 0; k < 3; ++k)
                     p[k] = plan.data[k] + plan.row_offset(k, row) + first * plan.strides[k][0];
                   loop(p[0], plan.strides[0][1], p[other], plan.strides[other][1], p[number],
                        plan.strides[number][1], run, std::min(length, n - first));
                   begin += run;
                 }
               });
  return true;
}

// One stretch of memory and one number: that does not go through a buffer either.
bool run_number(const Plan& plan, const LineLoop (*line)[2], const uint8_t* compute) {
  const DType d = plan.dtype[0];
  if (plan.sizes.size() != 1 || plan.numel < 2) return false;
  if (d != DType::Float32 && d != DType::Float64) return false;
  const int number = plan.strides[1][0] == 0 ? 1 : 2, other = 3 - number;
  const auto as = static_cast<uint8_t>(d);
  const auto item = static_cast<int64_t>(itemsize(d));
  if (plan.dtype[other] != d || compute[0] != as || compute[1] != as || compute[2] != as ||
      plan.strides[number][0] != 0 || plan.strides[other][0] != item || plan.strides[0][0] != item)
    return false;
  alignas(8) char value[8];
  cast_rows(as, static_cast<uint8_t>(plan.dtype[number]), value, item, 0, plan.data[number], 0, 0,
            1, 1);
  const LineLoop loop = line[number - 1][d == DType::Float64];
  parallel_for(plan.numel, kGrain, [&](int64_t begin, int64_t end) {
    loop(plan.data[0] + begin * item, 0, plan.data[other] + begin * item, 0, value, 0, 1,
         end - begin);
  });
  return true;
}

// One stretch of memory and two numbers, neither of which is NaN.
bool run_between(const Plan& plan, const BetweenLoop* between, const uint8_t* compute) {
  const DType d = plan.dtype[0];
  if (plan.sizes.size() != 1 || plan.numel < 2 || plan.dtype[1] != d) return false;
  if (d != DType::Float32 && d != DType::Float64) return false;
  const auto as = static_cast<uint8_t>(d);
  const auto item = static_cast<int64_t>(itemsize(d));
  if (plan.strides[0][0] != item || plan.strides[1][0] != item) return false;
  alignas(8) char values[2][8];
  for (int k = 0; k < 4; ++k) {
    if (compute[k] != as || (k > 1 && plan.strides[k][0] != 0)) return false;
  }
  for (int k = 0; k < 2; ++k) {
    double value;
    const auto from = static_cast<uint8_t>(plan.dtype[k + 2]);
    cast_rows(as, from, values[k], item, 0, plan.data[k + 2], 0, 0, 1, 1);
    cast_rows(static_cast<uint8_t>(DType::Float64), from, reinterpret_cast<char*>(&value), 8, 0,
              plan.data[k + 2], 0, 0, 1, 1);
    if (value != value) return false;
  }
  const BetweenLoop loop = between[d == DType::Float64];
  parallel_for(plan.numel, kGrain, [&](int64_t begin, int64_t end) {
    loop(plan.data[0] + begin * item, plan.data[1] + begin * item, values[0], values[1],
         end - begin);
  });
  return true;
}

// One stretch of memory of float16 or bfloat16, perhaps with a number. False where the operands are
// not such.
bool run_halves(const Plan& plan, const HalfLoop* half, const uint8_t* compute) {
  constexpr auto wide = static_cast<uint8_t>(DType::Float32);
  constexpr int64_t item = 2;
  const DType d = plan.dtype[0];
  if (plan.sizes.size() != 1 || (d != DType::Float16 && d != DType::BFloat16) ||
      plan.strides[0][0] != item || compute[0] != wide)
    return false;
  alignas(8) float values[2];
  unsigned numbers = 0;
  for (int k = 1; k < plan.count; ++k) {
    if (compute[k] != wide) return false;
    if (plan.dtype[k] == d && plan.strides[k][0] == item) continue;
    if (plan.strides[k][0] != 0) return false;
    numbers |= 1u << (k - 1);
    cast_rows(wide, static_cast<uint8_t>(plan.dtype[k]), reinterpret_cast<char*>(&values[k - 1]), 4,
              0, plan.data[k], 0, 0, 1, 1);
  }
  parallel_for(plan.numel, kGrain, [&](int64_t begin, int64_t end) {
    const void* in[2];
    for (int k = 1; k < plan.count; ++k) {
      if ((numbers >> (k - 1) & 1) != 0) in[k - 1] = &values[k - 1];
      else in[k - 1] = plan.data[k] + begin * item;
    }
    half[d == DType::BFloat16](plan.data[0] + begin * item, in, numbers, end - begin);
  });
  return true;
}

}  // namespace

void run_loop(const Plan& plan, Loop loop, const uint8_t* compute, bool heavy, const Loops* forms) {
  if (plan.numel == 0) return;
  const bool lines = forms && forms->line[0][0];
  if (lines && run_lines(plan, forms->line, compute)) return;
  if (forms && forms->half[0] && run_halves(plan, forms->half, compute)) return;
  const Walk walk(plan, loop, compute);
  if (streams(walk)) {
    if (run_past(walk, forms)) return;
    if (!heavy) {
      const bool derivative = !forms;  // its choices are of the gradient
      run_streamed(walk, derivative ? 1 : plan.count - 1);
      return;
    }
  }
  if (lines && run_number(plan, forms->line, compute)) return;
  if (forms && forms->between[0] && run_between(plan, forms->between, compute)) return;
  bool direct = walk.rows == 1;
  for (int k = 0; k < plan.count; ++k) direct &= walk.way[k] == Way::Direct;
  if (direct) {  // one long stretch of memory
    parallel_for(plan.numel, kGrain, [&](int64_t begin, int64_t end) {
      const void* in[kMax];
      for (int k = 1; k < plan.count; ++k) in[k - 1] = plan.data[k] + begin * plan.strides[k][0];
      loop(plan.data[0] + begin * plan.strides[0][0], in, end - begin);
    });
    return;
  }
  const int64_t per_block =
      walk.long_rows ? std::min(walk.inner, walk.block_items) : walk.rows_per_block * walk.inner;
  parallel_for(walk.blocks, std::max<int64_t>(1, kGrain / per_block), walk);
}

}  // namespace taeda
