// One element of each line by its rank.
#include <vector>

#include "kernels/cpu/sort_keys.h"

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

// The key of rank r among n of them, which are moved about, and how many are less.
template <class U> struct Ranked {
  U key;
  int64_t less;
};
template <class U> Ranked<U> key_of_rank(U* keys, int64_t n, int64_t r) {
  int64_t less = 0;
  while (n > 64) {  // keeps those that share the high bits of their distance from the least
    const auto [low, most] = range_of(keys, n);
    const U distance = static_cast<U>(most - low);
    if (distance == 0) return {low, less};
    const int bits = n > 2048 ? 8 : 6;
    const int shift = std::max(0, static_cast<int>(std::bit_width(distance)) - bits);
    const auto part = [low, shift](U key) {
      return static_cast<size_t>(static_cast<U>(key - low) >> shift);
    };
    int64_t counts[256] = {}, before = 0, kept = 0;
    for (int64_t i = 0; i < n; ++i) ++counts[part(keys[i])];
    size_t p = 0;
    for (; before + counts[p] <= r; ++p) before += counts[p];
    for (int64_t i = 0; i < n; ++i) {
      const U key = keys[i];
      keys[kept] = key;
      kept += part(key) == p;
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

template <class T>
void select_typed(const T* x, T* values, int64_t* indices, const SortLines& l, Select what,
                  int64_t rank) {
  for_each_line(l, [&](int64_t begin, int64_t end) {
    using U = Bits<T>;
    constexpr U nan = static_cast<U>(~U(0));
    std::vector<U> keys(static_cast<size_t>(l.n));
    for (int64_t i = begin; i < end; ++i) {
      Line at = line_at(l, i);
      const T* p = x + at.x;
      write_keys(p, l.x_stride, l.n, U(0), keys.data());
      int64_t nans = 0;
      if constexpr (kFloat<T>) nans = count_key(keys.data(), l.n, nan);
      int64_t r = rank, place;
      if (what == Select::Median) r = (l.n - 1) / 2;
      if (what == Select::NanMedian) r = nans < l.n ? (l.n - nans - 1) / 2 : 0;
      if (what == Select::Median && nans > 0) {
        place = place_of_key(p, l.x_stride, l.n, nan, 0);
      } else {
        const auto [key, less] = key_of_rank(keys.data(), l.n, r);
        place = place_of_key(p, l.x_stride, l.n, key, r - less);
      }
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
