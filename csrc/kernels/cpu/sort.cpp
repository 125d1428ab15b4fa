#include "kernels/cpu/sort.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/pick.h"
#include "kernels/cpu/simd/select.h"

namespace taeda::cpu {
namespace simd {
namespace {
const SelectKernels& select_loops() { return TAEDA_PICK(select_kernels); }
}  // namespace
}  // namespace simd

namespace {

// ---- keys ----

template <size_t Size> struct KeyBits;
template <> struct KeyBits<1> {
  using type = uint8_t;
};
template <> struct KeyBits<2> {
  using type = uint16_t;
};
template <> struct KeyBits<4> {
  using type = uint32_t;
};
template <> struct KeyBits<8> {
  using type = uint64_t;
};
template <class T> using Bits = typename KeyBits<sizeof(T)>::type;
template <class T>
constexpr bool kFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T> bool is_nan(T v) {
  if constexpr (kFloat<T>) return v != v;
  else return false;
}

template <class T> Bits<T> key_of(T v) {
  using U = Bits<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
  U u = std::bit_cast<U>(v);
  if constexpr (kFloat<T>) {
    if (v != v) return static_cast<U>(~U(0));
    if (v == T(0)) u = 0;
    return static_cast<U>(u & top ? ~u : u | top);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<U>(u ^ top);
  } else {
    return u;
  }
}

// The number with this key, which is number `place` of x.
template <class T> T value_of(Bits<T> key, const T* x, int64_t place) {
  using U = Bits<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
  if constexpr (kFloat<T>) {
    // Both zeros have one key, and so have all NaNs.
    if (key == top || key == static_cast<U>(~U(0))) return x[place];
    return std::bit_cast<T>(static_cast<U>(key & top ? key ^ top : ~key));
  } else if constexpr (std::is_signed_v<T>) {
    return std::bit_cast<T>(static_cast<U>(key ^ top));
  } else {
    return std::bit_cast<T>(key);
  }
}

// A key with its place; keys of up to 32 bits are packed with it into one word, whose order is that
// of the pair.
struct Packed {
  uint64_t word;
  Packed() = default;
  Packed(uint64_t key, uint64_t place) : word(key << 32 | place) {}
  uint64_t key() const { return word >> 32; }
  int64_t place() const { return static_cast<int64_t>(word & 0xffffffff); }
  bool operator<(const Packed& o) const { return word < o.word; }
};
struct Wide {
  uint64_t k, p;
  Wide() = default;
  Wide(uint64_t key, uint64_t place) : k(key), p(place) {}
  uint64_t key() const { return k; }
  int64_t place() const { return static_cast<int64_t>(p); }
  bool operator<(const Wide& o) const { return k != o.k ? k < o.k : p < o.p; }
};

// Least significant digit first; a digit that all keys share is skipped. Each pass counts the
// digits of every part, works out where each part's first entry with a digit goes, and moves the
// parts side by side. n < 2^32.
template <class E> void radix_sort(E* a, E* scratch, int64_t n, int key_bytes) {
  constexpr int kBits = 8;  // as many places to write to as the first cache has room for
  constexpr size_t kSize = size_t(1) << kBits;
  const int64_t parts = std::clamp<int64_t>(n >> 16, 1, 16), length = (n + parts - 1) / parts;
  std::vector<uint32_t> counts(kSize * static_cast<size_t>(parts));
  E *from = a, *to = scratch;
  for (int shift = 0; shift < key_bytes * 8; shift += kBits) {
    const auto digit = [shift](const E& e) { return e.key() >> shift & (kSize - 1); };
    // f(a part's counts, its entries)
    const auto each_part = [&](auto&& f) {
      parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          f(counts.data() + static_cast<size_t>(p) * kSize, from + p * length,
            std::min(length, n - p * length));
        }
      });
    };
    each_part([&](uint32_t* c, const E* e, int64_t m) {
      std::fill_n(c, kSize, 0);
      for (int64_t i = 0; i < m; ++i) ++c[digit(e[i])];
    });
    uint32_t sum = 0;
    bool shared = false;
    for (size_t d = 0; d < kSize; ++d) {
      const uint32_t before = sum;
      for (size_t i = d; i < counts.size(); i += kSize) {
        const uint32_t here = counts[i];
        counts[i] = sum;
        sum += here;
      }
      shared = shared || sum - before == n;
    }
    if (shared) continue;
    each_part([&](uint32_t* c, const E* e, int64_t m) {
      for (int64_t i = 0; i < m; ++i) to[c[digit(e[i])]++] = e[i];
    });
    std::swap(from, to);
  }
  if (from != a) std::memcpy(static_cast<void*>(a), from, static_cast<size_t>(n) * sizeof(E));
}

