// Words that are all different, in order: a key's leading bits above its index. They
// are merged, moved by one digit after the other, or, where they are many, by their leading bits to
// pieces that the caches hold.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/cpu/index/extremes.h"

namespace taeda::cpu {

constexpr int64_t kFewWords = 16;
constexpr int64_t kMostCounted = int64_t{1} << 32;  // more are merged: counts have 32 bits

// rank[i] = how many of the n <= kFewWords keys come before number i. Without branches,
// which cannot be predicted.
template <class U> void rank_few(const U* keys, int64_t n, int* rank) {
  for (int64_t i = 0; i < n; ++i) {
    int before = 0;
    for (int64_t j = 0; j < i; ++j) {
      const int first = keys[j] <= keys[i];
      before += first;
      rank[j] += 1 - first;
    }
    rank[i] = before;
  }
}

// n words that differ in `bits` bits above the lowest `low`. Returns which of the two has them in
// order; both are lost otherwise.
uint64_t* sort_words(uint64_t* words, uint64_t* spare, int64_t n, int low, int bits);

// ---- on all threads ----

// A long line is cut into parts, each of which counts its digits and moves its words side by side
// with the others.
// Of how often each part has each of the `digits`, where its first element with that digit goes.
void counts_to_offsets(std::vector<uint32_t>& counts, size_t digits);

// Neighbouring bins as groups, of `least` elements or more unless a larger bin follows. counts: of
// each part in each bin.
struct Groups {
  std::vector<uint16_t> of_bin;
  std::vector<int64_t> first_bin, first;  // and one more, behind the last group
  Groups(const std::vector<uint32_t>& counts, size_t bins, int64_t least);
};

struct WordsAt {
  const uint64_t* words;
  uint64_t operator()(int64_t i) const { return words[i]; }
};
// What becomes of `n` words in order, of which the first is number `first` of all.
using TakeWords = std::function<void(uint64_t* words, int64_t first, int64_t n)>;

// Words are word(i) for i < n < kMostCounted; otherwise as above. Each piece is taken once it is in
// order.
template <class Word>
void sort_pieces(const Word& word, int64_t n, int low, int bits, uint64_t* to, uint64_t* spare,
                 int64_t offset, const TakeWords& take) {
  constexpr int most_fine = 12;
  constexpr int64_t least = 4096, pieces = 256;
  const int fine = std::min(bits, most_fine), shift = low + bits - fine;
  const size_t bins = size_t{1} << fine, mask = bins - 1;
  const auto parts = static_cast<size_t>(parts_of(n));
  std::vector<uint32_t> counts(bins * parts);
  each_part(n, [&](int64_t p, int64_t first, int64_t m) {
    uint32_t* c = counts.data() + static_cast<size_t>(p) * bins;
    for (int64_t i = first; i < first + m; ++i) ++c[word(i) >> shift & mask];
  });
  const int64_t target = std::max(least, n / pieces);
  const Groups groups(counts, bins, target);
  const auto count = static_cast<int64_t>(groups.first.size()) - 1;
  const auto many = static_cast<size_t>(count);
  std::vector<uint32_t> offsets(many * parts);
  for (size_t p = 0; p < parts; ++p) {
    for (size_t b = 0; b < bins; ++b) offsets[p * many + groups.of_bin[b]] += counts[p * bins + b];
  }
  counts_to_offsets(offsets, many);
  each_part(n, [&](int64_t p, int64_t first, int64_t m) {
    uint32_t* c = offsets.data() + static_cast<size_t>(p) * many;
    for (int64_t i = first; i < first + m; ++i) {
      const uint64_t w = word(i);
      to[c[groups.of_bin[w >> shift & mask]]++] = w;
    }
  });
  const auto sort_group = [&](int64_t g, bool large) {
    const auto at = static_cast<size_t>(g);
    const int64_t first = groups.first[at], m = groups.first[at + 1] - first;
    const int64_t first_bin = groups.first_bin[at], last_bin = groups.first_bin[at + 1] - 1;
    const int rest = shift - low + std::bit_width(static_cast<uint64_t>(first_bin ^ last_bin));
    if (m == 0 || large != (m >= kLongPart && m > 2 * target)) return;
    uint64_t *const from = to + first, *const beside = spare + first;
    if (rest == 0) {
      take(from, offset + first, m);
    } else if (large) {
      sort_pieces(WordsAt{from}, m, low, rest, beside, from, offset + first, take);
    } else {
      take(sort_words(from, beside, m, low, rest), offset + first, m);
    }
  };
  for (int64_t g = 0; g < count; ++g) sort_group(g, true);
  parallel_each(count, 1, [&](int64_t g) { sort_group(g, false); });
}

}  // namespace taeda::cpu
