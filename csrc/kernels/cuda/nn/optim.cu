// Optimizers' steps: the rules of kernels/functors/optim.h, for many parameters in one launch.
#include "kernels/optim.h"

#include <vector>

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

constexpr int kPerLaunch = 16;  // the arguments of a kernel have 4 KB

// Which of the three states there are.
template <bool A, bool B, bool C> struct States {
  static constexpr bool a = A, b = B, c = C;
};

template <class Rule> struct Update {
  char* data[kMostOperands];
  DType dtypes[kMostOperands];
  int64_t n;
  Rule rule;

  template <class T> __device__ T read(int k, int64_t i) const {
    return load<T>(data[k] + i * size_of(dtypes[k]), dtypes[k]);
  }
  template <class T> __device__ void write(int k, int64_t i, T v) const {
    store(data[k] + i * size_of(dtypes[k]), dtypes[k], v);
  }
};
template <class Rule> struct Updates {
  Update<Rule> all[kPerLaunch];
};
static_assert(sizeof(Updates<portable::Adam>) <= 4000);

template <class T, class Rule, class Has>
__global__ void step_all(const __grid_constant__ Updates<Rule> updates) {
  const Update<Rule>& u = updates.all[blockIdx.y];
  const Rule& o = u.rule;
  const T sign = o.maximize ? T(-1) : T(1), decay = T(o.weight_decay), shrink = T(o.shrink);
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < u.n; i += step) {
    const T p = u.template read<T>(0, i);
    const T g =
        sign * u.template read<T>(OptimUpdate::kGradient, i) + (decay != 0 ? decay * p : T(0));
    T s[3] = {};
    if constexpr (Has::a) s[0] = u.template read<T>(2, i);
    if constexpr (Has::b) s[1] = u.template read<T>(3, i);
    if constexpr (Has::c) s[2] = u.template read<T>(4, i);
    u.write(0, i, o.template f<Has>(p * shrink, g, s));
    if constexpr (Has::a) u.write(2, i, s[0]);
    if constexpr (Has::b) u.write(3, i, s[1]);
    if constexpr (Has::c) u.write(4, i, s[2]);
  }
}

// Runs `count` updates that have the same states, chosen one after the other.
template <class T, class Rule, bool... Known>
void choose(const Updates<Rule>& updates, int count, int64_t longest) {
  constexpr int k = sizeof...(Known), always = count_names(Rule::info.states),
                most = always + count_names(Rule::info.optional);
  if constexpr (k == 3) {
    const dim3 grid(blocks_for(longest), static_cast<unsigned>(count));
    launch(step_all<T, Rule, States<Known...>>, grid, kThreads, 0, updates);
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

template <class Rule> void run(std::span<const OptimUpdate> part) {
  Updates<Rule> updates;
  int64_t longest = 0;
  const bool wide = part[0].dtypes[0] == DType::Float64;
  for (size_t i = 0; i < part.size(); ++i) {
    const OptimUpdate& from = part[i];
    Update<Rule>& to = updates.all[i];
    for (size_t k = 0; k < OptimUpdate::kOperands; ++k) {
      to.data[k] = static_cast<char*>(from.data[k]);
      to.dtypes[k] = from.dtypes[k];
      const bool as_read = from.dtypes[k] == (wide ? DType::Float64 : DType::Float32) ||
                           (!wide && is_half(from.dtypes[k]));
      if (from.data[k] && !as_read) missing_kernel();
    }
    to.n = from.n;
    to.rule = std::get<Rule>(from.step);
    longest = std::max(longest, from.n);
  }
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

const OptimKernels table{step};

}  // namespace

void add_optim_tables(std::vector<DeviceTable>& to) { to.push_back(device_table(table)); }

}  // namespace taeda::cuda