template <class E>
void sort_entries(std::vector<E>& a, std::vector<E>& scratch, int64_t n, int key_bytes) {
  if (n >= 1024 && n < (int64_t(1) << 32)) {
    scratch.resize(static_cast<size_t>(n));
    radix_sort(a.data(), scratch.data(), n, key_bytes);
  } else {
    std::sort(a.begin(), a.begin() + n);
  }
}

// ---- lines ----

struct Line {
  int64_t x = 0, out = 0;
};
Line line_at(const SortLines& l, int64_t index) {
  Line r;
  for (size_t i = l.outer.size(); i-- > 0;) {
    int64_t at = index % l.outer[i];
    index /= l.outer[i];
    r.x += at * l.x_strides[i];
    r.out += at * l.out_strides[i];
  }
  return r;
}
template <class F> void for_each_line(const SortLines& l, F&& f) {
  int64_t lines = 1;
  for (int64_t s : l.outer) lines *= s;
  parallel_for(lines, std::max<int64_t>(1, 4096 / std::max<int64_t>(l.n, 1)), std::forward<F>(f));
}

// The k smallest entries of a line, made of the keys of its elements, unordered, at the front of
// `a`. Entries above a running bound are dropped at once, and later ones that are equal to it.
template <class E, class Key> void smallest(std::vector<E>& a, int64_t n, int64_t k, Key&& key) {
  if (k == 0) return;
  const auto get = [&](int64_t j) { return E(key(j), static_cast<uint64_t>(j)); };
  auto keep = static_cast<size_t>(k);
  if (k * 4 > n) {
    a.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i)] = get(i);
    if (k < n) std::nth_element(a.begin(), a.begin() + k, a.end());
    return;
  }
  if (k <= 8) {  // kept in order
    a.resize(keep);
    for (int64_t i = 0; i < k; ++i) a[static_cast<size_t>(i)] = get(i);
    std::sort(a.begin(), a.end());
    uint64_t bound = a.back().key();
    for (int64_t i = k; i < n; ++i) {
      if (key(i) >= bound) continue;
      const E e = get(i);
      size_t at = keep - 1;
      for (; at > 0 && e < a[at - 1]; --at) a[at] = a[at - 1];
      a[at] = e;
      bound = a.back().key();
    }
    return;
  }
  size_t room = std::max<size_t>(2 * keep, keep + 64);
  a.resize(room);
  size_t have = 0;
  const auto first = std::min(n, static_cast<int64_t>(room));
  for (int64_t i = 0; i < first; ++i) a[have++] = get(i);
  uint64_t bound = 0;
  const auto cut = [&] {
    std::nth_element(a.begin(), a.begin() + k - 1, a.end());
    bound = a[keep - 1].key();
    have = keep;
  };
  if (have == room) cut();
  for (int64_t i = first; i < n; ++i) {
    if (key(i) >= bound) continue;
    a[have++] = get(i);
    if (have == room) cut();
  }
  if (have > keep)
    std::nth_element(a.begin(), a.begin() + k, a.begin() + static_cast<int64_t>(have));
}

// The k smallest entries of a long line of floats, unordered, at the front of `a`; returns false
// where a NaN asks for the general way. Of each segment only those groups of elements are looked at
// whose largest is not below the bound: first the k-th of the groups' largest, then the k-th found.
template <class E, class Get>
bool smallest_of_long(const float* x, int64_t n, int64_t k, bool descending, std::vector<E>& a,
                      Get&& get) {
  constexpr int64_t segment = 2048, groups = simd::kSelectGroups;
  const auto& group_maxima = simd::select_loops().group_maxima;
  const float sign = descending ? 1.0f : -1.0f;
  const auto keep = static_cast<size_t>(k), room = 2 * keep + 256;
  float best[groups], sorted[groups], bound = 0;
  a.resize(room);
  size_t have = 0;
  for (int64_t first = 0; first < n; first += segment) {
    const int64_t size = n - first < 2 * segment ? n - first : segment;
    if (!group_maxima(x + first, size, sign, best)) return false;
    if (first == 0) {
      std::copy(best, best + groups, sorted);
      std::nth_element(sorted, sorted + k - 1, sorted + groups, std::greater<>());
      bound = sorted[k - 1];
    }
    for (int64_t j = 0; j < groups; ++j) {
      if (best[j] < bound) continue;
      for (int64_t i = first + j; i < first + size; i += groups) {
        if (x[i] * sign < bound) continue;
        a[have++] = get(i);
        if (have < room) continue;
        std::nth_element(a.begin(), a.begin() + k - 1, a.end());
        bound = x[a[keep - 1].place()] * sign;
        have = keep;
      }
    }
    if (size > segment) break;
  }
  if (have > keep) {
    std::nth_element(a.begin(), a.begin() + k - 1, a.begin() + static_cast<int64_t>(have));
  }
  return true;
}

