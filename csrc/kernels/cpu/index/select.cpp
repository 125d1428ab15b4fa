// One element of each line by its rank.
#include <atomic>
#include <optional>
#include <vector>

#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/index/sort_keys.h"

namespace taeda::cpu {
namespace {

template <class U>
[[gnu::optimize("O3"), gnu::noinline]] int64_t count_key(const U* keys, int64_t n, U key) {
  int64_t count = 0;
  for (int64_t first = 0; first < n; first += 128) {
    U some = 0;
    for (int64_t i = first; i < std::min(n, first + 128); ++i)
      some = static_cast<U>(some + (keys[i] == key));
    count += some;
  }
  return count;
}

// Keys by their distance from the least, of which the high bits are looked at.
template <class U> struct Digits {
  U low;
  int shift;
  Digits(Extremes<U> e, int bits)
      : low(e.least),
        shift(std::max(0, static_cast<int>(std::bit_width(static_cast<U>(e.most - low))) - bits)) {}
  size_t operator()(U key) const { return static_cast<size_t>(static_cast<U>(key - low) >> shift); }
};
constexpr size_t kDigits = 256;

template <class U> void count_digits(const U* keys, int64_t n, Digits<U> digit, int64_t* counts) {
  int64_t i = 0;
  if (n > 8192) {  // two tables: a count would wait for itself in the next step
    int64_t others[kDigits] = {};
    for (; i + 2 <= n; i += 2) {
      ++counts[digit(keys[i])];
      ++others[digit(keys[i + 1])];
    }
    for (size_t d = 0; d < kDigits; ++d) counts[d] += others[d];
  }
  for (; i < n; ++i) ++counts[digit(keys[i])];
}

// Finds the key of rank r among n, and how many are less.
template <class U> class RankFinder {
 public:
  struct Ranked {
    U key;
    int64_t less;
  };
  Ranked find(const U* keys, int64_t n, int64_t r) {
    int64_t less = 0;
    while (n > 64) {  // keeps those that share the high bits of their distance from the least
      const Extremes<U> e = extremes_of(keys, n);
      if (e.least == e.most) return {e.least, less};
      const int64_t before = keep_digit(keys, n, Digits<U>(e, n > 2048 ? 8 : 6), r);
      std::swap(kept_, next_);
      keys = kept_.data();
      n = std::ssize(kept_);
      less += before;
      r -= before;
    }
    U few[64];
    std::copy_n(keys, n, few);
    std::nth_element(few, few + r, few + n);
    const U key = few[r];
    return {key, less + std::count_if(few, few + r, [key](U k) { return k < key; })};
  }

 private:
  // Copies to next_ the keys with the digit of the one of rank r; returns how many have lower ones.
  int64_t keep_digit(const U* keys, int64_t n, Digits<U> digit, int64_t r) {
    counts_.assign(kDigits * static_cast<size_t>(parts_of(n)), 0);
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      count_digits(keys + first, m, digit, counts_.data() + static_cast<size_t>(p) * kDigits);
    });
    const auto sum_of = [&](size_t d) {
      int64_t sum = 0;
      for (size_t i = d; i < counts_.size(); i += kDigits) sum += counts_[i];
      return sum;
    };
    size_t d = 0;
    int64_t before = 0, here;
    for (; before + (here = sum_of(d)) <= r; ++d) before += here;
    next_.resize(static_cast<size_t>(here));
    int64_t offset = 0;  // where the keys of each part go
    for (size_t i = d; i < counts_.size(); i += kDigits)
      offset += std::exchange(counts_[i], offset);
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      const size_t at = static_cast<size_t>(p) * kDigits + d;
      const int64_t end = at + kDigits < counts_.size() ? counts_[at + kDigits] : here;
      for (int64_t i = first, k = counts_[at]; i < first + m && k < end; ++i) {
        next_[static_cast<size_t>(k)] = keys[i];
        k += digit(keys[i]) == d;
      }
    });
    return before;
  }
  std::vector<int64_t> counts_;
  std::vector<U> kept_, next_;
};

// Where `key` is for the time after `skip` others.
template <class U> int64_t find_key(const U* keys, int64_t n, U key, int64_t skip) {
  constexpr int64_t block = 512;
  int64_t i = 0;
  for (int64_t here; i + block < n; i += block, skip -= here) {
    here = count_key(keys + i, block, key);
    if (here > skip) break;
  }
  while (keys[i] != key || skip-- > 0) ++i;
  return i;
}

// The rank that is asked for among n keys, of which some are NaN; or none, for the first NaN.
std::optional<int64_t> rank_of(Select what, int64_t rank, int64_t n, int64_t nans) {
  if (what == Select::Rank) return rank;
  if (what == Select::NanMedian) return nans < n ? (n - nans - 1) / 2 : 0;
  return nans > 0 ? std::nullopt : std::optional((n - 1) / 2);
}

template <class T>
int64_t index_in_line(const T* x, const SortLines& l, Select what, int64_t rank,
                      RankFinder<Bits<T>>& finder, Bits<T>* keys) {
  using U = Bits<T>;
  constexpr U nan_key = static_cast<U>(~U(0));
  std::atomic<int64_t> nans{0};
  each_part(l.n, [&](int64_t, int64_t first, int64_t m) {
    write_keys(x + first * l.x_stride, l.x_stride, m, U(0), keys + first);
    if (kFloat<T>) nans += count_key(keys + first, m, nan_key);
  });
  const auto r = rank_of(what, rank, l.n, nans);
  if (!r) return find_key(keys, l.n, nan_key, 0);
  const auto [key, less] = finder.find(keys, l.n, *r);
  return find_key(keys, l.n, key, *r - less);
}

void select_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                  Select what, int64_t rank) {
  visit_sortable(dtype, [&]<class T>(Tag<T>) {
    for_each_line(l, [&](int64_t begin, int64_t end) {
      const Scratch<Bits<T>> keys(l.n);
      RankFinder<Bits<T>> finder;
      for (int64_t i = begin; i < end; ++i) {
        const Line at = line_at(l, i);
        const T* p = static_cast<const T*>(x) + at.x;
        const int64_t index = index_in_line(p, l, what, rank, finder, keys.data());
        static_cast<T*>(values)[at.out] = p[index * l.x_stride];
        indices[at.out] = index;
      }
    });
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::SelectKernels taeda::SelectKernels::cpu = {cpu::select_lines};
