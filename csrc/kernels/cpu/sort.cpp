// Whole lines in order. Few elements are put where the number of smaller ones says. More become
// words, a key's distance from the least above its place, so that one comparison is that of the
// pair: these are merged, or moved by one digit of the distance after the other.
#include <vector>

#include "kernels/cpu/scratch.h"
#include "kernels/cpu/sort_keys.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kFew = 16;
constexpr int kDigit = 8;  // as many places to write to as the first cache has room for
constexpr size_t kDigits = size_t(1) << kDigit;

// rank[i] = how many of the n <= kFew keys come before number i. Without branches that nothing
// could foresee.
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

// ---- merging ----

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

// Words, all different, in order; `spare` is as long.
void merge_sort(uint64_t* words, uint64_t* spare, int64_t n) {
  if (n <= kFew) {
    int rank[kFew];
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

// ---- by digits ----

// A long line is cut into parts, each of which counts its digits and moves its words side by side
// with the others.
int64_t parts_of(int64_t n) { return std::clamp<int64_t>(n >> 16, 1, 16); }
// f(part, its first element, how many)
template <class F> void each_part(int64_t n, F&& f) {
  const int64_t parts = parts_of(n), length = (n + parts - 1) / parts;
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) f(p, p * length, std::min(length, n - p * length));
  });
}
// Of how often each part has each digit, where its first element with that digit goes.
void counts_to_places(std::vector<uint32_t>& counts) {
  uint32_t sum = 0;
  const auto take = [&sum](uint32_t& count) {
    const uint32_t here = count;
    count = sum;
    sum += here;
  };
  if (counts.size() == kDigits) {
    for (uint32_t& count : counts) take(count);
    return;
  }
  for (size_t d = 0; d < kDigits; ++d) {
    for (size_t i = d; i < counts.size(); i += kDigits) take(counts[i]);
  }
}

// Least significant digit first, from bit `low` on; one that all words share is skipped. Returns
// which of the two has the words in order. n < 2^32.
uint64_t* digit_sort(uint64_t* from, uint64_t* to, int64_t n, int low, int bits,
                     std::vector<uint32_t>& counts) {
  counts.resize(kDigits * static_cast<size_t>(parts_of(n)));
  for (int shift = low; shift < low + bits; shift += kDigit) {
    const auto digit = [shift](uint64_t w) { return w >> shift & (kDigits - 1); };
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      uint32_t* c = counts.data() + static_cast<size_t>(p) * kDigits;
      std::fill_n(c, kDigits, 0);
      for (int64_t i = first; i < first + m; ++i) ++c[digit(from[i])];
    });
    uint32_t like_first = 0;
    for (size_t i = digit(from[0]); i < counts.size(); i += kDigits) like_first += counts[i];
    if (like_first == n) continue;
    counts_to_places(counts);
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      uint32_t* c = counts.data() + static_cast<size_t>(p) * kDigits;
      for (int64_t i = first; i < first + m; ++i) to[c[digit(from[i])]++] = from[i];
    });
    std::swap(from, to);
  }
  return from;
}

// ---- one line ----