// The whole of one long line.
template <class T, class E>
void sort_line(const T* x, T* values, int64_t* indices, const SortLines& l, Bits<T> flip) {
  constexpr int64_t kGrain = 16384;
  using U = Bits<T>;
  const Scratch<E> a(l.n), scratch(l.n);
  parallel_for(l.n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j)
      a.data()[j] = E(static_cast<U>(key_of(x[j * l.x_stride]) ^ flip), static_cast<uint64_t>(j));
  });
  radix_sort(a.data(), scratch.data(), l.n, sizeof(U));
  parallel_for(l.n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const E& e = a.data()[j];
      values[j * l.out_stride] =
          value_of(static_cast<U>(e.key() ^ flip), x, e.place() * l.x_stride);
      indices[j * l.out_stride] = e.place();
    }
  });
}

template <class T, class E>
void sort_typed(const T* x, T* values, int64_t* indices, const SortLines& l, bool descending,
                bool ordered) {
  using U = Bits<T>;
  const U flip = descending ? static_cast<U>(~U(0)) : U(0);
  for_each_line(l, [&](int64_t begin, int64_t end) {
    std::vector<E> a, scratch;
    for (int64_t i = begin; i < end; ++i) {
      Line at = line_at(l, i);
      const T* p = x + at.x;
      if (l.k == l.n && l.n >= 1024 && l.n < (int64_t(1) << 32)) {
        sort_line<T, E>(p, values + at.out, indices + at.out, l, flip);
        continue;
      }
      auto key = [&](int64_t j) { return static_cast<U>(key_of(p[j * l.x_stride]) ^ flip); };
      auto get = [&](int64_t j) { return E(key(j), static_cast<uint64_t>(j)); };
      bool found = false;
      if constexpr (std::is_same_v<T, float>) {
        found = l.x_stride == 1 && l.n >= 512 && l.k > 0 && l.k <= 32 &&
                smallest_of_long(p, l.n, l.k, descending, a, get);
      }
      if (!found) smallest(a, l.n, l.k, key);
      if (ordered || l.k == l.n) sort_entries(a, scratch, l.k, sizeof(U));
      for (int64_t j = 0; j < l.k; ++j) {
        int64_t place = a[static_cast<size_t>(j)].place();
        values[at.out + j * l.out_stride] = p[place * l.x_stride];
        indices[at.out + j * l.out_stride] = place;
      }
    }
  });
}

template <class U> struct Range {
  U least, most;
};
template <class U>
[[gnu::optimize("O3"), gnu::noinline]] Range<U> range_of(const U* keys, int64_t n) {
  Range<U> r{keys[0], keys[0]};
  for (int64_t i = 0; i < n; ++i) {
    r.least = keys[i] < r.least ? keys[i] : r.least;
    r.most = keys[i] > r.most ? keys[i] : r.most;
  }
  return r;
}
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

template <class T>
[[gnu::optimize("O3")]] void write_keys(const T* x, int64_t stride, int64_t n, Bits<T>* keys) {
  for (int64_t j = 0; j < n; ++j) keys[j] = key_of(x[j * stride]);
}

// Where `key` stands for the time after `skip` others.
template <class T>
int64_t place_of_key(const T* x, int64_t stride, int64_t n, Bits<T> key, int64_t skip) {
  constexpr int64_t block = 64;
  Bits<T> keys[block];
  for (int64_t first = 0; first < n; first += block) {
    const int64_t size = std::min(block, n - first);
    write_keys(x + first * stride, stride, size, keys);
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
      write_keys(p, l.x_stride, l.n, keys.data());
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

// f(tag of the element type, tag of the entry type)
template <class F> void visit_sortable(DType dtype, int64_t n, F&& f) {
  visit_real(dtype == DType::Bool ? DType::UInt8 : dtype, "sort", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, bool>) {
      if constexpr (sizeof(T) < 8) {
        if (n < (int64_t(1) << 32)) return f(tag, Tag<Packed>{});
      }
      f(tag, Tag<Wide>{});
    }
  });
}

}  // namespace

