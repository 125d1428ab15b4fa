// Optimizers' steps: the rules of kernels/functors/optim.h, for many parameters in one launch.
#include "kernels/optim.h"

#include <optional>
#include <vector>

#include "kernels/cuda/common/vector.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

constexpr int kPerLaunch = 64;  // the arguments of a kernel have 32,764 bytes

// Which of the three states there are.
template <bool A, bool B, bool C> struct States {
  static constexpr bool a = A, b = B, c = C;
};

template <class Rule> struct Update {
  char* data[kMostOperands];
  DType dtypes[kMostOperands];
  bool vectors;  // all operands are aligned for vectors
  int64_t n;
  Rule rule;
  const Rule* counted;  // in the device's memory, where it counts the steps; else null

  template <class T, int N> __device__ Neighbours<T, N> read(int k, int64_t i) const {
    const char* p = data[k] + i * size_of(dtypes[k]);
    if constexpr (N > 1) return load_mixed<T, N>(p, dtypes[k]);
    else return {load<T>(p, dtypes[k])};
  }
  template <class T, int N> __device__ void write(int k, int64_t i, Neighbours<T, N> v) const {
    char* p = data[k] + i * size_of(dtypes[k]);
    if constexpr (N > 1) store_mixed(p, dtypes[k], v);
    else store(p, dtypes[k], v.v[0]);
  }
};
template <class Rule> struct Updates {
  Update<Rule> all[kPerLaunch];
  const float* grad_scale;  // of gradients that are still to be divided by it; else null
  const float* found_inf;
};
static_assert(sizeof(Updates<portable::NAdam>) <= 32000);

// The elements from i on. `scale` is what the gradients are divided by, unless it is 0.
template <class T, int N, class Has, class Rule>
__device__ __forceinline__ void step_at(const Update<Rule>& u, const Rule& o, int64_t i, T scale) {
  const T sign = o.maximize ? T(-1) : T(1), decay = T(o.weight_decay), shrink = T(o.shrink);
  constexpr bool has[3] = {Has::a, Has::b, Has::c};
  Neighbours<T, N> p = u.template read<T, N>(0, i);
  Neighbours<T, N> g = u.template read<T, N>(OptimUpdate::kGradient, i);
  if (scale != 0) {
    for (int j = 0; j < N; ++j) g.v[j] /= scale;
    u.write(OptimUpdate::kGradient, i, g);
  }
  Neighbours<T, N> states[3] = {};
  for (int k = 0; k < 3; ++k)
    if (has[k]) states[k] = u.template read<T, N>(2 + k, i);
  for (int j = 0; j < N; ++j) {
    T s[3] = {states[0].v[j], states[1].v[j], states[2].v[j]};
    const T slope = sign * g.v[j] + (decay != 0 ? decay * p.v[j] : T(0));
    p.v[j] = o.template f<Has>(p.v[j] * shrink, slope, s);
    for (int k = 0; k < 3; ++k) states[k].v[j] = s[k];
  }
  u.write(0, i, p);
  for (int k = 0; k < 3; ++k)
    if (has[k]) u.write(2 + k, i, states[k]);
}

// The rule's numbers are arguments of the kernel, or where the steps are counted on the device,
// there.
template <class T, class Rule, class Has, bool counted>
__global__ void step_all(const __grid_constant__ Updates<Rule> updates) {
  constexpr int vector = 16 / sizeof(T);
  if (updates.found_inf && *updates.found_inf != 0) return;
  const T scale = updates.grad_scale ? T(*updates.grad_scale) : T(0);
  const Update<Rule>& u = updates.all[blockIdx.y];
  const int64_t step = int64_t{gridDim.x} * blockDim.x,
                first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t vectors = u.vectors ? u.n / vector : 0;
  const auto run = [&](const Rule& rule) {
    for (int64_t i = first; i < vectors; i += step)
      step_at<T, vector, Has>(u, rule, i * vector, scale);
    for (int64_t i = vectors * vector + first; i < u.n; i += step)
      step_at<T, 1, Has>(u, rule, i, scale);
  };
  if constexpr (counted) {
    const Rule rule = *u.counted;
    run(rule);
  } else {
    run(u.rule);
  }
}

template <class Rule> struct Counts {
  struct {
    Rule rule;
    float* count;
    float* numbers[2];
    const float* rate;
  } all[kPerLaunch];
  const float* found_inf;
};

// Counts the steps, and makes the numbers that follow from that.
template <class Rule>
__global__ void count_steps(const __grid_constant__ Counts<Rule> counts, Rule* out) {
  if (counts.found_inf && *counts.found_inf != 0) return;  // nobody reads `out` then
  const auto& from = counts.all[threadIdx.x];
  Rule rule = from.rule;
  if (from.rate) rule.set_rate(*from.rate);
  *from.count += 1;
  if constexpr (count_names(Rule::info.numbers) > 1) rule.counted(*from.count, from.numbers);
  else rule.counted(*from.count);
  out[threadIdx.x] = rule;
}

