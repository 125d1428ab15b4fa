#include "kernels/optim.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/nn/simd/optim.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kStepGrain = 1 << 15;      // elements that are worth another thread
constexpr int64_t kChunkOfThread = 1 << 13;  // elements that a thread takes at a time
constexpr int64_t kChunk = 512;              // elements converted at a time where dtypes are mixed
constexpr size_t kOperands = OptimUpdate::kOperands;

char* at(const OptimUpdate& u, size_t k, int64_t i) {
  if (!u.data[k]) return nullptr;
  return static_cast<char*>(u.data[k]) + i * static_cast<int64_t>(itemsize(u.dtypes[k]));
}

void convert(void* to, DType to_dtype, const void* from, DType from_dtype, int64_t n) {
  cast_rows(static_cast<uint8_t>(to_dtype), static_cast<uint8_t>(from_dtype),
            static_cast<char*>(to), static_cast<int64_t>(itemsize(to_dtype)), 0,
            static_cast<const char*>(from), static_cast<int64_t>(itemsize(from_dtype)), 0, n, 1);
}

// Elements [begin, end) of one update, computed in T. Other dtypes are converted through small
// buffers.
template <class T> void run(const OptimUpdate& u, int64_t begin, int64_t end) {
  constexpr DType compute = dtype_of<T>;
  const StepBase& step = std::visit([](const StepBase& s) -> const StepBase& { return s; }, u.step);
  const StepLoop loop = TAEDA_PICK(optim_table).loops[u.step.index()][sizeof(T) == 8];
  std::array<void*, kOperands> pointers{};
  auto as_it_is = [&](size_t k) { return !u.data[k] || u.dtypes[k] == compute; };
  bool direct = true;
  for (size_t k = 0; k < kOperands; ++k) direct = direct && as_it_is(k);
  if (direct) {
    for (size_t k = 0; k < kOperands; ++k) pointers[k] = at(u, k, begin);
    loop(step, pointers.data(), end - begin);
    return;
  }
  alignas(64) T buffers[kOperands][kChunk];
  for (int64_t i = begin; i < end; i += kChunk) {
    const int64_t n = std::min(kChunk, end - i);
    for (size_t k = 0; k < kOperands; ++k) {
      pointers[k] = as_it_is(k) ? at(u, k, i) : static_cast<void*>(buffers[k]);
      if (!as_it_is(k)) convert(pointers[k], compute, at(u, k, i), u.dtypes[k], n);
    }
    loop(step, pointers.data(), n);
    for (size_t k = 0; k < kOperands; ++k) {
      if (k != OptimUpdate::kGradient && !as_it_is(k))
        convert(at(u, k, i), u.dtypes[k], pointers[k], compute, n);
    }
  }
}

void run(const OptimUpdate& u, int64_t begin, int64_t end) {
  if (u.dtypes[0] == DType::Float64) run<double>(u, begin, end);
  else run<float>(u, begin, end);
}

// True if no written buffer overlaps another operand, so that the updates can run in parallel.
bool are_disjoint(std::span<const OptimUpdate> updates) {
  struct Range {
    const char *begin, *end;
    bool written;
  };
  std::vector<Range> all;
  for (const OptimUpdate& u : updates) {
    for (size_t k = 0; k < kOperands; ++k) {
      if (u.data[k] && u.n > 0)
        all.push_back({at(u, k, 0), at(u, k, u.n), k != OptimUpdate::kGradient});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const char *any = nullptr, *written = nullptr;  // the largest end among ranges that begin earlier
  for (const Range& s : all) {
    if (s.begin < (s.written ? any : written)) return false;
    any = std::max(any, s.end);
    if (s.written) written = std::max(written, s.end);
  }
  return true;
}

// In parallel over the concatenation of all parameters, or one after the other if they share
// memory.
void step(std::span<const OptimUpdate> updates) {
  int64_t total = 0;
  for (const OptimUpdate& u : updates) total += u.n;
  if (total <= kStepGrain || !are_disjoint(updates)) {
    for (const OptimUpdate& u : updates)
      parallel_for(u.n, kStepGrain, [&](int64_t begin, int64_t end) { run(u, begin, end); });
    return;
  }
  std::vector<int64_t> ends;  // of each update in the concatenation
  ends.reserve(updates.size());
  for (const OptimUpdate& u : updates) ends.push_back((ends.empty() ? 0 : ends.back()) + u.n);
  parallel_for(total, kChunkOfThread, [&](int64_t begin, int64_t end) {
    auto k = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; ++k) {
      const int64_t first = ends[k] - updates[k].n, stop = std::min(end, ends[k]);
      if (stop > begin) run(updates[k], begin - first, stop - first);
      begin = stop;
    }
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::OptimKernels taeda::OptimKernels::cpu = {cpu::step, nullptr};
