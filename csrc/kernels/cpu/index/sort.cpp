// Whole lines in order. Few elements are put where the number of smaller ones says. More become
// words, a key's distance from the least above its index, so that one comparison is that of the
// pair.
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/index/sort_keys.h"
#include "kernels/cpu/index/sort_words.h"

namespace taeda::cpu {
namespace {

constexpr size_t kBytes = 256;

// ---- one line ----

template <class T> class LineSorter {
  using U = Bits<T>;

 public:
  LineSorter(const SortLines& l, bool descending)
      : l_(l),
        flip_(descending ? static_cast<U>(~U(0)) : U(0)),
        counted_(sizeof(U) == 1 && l.n < kMostCounted),
        keys_(l.n > kFewWords ? l.n : 0),
        words_(l.n > kFewWords && !counted_ ? l.n : 0),
        spare_(l.n > kFewWords && !counted_ ? l.n : 0) {}

  void operator()(const T* x, T* values, int64_t* indices) {
    if (l_.n <= kFewWords) return few(x, values, indices);
    parallel_for(l_.n, kGrain, [&](int64_t begin, int64_t end) {
      write_keys(x + begin * l_.x_stride, l_.x_stride, end - begin, flip_, keys_.data() + begin);
    });
    if constexpr (sizeof(U) == 1) {
      if (counted_) return bytes(x, values, indices);
    }
    with_words(x, values, indices);
  }

 private:
  static constexpr int64_t kGrain = 16384;

  void put(T value, int64_t index, T* values, int64_t* indices, int64_t at) const {
    values[at * l_.out_stride] = value;
    indices[at * l_.out_stride] = index;
  }

  void few(const T* x, T* values, int64_t* indices) const {
    U keys[kFewWords];
    int rank[kFewWords];
    for (int64_t j = 0; j < l_.n; ++j) keys[j] = key_of(x[j * l_.x_stride]) ^ flip_;
    rank_few(keys, l_.n, rank);
    for (int64_t j = 0; j < l_.n; ++j) {
      if (rank[j] < l_.k) put(x[j * l_.x_stride], j, values, indices, rank[j]);
    }
  }

  // Each goes at once to where it belongs.
  void bytes(const T* x, T* values, int64_t* indices) {
    const int64_t n = l_.n;
    const auto* keys = keys_.data();
    counts_.assign(kBytes * static_cast<size_t>(parts_of(n)), 0);
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      uint32_t* c = counts_.data() + static_cast<size_t>(p) * kBytes;
      for (int64_t i = first; i < first + m; ++i) ++c[keys[i]];
    });
    counts_to_offsets(counts_, kBytes);
    each_part(n, [&](int64_t p, int64_t first, int64_t m) {
      uint32_t* c = counts_.data() + static_cast<size_t>(p) * kBytes;
      for (int64_t i = first; i < first + m; ++i) {
        const int64_t at = c[keys[i]]++;
        if (at < l_.k) put(x[i * l_.x_stride], i, values, indices, at);
      }
    });
  }

  void with_words(const T* x, T* values, int64_t* indices) {
    const int64_t n = l_.n;
    const U* keys = keys_.data();
    if (std::is_sorted(keys, keys + n)) {  // found out soon where it is not so
      parallel_each(l_.k, kGrain,
                    [&](int64_t j) { put(x[j * l_.x_stride], j, values, indices, j); });
      return;
    }
    const auto [least, most] = extremes_of(keys, n);
    const int index_bits = std::bit_width(static_cast<uint64_t>(n - 1));
    const int wide = std::bit_width(static_cast<U>(most - least));
    const int dropped = std::max(0, wide + index_bits - 64), bits = wide - dropped;
    const auto word = [=, least = least](int64_t j) {
      const auto distance = static_cast<uint64_t>(static_cast<U>(keys[j] - least));
      return distance >> dropped << index_bits | static_cast<uint64_t>(j);
    };
    const uint64_t index_mask = (uint64_t(1) << index_bits) - 1;
    const auto finish = [&, least = least](uint64_t* words, int64_t first, int64_t m) {
      if (dropped > 0) order_by_rest(words, m, index_bits, index_mask);
      parallel_each(std::min(m, l_.k - first), kLongPart, [&](int64_t j) {
        const auto index = static_cast<int64_t>(words[j] & index_mask);
        const auto distance = static_cast<U>(words[j] >> index_bits);
        const auto key = static_cast<U>(static_cast<U>(distance + least) ^ flip_);
        // Elements are far away: where the key says what one is, it is not read.
        const bool read = dropped > 0 || is_shared<T>(key);
        put(read ? x[index * l_.x_stride] : of_key<T>(key), index, values, indices, first + j);
      });
    };
    if (n >= kLongPart && n < kMostCounted)
      return sort_pieces(word, n, index_bits, bits, words_.data(), spare_.data(), 0, finish);
    for (int64_t j = 0; j < n; ++j) words_.data()[j] = word(j);
    finish(sort_words(words_.data(), spare_.data(), n, index_bits, bits), 0, n);
  }

  // Words whose keys differ in what was dropped of them only.
  void order_by_rest(uint64_t* words, int64_t n, int index_bits, uint64_t index_mask) const {
    const auto before = [keys = keys_.data(), index_mask](uint64_t a, uint64_t b) {
      const U p = keys[a & index_mask], q = keys[b & index_mask];
      return p != q ? p < q : a < b;
    };
    for (int64_t j = 0, end; j < n; j = end) {
      for (end = j + 1; end < n && (words[end] ^ words[j]) >> index_bits == 0;) ++end;
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

void sort_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                bool descending, bool ordered) {
  // Of a long line's first ones, a quarter in any order cost less than all in order.
  const bool all = l.k == l.n || (ordered && l.k * 4 > l.n);
  if (!all) return first_of_lines(x, values, indices, l, dtype, descending, ordered);
  visit_sortable(dtype, [&]<class T>(Tag<T>) {
    for_each_line(l, [&](int64_t begin, int64_t end) {
      LineSorter<T> sort(l, descending);
      for (int64_t i = begin; i < end; ++i) {
        const Line at = line_at(l, i);
        sort(static_cast<const T*>(x) + at.x, static_cast<T*>(values) + at.out, indices + at.out);
      }
    });
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::SortKernels taeda::SortKernels::cpu = {cpu::sort_lines};