// Runs `count` updates that have the same states, chosen one after the other.
template <class T, class Rule, bool... Known>
void choose(const Updates<Rule>& updates, int count, int64_t longest) {
  constexpr int k = sizeof...(Known), always = count_names(Rule::info.states),
                most = always + count_names(Rule::info.optional);
  if constexpr (k == 3) {
    const dim3 grid(blocks_for((longest + 3) / 4), static_cast<unsigned>(count));
    const auto run = [&](auto kernel) { launch(kernel, grid, kThreads, 0, updates); };
    if constexpr (Rule::info.on_device) {
      if (updates.all[0].counted) return run(step_all<T, Rule, States<Known...>, true>);
    }
    run(step_all<T, Rule, States<Known...>, false>);
  } else if constexpr (k < always || k >= most) {
    choose<T, Rule, Known..., (k < always)>(updates, count, longest);
  } else {
    if (updates.all[0].data[2 + k]) choose<T, Rule, Known..., true>(updates, count, longest);
    else choose<T, Rule, Known..., false>(updates, count, longest);
  }
}

bool alike(const OptimUpdate& a, const OptimUpdate& b) {
  for (size_t k = 2; k < OptimUpdate::kOperands; ++k) {
    if (!a.data[k] != !b.data[k]) return false;
  }
  return (a.dtypes[0] == DType::Float64) == (b.dtypes[0] == DType::Float64);
}
bool meet(const OptimUpdate& a, const OptimUpdate& b) {
  const auto end = [](const OptimUpdate& u) {
    return static_cast<const char*>(u.data[0]) + u.n * size_of(u.dtypes[0]);
  };
  return a.data[0] < end(b) && b.data[0] < end(a);
}

// From `first` on, as many updates as one launch makes: alike, of parameters apart.
size_t run_length(std::span<const OptimUpdate> all, size_t first) {
  size_t n = 1;
  for (; n < kPerLaunch && first + n < all.size(); ++n) {
    const OptimUpdate& next = all[first + n];
    if (!alike(all[first], next)) break;
    for (size_t i = 0; i < n; ++i)
      if (meet(all[first + i], next)) return n;
  }
  return n;
}

template <class Rule> void count_steps_of(std::span<const OptimUpdate> part, Rule* out) {
  if constexpr (Rule::info.on_device) {
    Counts<Rule> counts;
    counts.found_inf = part[0].found_inf;
    for (size_t i = 0; i < part.size(); ++i)
      counts.all[i] = {std::get<Rule>(part[i].step),
                       part[i].count,
                       {part[i].numbers[0], part[i].numbers[1]},
                       part[i].rate};
    launch(count_steps<Rule>, 1, static_cast<unsigned>(part.size()), 0, counts, out);
  } else {
    missing_kernel();
  }
}

template <class Rule> void run(std::span<const OptimUpdate> part) {
  Updates<Rule> updates;
  updates.grad_scale = part[0].grad_scale;
  updates.found_inf = part[0].found_inf;
  int64_t longest = 0;
  std::optional<Workspace> counted;
  if (part[0].count) counted.emplace(part.size() * sizeof(Rule));
  const bool wide = part[0].dtypes[0] == DType::Float64;
  for (size_t i = 0; i < part.size(); ++i) {
    const OptimUpdate& from = part[i];
    Update<Rule>& to = updates.all[i];
    to.vectors = true;
    for (size_t k = 0; k < OptimUpdate::kOperands; ++k) {
      to.data[k] = static_cast<char*>(from.data[k]);
      to.dtypes[k] = from.dtypes[k];
      const bool as_read = from.dtypes[k] == (wide ? DType::Float64 : DType::Float32) ||
                           (!wide && is_half(from.dtypes[k]));
      if (from.data[k] && !as_read) missing_kernel();
      to.vectors &= is_aligned(from.data[k], wide ? 2 : 4, size_of(from.dtypes[k]));
    }
    to.n = from.n;
    to.rule = std::get<Rule>(from.step);
    to.counted = counted ? counted->as<Rule>() + i : nullptr;
    longest = std::max(longest, from.n);
  }
  if (counted) count_steps_of(part, counted->as<Rule>());
  if (longest == 0) return;
  const int count = static_cast<int>(part.size());
  if (wide) choose<double, Rule>(updates, count, longest);
  else choose<float, Rule>(updates, count, longest);
}

void step(std::span<const OptimUpdate> updates) {
  for (size_t first = 0; first < updates.size();) {
    const size_t n = run_length(updates, first);
    const auto part = updates.subspan(first, n);
    std::visit([part]<class Rule>(const Rule&) { run<Rule>(part); }, part[0].step);
    first += n;
  }
}

const OptimKernels table{step, step};

}  // namespace

void add_optim_tables(std::vector<DeviceTable>& to) { to.push_back(device_table(table)); }

}  // namespace taeda::cuda
