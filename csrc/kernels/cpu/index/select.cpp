// One element of each line by its rank.
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
  Digits(U least, U most, int bits)
      : low(least),
        shift(std::max(0, static_cast<int>(std::bit_width(static_cast<U>(most - least))) - bits)) {}
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

// The key of rank r among n of them, which are moved about, and how many are less.
template <class U> struct Ranked {
  U key;
  int64_t less;
};
template <class U> Ranked<U> key_of_rank(U* keys, int64_t n, int64_t r) {
  int64_t less = 0;
  while (n > 64) {  // keeps those that share the high bits of their distance from the least
    const auto [low, most] = extremes_of(keys, n);
    if (low == most) return {low, less};
    const Digits<U> digit(low, most, n > 2048 ? 8 : 6);
    int64_t counts[kDigits] = {}, before = 0, kept = 0;
    count_digits(keys, n, digit, counts);
    size_t d = 0;
    for (; before + counts[d] <= r; ++d) before += counts[d];
    for (int64_t i = 0; i < n; ++i) {
      const U key = keys[i];
      keys[kept] = key;
      kept += digit(key) == d;
    }
    less += before;
    r -= before;
    n = kept;
  }
  std::nth_element(keys, keys + r, keys + n);
  const U key = keys[r];
  return {key, less + std::count_if(keys, keys + r, [key](U k) { return k < key; })};
}

// Where `key` stands for the time after `skip` others.
template <class T>
int64_t place_of_key(const T* x, int64_t stride, int64_t n, Bits<T> key, int64_t skip) {
  constexpr int64_t block = 64;
  Bits<T> keys[block];
  for (int64_t first = 0; first < n; first += block) {
    const int64_t size = std::min(block, n - first);
    write_keys(x + first * stride, stride, size, Bits<T>(0), keys);
    const int64_t found = count_key(keys, size, key);
    if (skip >= found) {
      skip -= found;
      continue;
    }
    for (int64_t j = 0; j < size; ++j) {
      if (keys[j] == key && skip-- == 0) return first + j;
    }
  }
  return n - 1;  // not reached: the key is one of those
}

// The rank that is asked for among n keys, of which some are NaN; or none, for the first NaN.
std::optional<int64_t> rank_of(Select what, int64_t rank, int64_t n, int64_t nans) {
  if (what == Select::Rank) return rank;
  if (what == Select::NanMedian) return nans < n ? (n - nans - 1) / 2 : 0;
  return nans > 0 ? std::nullopt : std::optional((n - 1) / 2);
}

template <class U> constexpr U kNanKey = static_cast<U>(~U(0));

template <class T>
int64_t place_in_line(const T* x, const SortLines& l, Select what, int64_t rank, Bits<T>* keys) {
  write_keys(x, l.x_stride, l.n, Bits<T>(0), keys);
  const int64_t nans = kFloat<T> ? count_key(keys, l.n, kNanKey<Bits<T>>) : 0;
  const auto r = rank_of(what, rank, l.n, nans);
  if (!r) return place_of_key(x, l.x_stride, l.n, kNanKey<Bits<T>>, 0);
  const auto [key, less] = key_of_rank(keys, l.n, *r);
  return place_of_key(x, l.x_stride, l.n, key, *r - less);
}

// The same for a long line, whose parts are first looked at side by side, until those keys are left
// that share the high bits of the one of that rank.
constexpr int64_t kPart = 65536;
template <class T>
int64_t place_in_long(const T* x, const SortLines& l, Select what, int64_t rank, Bits<T>* keys) {
  using U = Bits<T>;
  struct Part {
    Extremes<U> range;
    int64_t nans = 0, counts[kDigits] = {}, at = 0;
  };
  const int64_t length = std::max(kPart, l.n / 64), count = (l.n + length - 1) / length;
  std::vector<Part> parts(static_cast<size_t>(count));
  const auto each = [&](auto&& f) {  // f(part, its first key, how many)
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        f(parts[static_cast<size_t>(p)], p * length, std::min(length, l.n - p * length));
    });
  };
  each([&](Part& p, int64_t first, int64_t m) {
    write_keys(x + first * l.x_stride, l.x_stride, m, U(0), keys + first);
    p.range = extremes_of(keys + first, m);
    if (kFloat<T>) p.nans = count_key(keys + first, m, kNanKey<U>);
  });
  Extremes<U> range = parts[0].range;
  int64_t nans = 0;
  for (const Part& p : parts) {
    range = {std::min(range.least, p.range.least), std::max(range.most, p.range.most)};
    nans += p.nans;
  }
  const auto r = rank_of(what, rank, l.n, nans);
  Ranked<U> found{kNanKey<U>, 0};
  if (r) {
    const Digits<U> digit(range.least, range.most, 8);
    each(
        [&](Part& p, int64_t first, int64_t m) { count_digits(keys + first, m, digit, p.counts); });
    size_t d = 0;
    int64_t before = 0, kept = 0;
    const auto with_digit = [&] {
      int64_t sum = 0;
      for (const Part& p : parts) sum += p.counts[d];
      return sum;
    };
    for (; before + (kept = with_digit()) <= *r; ++d) before += kept;
    int64_t at = 0;
    for (Part& p : parts) {
      p.at = at;
      at += p.counts[d];
    }
    std::vector<U> some(static_cast<size_t>(kept));
    each([&](Part& p, int64_t first, int64_t) {
      U* to = some.data() + p.at;
      for (int64_t i = first, k = 0; k < p.counts[d]; ++i) {
        to[k] = keys[i];
        k += digit(keys[i]) == d;
      }
    });
    found = key_of_rank(some.data(), kept, *r - before);
    found.less += before;
  }
  int64_t first = 0, skip = r ? *r - found.less : 0;
  for (int64_t here; first + kPart < l.n; first += kPart, skip -= here) {
    here = count_key(keys + first, kPart, found.key);
    if (here > skip) break;
  }
  return first + place_of_key(x + first * l.x_stride, l.x_stride, l.n - first, found.key, skip);
}

template <class T>
void select_typed(const T* x, T* values, int64_t* indices, const SortLines& l, Select what,
                  int64_t rank) {
  for_each_line(l, [&](int64_t begin, int64_t end) {
    const Scratch<Bits<T>> keys(l.n);
    for (int64_t i = begin; i < end; ++i) {
      const Line at = line_at(l, i);
      const T* p = x + at.x;
      const int64_t place = l.n > 2 * kPart ? place_in_long(p, l, what, rank, keys.data())
                                            : place_in_line(p, l, what, rank, keys.data());
      values[at.out] = p[place * l.x_stride];
      indices[at.out] = place;
    }
  });
}

}  // namespace

void select_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                  Select what, int64_t rank) {
  visit_sortable(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    select_typed<T>(static_cast<const T*>(x), static_cast<T*>(values), indices, l, what, rank);
  });
}

}  // namespace taeda::cpu