void sort_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                bool descending, bool ordered) {
  visit_sortable(dtype, l.n, [&](auto tag, auto entry) {
    using T = typename decltype(tag)::type;
    sort_typed<T, typename decltype(entry)::type>(static_cast<const T*>(x), static_cast<T*>(values),
                                                  indices, l, descending, ordered);
  });
}

void select_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                  Select what, int64_t rank) {
  visit_sortable(dtype, l.n, [&](auto tag, auto) {
    using T = typename decltype(tag)::type;
    select_typed<T>(static_cast<const T*>(x), static_cast<T*>(values), indices, l, what, rank);
  });
}

namespace {
// Where the values belong in a sorted line, in as many steps for each, without a branch that
// nothing could foresee.
template <bool Right, class T>
void places_in(const T* sorted, int64_t length, const T* values, int64_t n, int64_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    const T value = values[i];
    const auto goes_right = [value](T at) {
      return static_cast<int64_t>(Right ? !(at > value) : !(at >= value));
    };
    const T* at = sorted;
    for (int64_t left = length; left > 1;) {
      const int64_t half = left / 2;
      at += half & -goes_right(at[half - 1]);
      left -= half;
    }
    out[i] = at - sorted + goes_right(*at);
  }
}
}  // namespace

void search_sorted(const void* sorted, const int64_t* order, const void* values, int64_t* out,
                   int64_t lines, int64_t line_length, int64_t values_per_line, DType dtype,
                   bool right) {
  visit_real(dtype, "searchsorted", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* s = static_cast<const T*>(sorted);
    auto* v = static_cast<const T*>(values);
    bool shared = lines == 1;
    int64_t total = values_per_line * lines;
    if (shared && !order && !is_nan(s[line_length - 1])) {
      const auto run = right ? places_in<true, T> : places_in<false, T>;
      return parallel_for(total, 2048, [&](int64_t begin, int64_t end) {
        run(s, line_length, v + begin, end - begin, out + begin);
      });
    }
    parallel_for(total, 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t base = shared ? 0 : i / values_per_line * line_length, low = 0, high = line_length;
        T value = v[i];
        while (low < high) {
          int64_t middle = low + (high - low) / 2;
          T m = s[base + (order ? order[base + middle] : middle)];
          // Written so that NaN goes to the end.
          const bool goes_right = right ? !(m > value) : !(m >= value);
          if (goes_right) low = middle + 1;
          else high = middle;
        }
        out[i] = low;
      }
    });
  });
}

namespace {
template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void mark_equal(const T* __restrict x, int64_t n, T value,
                                                       uint8_t* __restrict found) {
  for (int64_t i = 0; i < n; ++i) found[i] |= static_cast<uint8_t>(x[i] == value);
}
}  // namespace

void find_members(const void* x, int64_t n, const void* tests, int64_t count, DType dtype,
                  uint8_t* found) {
  constexpr int64_t few = 16, block = 1024;
  visit_real(dtype, "isin", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto *from = static_cast<const T*>(x), *set = static_cast<const T*>(tests);
    const Scratch<T> sorted(count > few ? count : 0);
    int64_t numbers = 0;
    if (count > few) {
      T* end = std::copy_if(set, set + count, sorted.data(), [](T v) { return !is_nan(v); });
      std::sort(sorted.data(), end, [](T a, T b) { return key_of(a) < key_of(b); });
      numbers = end - sorted.data();
    }
    parallel_for(n, count > few ? 2048 : 32768, [&](int64_t begin, int64_t end) {
      std::fill(found + begin, found + end, uint8_t(0));
      if (count <= few) {
        for (int64_t i = begin; i < end; i += block) {
          for (int64_t j = 0; j < count; ++j)
            mark_equal(from + i, std::min(block, end - i), set[j], found + i);
        }
        return;
      }
      if (numbers == 0) return;
      for (int64_t i = begin; i < end; ++i) {
        const T* at = sorted.data();
        for (int64_t left = numbers; left > 1;) {  // the last that is not greater
          const int64_t half = left / 2;
          at += at[half] <= from[i] ? half : 0;
          left -= half;
        }
        found[i] = *at == from[i];
      }
    });
  });
}

}  // namespace taeda::cpu
