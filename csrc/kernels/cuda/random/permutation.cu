// Random orders: indices are sorted by random keys, digit after digit from the last on.
#include <bit>

#include "kernels/cuda/random/fill.h"
#include "kernels/cuda/random/tables.h"

namespace taeda::cuda {
namespace {

constexpr int kDigit = 8;  // bits that are sorted by at a time
static_assert(kThreads == 1u << kDigit);
constexpr unsigned kTile = 2048;  // elements of a block

struct Pairs {
  uint64_t* keys;
  int64_t* order;
};

// The digits of this block's elements, and how many it has; the whole block asks.
__device__ unsigned load_digits(const uint64_t* keys, int64_t n, int shift, uint8_t* digits) {
  const int64_t first = int64_t{blockIdx.x} * kTile;
  const auto count = static_cast<unsigned>(n - first < kTile ? n - first : kTile);
  for (unsigned i = threadIdx.x; i < count; i += kThreads)
    digits[i] = static_cast<uint8_t>(keys[first + i] >> shift);
  __syncthreads();
  return count;
}

// counts (digits, blocks): how often each digit is in each block. Thread d counts the digit d.
__global__ void __launch_bounds__(kThreads)
    count_digits(const uint64_t* keys, int64_t n, int shift, uint32_t* counts) {
  __shared__ uint8_t digits[kTile];
  const unsigned in_all = load_digits(keys, n, shift, digits);
  uint32_t count = 0;
  for (unsigned i = 0; i < in_all; ++i) count += digits[i] == threadIdx.x;
  counts[threadIdx.x * gridDim.x + blockIdx.x] = count;
}
// Each of n counts becomes the sum of those before it. One block.
__global__ void __launch_bounds__(kThreads) sum_counts(uint32_t* counts, int64_t n) {
  __shared__ uint32_t sums[kThreads];
  const int64_t part = (n + kThreads - 1) / kThreads, first = threadIdx.x * part;
  const int64_t last = first + part < n ? first + part : n;
  uint32_t sum = 0;
  for (int64_t i = first; i < last; ++i) sum += counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  uint32_t before = 0;
  for (unsigned t = 0; t < threadIdx.x; ++t) before += sums[t];
  for (int64_t i = first; i < last; ++i) {
    const uint32_t count = counts[i];
    counts[i] = before;
    before += count;
  }
}
// Thread d moves the elements with the digit d, in their order.
__global__ void __launch_bounds__(kThreads)
    move_by_digit(Pairs from, Pairs to, int64_t n, int shift, const uint32_t* places) {
  __shared__ uint8_t digits[kTile];
  const unsigned in_all = load_digits(from.keys, n, shift, digits);
  const int64_t first = int64_t{blockIdx.x} * kTile;
  uint32_t place = places[threadIdx.x * gridDim.x + blockIdx.x];
  for (unsigned i = 0; i < in_all; ++i) {
    if (digits[i] != threadIdx.x) continue;
    to.keys[place] = from.keys[first + i];
    to.order[place++] = from.order[first + i];
  }
}

// Elements of equal keys are shuffled, for which the first of them draws.
__device__ void shuffle_equal(Pairs p, int64_t n, int64_t first, Place place) {
  const uint64_t key = p.keys[first];
  if (first > 0 && p.keys[first - 1] == key) return;
  int64_t count = 1;
  while (first + count < n && p.keys[first + count] == key) ++count;
  if (count == 1) return;
  Philox philox(place, static_cast<uint64_t>(first));
  Words words{};
  int64_t* const order = p.order + first;
  for (int64_t i = count - 1, drawn = 0; i > 0; --i, ++drawn) {
    if (drawn % 4 == 0) words = philox.next();
    const int64_t j = words.v[drawn % 4] % static_cast<uint32_t>(i + 1), other = order[j];
    order[j] = order[i];
    order[i] = other;
  }
}

// How many bits keys need so that equal ones are rare among n: as many as PyTorch takes.
int key_bits(int64_t n) {
  const double x = static_cast<double>(n);
  const double pairs = x - (6 * x * x + 1) / (12 * std::log(0.9));
  return std::min(64, static_cast<int>(std::ceil(std::log2(pairs))));
}

// Keys are drawn as random_(least, largest) draws int32, or int64 for more bits than those have.
void draw_keys(Engine& engine, uint64_t* keys, int64_t n, int bits) {
  const uint64_t range = ~uint64_t{0} >> (bits > 32 ? 0 : 32), least = range / 2 + 1;
  const uint64_t mask = ~uint64_t{0} >> (64 - bits);
  fill<Words64>(engine, keys, n, [=] __device__(uint64_t x) { return (x % range + least) & mask; });
}

void permutation(Engine& engine, int64_t* out, int64_t n) {
  if (n == 0) return;
  if (n >= int64_t{1} << 31) missing_kernel();
  const auto size = static_cast<size_t>(n);
  const auto blocks = static_cast<unsigned>((n + kTile - 1) / kTile);
  const Workspace keys(2 * size * sizeof(uint64_t)), order(size * sizeof(int64_t));
  const Workspace room(size_t{kThreads} * blocks * sizeof(uint32_t));
  uint32_t* const counts = room.as<uint32_t>();
  const int bits = key_bits(n), passes = (bits + kDigit - 1) / kDigit;
  Pairs from{keys.as<uint64_t>(), out}, to{keys.as<uint64_t>() + n, order.as<int64_t>()};
  if (passes % 2) std::swap(from.order, to.order);  // so that they end in `out`
  draw_keys(engine, from.keys, n, bits);
  each(n, [=] __device__(int64_t i) { from.order[i] = i; });
  for (int shift = 0; shift < bits; shift += kDigit) {
    launch(count_digits, blocks, kThreads, 0, from.keys, n, shift, counts);
    launch(sum_counts, 1, kThreads, 0, counts, int64_t{kThreads} * blocks);
    launch(move_by_digit, blocks, kThreads, 0, from, to, n, shift, counts);
    std::swap(from, to);
  }
  const Place place{engine.initial_seed(), engine.take(static_cast<uint64_t>(n))};
  each(n, [=] __device__(int64_t i) { shuffle_equal(from, n, i, place); });
}

const DrawKernels table{permutation};

}  // namespace

void add_permutation_tables(std::vector<DeviceTable>& to) { to.push_back(device_table(table)); }

}  // namespace taeda::cuda
