// The first of each line in order, without sorting the rest.
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/cpu/index/simd/select.h"
#include "kernels/cpu/index/sort_keys.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace taeda::cpu {
namespace {

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

constexpr int64_t kSegment = 2048;

// Elements of a line as floats in their order. `read` gives some from `first` on, in their own
// place or in `memory`, which has room for two segments.
template <class T> struct FloatLine {
  const T* x;
  int64_t stride;

  const float* read(int64_t first, int64_t n, float* memory) const {
    if constexpr (std::is_same_v<T, float>) {
      if (stride == 1) return x + first;
      for (int64_t i = 0; i < n; ++i) memory[i] = x[(first + i) * stride];
    } else {
      constexpr auto to = static_cast<uint8_t>(DType::Float32);
      constexpr auto from = static_cast<uint8_t>(dtype_of<T>);
      cast_rows(to, from, reinterpret_cast<char*>(memory), 4, 0,
                reinterpret_cast<const char*>(x + first * stride), 2 * stride, 0, n, 1);
    }
    return memory;
  }
  float operator[](int64_t i) const { return static_cast<float>(x[i * stride]); }
};

// The k smallest entries of a long line of floats, unordered, at the front of `a`; returns false
// where a NaN asks for the general way. Of each segment only those groups of elements are looked at
// whose largest is not below the bound: first the k-th of the groups' largest, then the k-th found.
template <class E, class T, class Get>
bool smallest_of_long(const FloatLine<T>& line, int64_t n, int64_t k, bool descending,
                      std::vector<E>& a, Get&& get) {
  constexpr int64_t segment = kSegment, groups = simd::kSelectGroups;
  const auto& group_maxima = TAEDA_PICK(select_kernels).group_maxima;
  const float sign = descending ? 1.0f : -1.0f;
  const auto keep = static_cast<size_t>(k), room = 2 * keep + 256;
  float best[groups], sorted[groups], bound = -std::numeric_limits<float>::infinity();
  float memory[2 * segment];
  a.resize(room);
  size_t have = 0;
  for (int64_t first = 0; first < n; first += segment) {
    const int64_t size = n - first < 2 * segment ? n - first : segment;
    const float* x = line.read(first, size, memory);
    if (!group_maxima(x, size, sign, best)) return false;
    if (first == 0 && k <= groups) {
      std::copy(best, best + groups, sorted);
      std::nth_element(sorted, sorted + k - 1, sorted + groups, std::greater<>());
      bound = sorted[k - 1];
    }
    for (int64_t j = 0; j < groups; ++j) {
      if (best[j] < bound) continue;
      for (int64_t i = j; i < size; i += groups) {
        if (x[i] * sign < bound) continue;
        a[have++] = get(first + i);
        if (have < room) continue;
        std::nth_element(a.begin(), a.begin() + k - 1, a.end());
        bound = line[a[keep - 1].place()] * sign;
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

template <class T, class E>
void first_typed(const T* x, T* values, int64_t* indices, const SortLines& l, bool descending,
                 bool ordered) {
  using U = Bits<T>;
  const U flip = descending ? static_cast<U>(~U(0)) : U(0);
  for_each_line(l, [&](int64_t begin, int64_t end) {
    std::vector<E> a;
    for (int64_t i = begin; i < end; ++i) {
      Line at = line_at(l, i);
      const T* p = x + at.x;
      auto key = [&](int64_t j) { return static_cast<U>(key_of(p[j * l.x_stride]) ^ flip); };
      auto get = [&](int64_t j) { return E(key(j), static_cast<uint64_t>(j)); };
      bool found = false;
      if constexpr (kFloat<T> && sizeof(T) <= 4) {
        const FloatLine<T> line{p, l.x_stride};
        found = l.n >= 512 && l.k > 0 && (l.k <= 32 || l.k <= l.n / 16) &&
                smallest_of_long(line, l.n, l.k, descending, a, get);
      }
      if (!found) smallest(a, l.n, l.k, key);
      if (ordered) std::sort(a.begin(), a.begin() + l.k);
      for (int64_t j = 0; j < l.k; ++j) {
        int64_t place = a[static_cast<size_t>(j)].place();
        values[at.out + j * l.out_stride] = p[place * l.x_stride];
        indices[at.out + j * l.out_stride] = place;
      }
    }
  });
}

}  // namespace

void first_of_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                    bool descending, bool ordered) {
  visit_sortable(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto entry) {
      first_typed<T, typename decltype(entry)::type>(
          static_cast<const T*>(x), static_cast<T*>(values), indices, l, descending, ordered);
    };
    if constexpr (sizeof(T) < 8) {
      if (l.n < (int64_t(1) << 32)) return run(Tag<Packed>{});
    }
    run(Tag<Wide>{});
  });
}

}  // namespace taeda::cpu
