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

// A key above its index, so that one comparison is that of the pair: in one word where both have
// 32 bits.
template <class E> constexpr int kIndexBits = sizeof(E) * 4;
template <class E> E entry(uint64_t key, int64_t index) {
  return static_cast<E>(key) << kIndexBits<E> | static_cast<uint64_t>(index);
}
template <class E> uint64_t key_in(E e) { return static_cast<uint64_t>(e >> kIndexBits<E>); }
template <class E> int64_t index_in(E e) {
  return static_cast<int64_t>(e & ((E(1) << kIndexBits<E>)-1));
}

// Keeps the k smallest of the entries that are added.
template <class E> class Smallest {
 public:
  void begin(int64_t k, size_t room) {
    keep_ = static_cast<size_t>(k);
    have_ = 0;
    a_.resize(std::max(room, keep_));
  }
  // Returns whether there is a new last one: entries above it need not be added.
  bool add(E e) {
    a_[have_++] = e;
    if (have_ < a_.size()) return false;
    cut();
    return true;
  }
  E last() const { return a_[keep_ - 1]; }
  // The k smallest of them, at the front.
  E* finish() {
    if (have_ > keep_) cut();
    return a_.data();
  }

 private:
  void cut() {
    const auto end = a_.begin() + static_cast<int64_t>(have_);
    std::nth_element(a_.begin(), a_.begin() + static_cast<int64_t>(keep_) - 1, end);
    have_ = keep_;
  }
  std::vector<E> a_;
  size_t keep_ = 0, have_ = 0;
};

// The k > 0 smallest entries of a line, unordered, of the keys of its elements. Those above the
// last one so far are dropped at once, and later ones that are equal to it.
template <class E, class Key> void smallest(Smallest<E>& found, int64_t n, int64_t k, Key&& key) {
  const bool all = k * 4 > n;
  found.begin(k, static_cast<size_t>(all ? n + 1 : std::max(2 * k, k + 64)));
  int64_t i = 0;
  while (i < n && !found.add(entry<E>(key(i), i))) ++i;
  if (i == n) return;
  uint64_t bound = key_in(found.last());
  for (++i; i < n; ++i) {
    const uint64_t k_i = key(i);
    if (k_i < bound && found.add(entry<E>(k_i, i))) bound = key_in(found.last());
  }
}

constexpr int64_t kSegment = 2048;

// Elements of a line as floats in their order. `read` gives some from `first` on,
// where they are or in `memory`, which has room for two segments.
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

// The same of a long line of floats; returns false where a NaN asks for the general way. Of each
// segment only those groups of elements are looked at whose largest is not below the bound: first
// the k-th of the groups' largest, then the k-th found.
template <class E, class T, class Get>
bool smallest_of_long(Smallest<E>& found, const FloatLine<T>& line, int64_t n, int64_t k,
                      bool descending, Get&& get) {
  constexpr int64_t segment = kSegment, groups = simd::kSelectGroups;
  const auto& group_maxima = TAEDA_PICK(select_kernels).group_maxima;
  const float sign = descending ? 1.0f : -1.0f;
  float best[groups], sorted[groups], bound = -std::numeric_limits<float>::infinity();
  float memory[2 * segment];
  found.begin(k, static_cast<size_t>(2 * k + 256));
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
        if (x[i] * sign >= bound && found.add(get(first + i)))
          bound = line[index_in(found.last())] * sign;
      }
    }
    if (size > segment) break;
  }
  return true;
}

template <class T, class E>
void first_typed(const T* x, T* values, int64_t* indices, const SortLines& l, bool descending,
                 bool ordered) {
  using U = Bits<T>;
  const U flip = descending ? static_cast<U>(~U(0)) : U(0);
  for_each_line(l, [&](int64_t begin, int64_t end) {
    Smallest<E> found;
    for (int64_t i = begin; i < end; ++i) {
      const Line at = line_at(l, i);
      const T* p = x + at.x;
      const auto key = [&](int64_t j) { return static_cast<U>(key_of(p[j * l.x_stride]) ^ flip); };
      bool done = false;
      if constexpr (kFloat<T> && sizeof(T) <= 4) {
        done = l.n >= 512 && (l.k <= 32 || l.k <= l.n / 16) &&
               smallest_of_long(found, FloatLine<T>{p, l.x_stride}, l.n, l.k, descending,
                                [&](int64_t j) { return entry<E>(key(j), j); });
      }
      if (!done) smallest(found, l.n, l.k, key);
      E* first = found.finish();
      if (ordered) std::sort(first, first + l.k);
      for (int64_t j = 0; j < l.k; ++j) {
        const int64_t index = index_in(first[j]);
        values[at.out + j * l.out_stride] = p[index * l.x_stride];
        indices[at.out + j * l.out_stride] = index;
      }
    }
  });
}

}  // namespace

void first_of_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                    bool descending, bool ordered) {
  if (l.k == 0) return;
  visit_sortable(dtype, [&]<class T>(Tag<T>) {
    auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(values);
    if constexpr (sizeof(T) < 8) {
      if (l.n < int64_t{1} << 32)
        return first_typed<T, uint64_t>(from, to, indices, l, descending, ordered);
    }
    first_typed<T, unsigned __int128>(from, to, indices, l, descending, ordered);
  });
}

}  // namespace taeda::cpu
