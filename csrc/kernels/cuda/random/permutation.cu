// Random orders: indices are sorted by random keys.
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/random/fill.h"
#include "kernels/cuda/random/tables.h"

namespace taeda::cuda {
namespace {

// Elements of equal keys are shuffled, for which the first of them draws.
__device__ void shuffle_equal(const uint64_t* keys, int64_t* order, int64_t n, int64_t first,
                              Place place) {
  const uint64_t key = keys[first];
  if (first > 0 && keys[first - 1] == key) return;
  int64_t count = 1;
  while (first + count < n && keys[first + count] == key) ++count;
  if (count == 1) return;
  Philox philox(place, static_cast<uint64_t>(first));
  Words words{};
  order += first;
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
  const size_t bytes = static_cast<size_t>(n) * sizeof(uint64_t);
  const Workspace drawn(bytes), sorted(bytes), indices(bytes);
  uint64_t* const keys = sorted.as<uint64_t>();
  int64_t* const from = indices.as<int64_t>();
  const int bits = key_bits(n);
  draw_keys(engine, drawn.as<uint64_t>(), n, bits);
  each(n, [=] __device__(int64_t i) { from[i] = i; });
  sort_pairs(n, bits, drawn.as<uint64_t>(), keys, from, out);
  const Place place = take(engine, n);
  each(n, [=] __device__(int64_t i) { shuffle_equal(keys, out, n, i, place); });
}

const DrawKernels table{permutation};

}  // namespace

void add_permutation_tables(std::vector<DeviceTable>& to) { to.push_back(device_table(table)); }

}  // namespace taeda::cuda