template <class T> class LineSorter {
  using U = Bits<T>;

 public:
  LineSorter(const SortLines& l, bool descending)
      : l_(l),
        flip_(descending ? static_cast<U>(~U(0)) : U(0)),
        counted_(sizeof(U) == 1 && l.n < kMost),
        keys_(l.n > kFew ? l.n : 0),
        words_(l.n > kFew && !counted_ ? l.n : 0),
        spare_(l.n > kFew && !counted_ ? l.n : 0) {}

  void operator()(const T* x, T* values, int64_t* indices) {
    if (l_.n <= kFew) return few(x, values, indices);
    parallel_for(l_.n, kGrain, [&](int64_t begin, int64_t end) {
      write_keys(x + begin * l_.x_stride, l_.x_stride, end - begin, flip_, keys_.data() + begin);
    });
    if constexpr (sizeof(U) == 1) {
      if (counted_) return bytes(x, values, indices);
    }
    with_words(x, values, indices);
  }

 private:
  static constexpr int64_t kGrain = 16384, kMost = int64_t(1) << 32;

  void put(const T* x, int64_t place, T* values, int64_t* indices, int64_t at) const {
    values[at * l_.out_stride] = x[place * l_.x_stride];
    indices[at * l_.out_stride] = place;
  }

  void few(const T* x, T* values, int64_t* indices) const {
    U keys[kFew];
    int rank[kFew];
    for (int64_t j = 0; j < l_.n; ++j) keys[j] = key_of(x[j * l_.x_stride]) ^ flip_;
    rank_few(keys, l_.n, rank);
    for (int64_t j = 0; j < l_.n; ++j) {
      if (rank[j] < l_.k) put(x, j, values, indices, rank[j]);
    }
  }

  // Each goes at once to where it belongs.
  void bytes(const T* x, T* values, int64_t* indices) {
    const int64_t n = l_.n;
    const auto* keys = keys_.data();
    counts_.assign(kDigits * static_cast<size_t>(parts_of(n)), 0);
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      uint32_t* c = counts_.data() + static_cast<size_t>(p) * kDigits;
      for (int64_t i = first; i < first + m; ++i) ++c[keys[i]];
    });
    counts_to_places(counts_);
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      uint32_t* c = counts_.data() + static_cast<size_t>(p) * kDigits;
      for (int64_t i = first; i < first + m; ++i) {
        const int64_t at = c[keys[i]]++;
        if (at < l_.k) put(x, i, values, indices, at);
      }
    });
  }

  void with_words(const T* x, T* values, int64_t* indices) {
    const int64_t n = l_.n;
    const U* keys = keys_.data();
    if (std::is_sorted(keys, keys + n)) {  // found out soon where it is not so
      parallel_for(l_.k, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) put(x, j, values, indices, j);
      });
      return;
    }
    const auto [least, most] = extremes_of(keys, n);
    const int place_bits = std::bit_width(static_cast<uint64_t>(n - 1));
    const int wide = std::bit_width(static_cast<U>(most - least));
    const int dropped = std::max(0, wide + place_bits - 64), bits = wide - dropped;
    uint64_t* words = words_.data();
    parallel_for(n, kGrain, [&, least = least](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        const auto distance = static_cast<uint64_t>(static_cast<U>(keys[j] - least));
        words[j] = distance >> dropped << place_bits | static_cast<uint64_t>(j);
      }
    });
    // What each costs, measured.
    const int64_t by_digits = (bits + kDigit - 1) / kDigit * (7 * n + 600);
    const int64_t by_merging = n * (20 + 4 * place_bits);
    if (n >= kMost || by_merging < by_digits) merge_sort(words, spare_.data(), n);
    else words = digit_sort(words, spare_.data(), n, place_bits, bits, counts_);
    const uint64_t places = (uint64_t(1) << place_bits) - 1;
    if (dropped > 0) order_by_rest(words, place_bits, places);
    parallel_for(l_.k, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j)
        put(x, static_cast<int64_t>(words[j] & places), values, indices, j);
    });
  }

  // Words whose keys differ in what was dropped of them only.
  void order_by_rest(uint64_t* words, int place_bits, uint64_t places) const {
    const auto before = [keys = keys_.data(), places](uint64_t a, uint64_t b) {
      const U p = keys[a & places], q = keys[b & places];
      return p != q ? p < q : a < b;
    };
    for (int64_t j = 0, end; j < l_.n; j = end) {
      for (end = j + 1; end < l_.n && (words[end] ^ words[j]) >> place_bits == 0;) ++end;
      if (end - j > 1 && !std::is_sorted(words + j, words + end, before))
        std::sort(words + j, words + end, before);
    }
  }

  const SortLines& l_;
  const U flip_;
  const bool counted_;  // bytes, of no more than counts can hold
  const Scratch<U> keys_;
  const Scratch<uint64_t> words_, spare_;
  std::vector<uint32_t> counts_;
};

}  // namespace

void sort_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                bool descending, bool ordered) {
  // Of a long line's first ones, a quarter in any order cost less than all in order.
  const bool all = l.k == l.n || (ordered && l.k * 4 > l.n);
  if (!all) return first_of_lines(x, values, indices, l, dtype, descending, ordered);
  visit_sortable(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_line(l, [&](int64_t begin, int64_t end) {
      LineSorter<T> sort(l, descending);
      for (int64_t i = begin; i < end; ++i) {
        const Line at = line_at(l, i);
        sort(static_cast<const T*>(x) + at.x, static_cast<T*>(values) + at.out, indices + at.out);
      }
    });
  });
}

}  // namespace taeda::cpu
