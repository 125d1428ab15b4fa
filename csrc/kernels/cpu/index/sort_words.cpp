#include "kernels/cpu/index/sort_words.h"

#include <array>
#include <utility>

namespace taeda::cpu {
namespace {

constexpr int kMostBits = 10;

// Two halves in order, of lengths that differ by one at most, from both ends at once: neither end
// can leave its half.
void merge_halves(const uint64_t* from, uint64_t* to, int64_t n) {
  const int64_t half = n / 2;
  int64_t a = 0, b = half, y = half - 1, z = n - 1;
  for (int64_t i = 0; i < half; ++i) {
    const bool second = from[b] < from[a];
    to[i] = second ? from[b] : from[a];
    b += second;
    a += !second;
    const bool first = from[z] < from[y];
    to[n - 1 - i] = first ? from[y] : from[z];
    y -= first;
    z -= !first;
  }
  if (n & 1) to[half] = from[a <= y ? a : b];
}

// `spare` is as long.
void merge_sort(uint64_t* words, uint64_t* spare, int64_t n) {
  if (n <= kFewWords) {
    int rank[kFewWords];
    rank_few(words, n, rank);
    std::copy_n(words, n, spare);
    for (int64_t i = 0; i < n; ++i) words[rank[i]] = spare[i];
    return;
  }
  const int64_t half = n / 2;
  merge_sort(words, spare, half);
  merge_sort(words + half, spare + half, n - half);
  std::copy_n(words, n, spare);
  merge_halves(spare, words, n);
}

// As few digits as do not take longer to look through than the words: the first cache has room for
// as many lines to write to as the narrow ones have.
int digit_bits(int64_t n) { return n < 4096 ? 8 : kMostBits; }

using Counts = std::array<uint32_t, size_t{1} << kMostBits>;

// Moves words to the offsets of their digits from bit `shift` on, of which `counts` says how many
// there are; where Next, the next digits are counted meanwhile.
template <bool Next>
void move_words(const uint64_t* from, uint64_t* to, int64_t n, int shift, int width, Counts& counts,
                Counts& next) {
  const size_t digits = size_t{1} << width, mask = digits - 1;
  uint32_t sum = 0;
  for (size_t d = 0; d < digits; ++d) sum += std::exchange(counts[d], sum);
  if constexpr (Next) std::fill_n(next.begin(), digits, 0);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t w = from[i];
    to[counts[w >> shift & mask]++] = w;
    if constexpr (Next) ++next[w >> shift >> width & mask];
  }
}

// By digits of `width` bits from bit `low` up to bit `end`, the least significant first.
uint64_t* digit_sort(uint64_t* from, uint64_t* to, int64_t n, int low, int end, int width) {
  Counts tables[2];
  const size_t mask = (size_t{1} << width) - 1;
  std::fill_n(tables[0].begin(), mask + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++tables[0][from[i] >> low & mask];
  for (int shift = low, turn = 0; shift < end; shift += width, turn ^= 1) {
    Counts &counts = tables[turn], &next = tables[turn ^ 1];
    if (shift + width < end) move_words<true>(from, to, n, shift, width, counts, next);
    else move_words<false>(from, to, n, shift, width, counts, next);
    std::swap(from, to);
  }
  return from;
}

}  // namespace

void counts_to_offsets(std::vector<uint32_t>& counts, size_t digits) {
  uint32_t sum = 0;
  for (size_t d = 0; d < digits; ++d) {
    for (size_t i = d; i < counts.size(); i += digits) sum += std::exchange(counts[i], sum);
  }
}

uint64_t* sort_words(uint64_t* words, uint64_t* spare, int64_t n, int low, int bits) {
  const int size_bits = std::bit_width(static_cast<uint64_t>(n)), most = digit_bits(n);
  // What each costs, measured.
  const int digits = (bits + most - 1) / most, width = (bits + digits - 1) / digits;
  const int64_t by_digits = digits * (7 * n + (int64_t{2} << width));
  const int64_t by_merging = n * (20 + 4 * size_bits);
  if (by_digits < by_merging && n < kMostCounted)
    return digit_sort(words, spare, n, low, low + bits, width);
  merge_sort(words, spare, n);
  return words;
}

Groups::Groups(const std::vector<uint32_t>& counts, size_t bins, int64_t least) : of_bin(bins) {
  int64_t before = 0, here = 0;  // elements of earlier groups, and of this one
  for (size_t b = 0; b < bins; ++b) {
    int64_t bin = 0;
    for (size_t i = b; i < counts.size(); i += bins) bin += counts[i];
    if (b == 0 || here >= least || bin >= least) {
      before += here;
      here = 0;
      first_bin.push_back(static_cast<int64_t>(b));
      first.push_back(before);
    }
    here += bin;
    of_bin[b] = static_cast<uint16_t>(first.size() - 1);
  }
  first_bin.push_back(static_cast<int64_t>(bins));
  first.push_back(before + here);
}

}  // namespace taeda::cpu
