#include "kernels/cpu/gemm/simd/gemm_kernels.h"

#include "kernels/cpu/gemm/simd/gemm_tile.h"
#include "kernels/cpu/pointwise/simd/transpose.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// ---- a tile of any size ----

template <class S, class E = S> using TileOf = void (*)(int64_t n, const TileProduct<S, E>& x);

// Where 512-bit registers are halved into two steps, half of one takes half of the time.
template <class S>
constexpr int64_t kNarrow = kRegisterBytes == 64 && is_float<S> ? kLanes<S> / 2 : kLanes<S>;

template <class S, int64_t N, int W, bool Part = false, class E, int... I>
FN void tile_of_rows(std::integer_sequence<int, I...>, int64_t m, int64_t n,
                     const TileProduct<S, E>& x) {
  static constexpr TileOf<S, E> tiles[] = {tile_of<S, N, I + 1, W, Part, E>...};
  tiles[m - 1](n, x);
}

// Of integers, whose products are rarer, tiles of a power of two of rows.
template <class S, int W> FN void tile_of_integers(int64_t m, int64_t n, TileProduct<S> x) {
  const auto rows = [&]<int M>() {
    for (; m >= M; m -= M) {
      tile_of<S, kLanes<S>, M, W, false>(n, x);
      x.a += M * x.a_row;
      x.c += M * x.ldc;
      x.epilogue = x.epilogue.at(M, 0);
    }
  };
  rows.template operator()<4>();
  rows.template operator()<1>();
}

template <class S> void tile(int64_t m, int64_t n, const TileProduct<S>& x) {
  constexpr int64_t lanes = kLanes<S>, narrow = kNarrow<S>;
  if constexpr (!is_float<S>) {
    if (n > lanes) tile_of_integers<S, 2>(m, n, x);
    else tile_of_integers<S, 1>(m, n, x);
  } else {
    using Narrow = std::make_integer_sequence<int, kNarrowRows>;
    if (n > lanes) tile_of_rows<S, lanes, 2>(std::make_integer_sequence<int, kTileRows>{}, m, n, x);
    else if (n > narrow || narrow == lanes) tile_of_rows<S, lanes, 1>(Narrow{}, m, n, x);
    else tile_of_rows<S, narrow, 1>(Narrow{}, m, n, x);
  }
}

// ---- packing ----

// to[j * to_ld + i] = x[i * ld + j], of elements that are not converted.
template <class E>
void transpose(int64_t rows, int64_t cols, const E* x, int64_t ld, E* to, int64_t to_ld) {
  constexpr auto size = static_cast<int64_t>(sizeof(E));
  transpose_kernels.of(size, false)(reinterpret_cast<char*>(to), to_ld * size,
                                    reinterpret_cast<const char*>(x), ld * size, rows, cols);
}

template <class S, class E> FN void convert_row(int64_t n, const E* x, S* to) {
  int64_t i = 0;
  for (; i + kLanes<S> <= n; i += kLanes<S>) store(to + i, load_as<S>(x + i));
  for (; i < n; ++i) to[i] = simd::TAEDA_ISA::to<S>(x[i]);
}

// Whole panels of W columns.
template <int W, class S, class E>
void pack_panels(int64_t k, int64_t panels, const E* x, int64_t row, S* to) {
  constexpr int64_t ahead = 16;  // rows are far apart, so the hardware does not prefetch them
  for (int64_t p = 0; p < k; ++p, x += row, to += W) {
    if (p + ahead < k) prefetch(x + ahead * row, panels * W * static_cast<int64_t>(sizeof(E)));
    for (int64_t i = 0; i < panels; ++i) {
      S* panel = to + i * k * W;
      if constexpr (W % kLanes<S> == 0) convert_row(W, x + i * W, panel);
      else if constexpr (same_type<S, E>) __builtin_memcpy(panel, x + i * W, W * sizeof(S));
      else {
        for (int j = 0; j < W; ++j) panel[j] = simd::TAEDA_ISA::to<S>(x[i * W + j]);
      }
    }
  }
}

template <class S, class E>
void pack_rows(int64_t k, int64_t n, int64_t width, const E* x, int64_t row, S* to) {
  constexpr auto lanes = static_cast<int>(kLanes<S>);
  const int64_t whole = n / width, left = n - whole * width;
  if (whole > 0) {
    if (width == 2 * lanes) pack_panels<2 * lanes>(k, whole, x, row, to);
    else if (width == lanes) pack_panels<lanes>(k, whole, x, row, to);
    else pack_panels<kTileRows>(k, whole, x, row, to);
  }
  if (left == 0) return;
  x += whole * width;
  to += whole * width * k;
  for (int64_t p = 0; p < k; ++p, x += row, to += width) {
    convert_row(left, x, to);
    for (int64_t j = left; j < width; ++j) to[j] = S(0);
  }
}

// One panel: the transpose of n rows of k elements, which are converted some at a time.
template <class S, class E>
void pack_columns(int64_t k, int64_t n, int64_t width, const E* x, int64_t col, S* to) {
  if (n < width) {
    for (int64_t i = 0; i < k * width; ++i) to[i] = S(0);
  }
  if constexpr (same_type<S, E>) {
    transpose(n, k, x, col, to, width);
  } else {
    constexpr int64_t some = 64, rows = 2 * kLanes<S>;
    alignas(64) S block[rows * some];
    for (int64_t p = 0; p < k; p += some) {
      const int64_t count = k - p < some ? k - p : some;
      for (int64_t i = 0; i < n; ++i) convert_row(count, x + i * col + p, block + i * some);
      transpose(n, count, block, some, to + p * width, width);
    }
  }
}

template <class T>
void pack(int64_t k, int64_t n, int64_t width, const T* x, int64_t row, int64_t col, SumOf<T>* to) {
  const auto* from = elements(x);
  if (col == 1) return pack_rows(k, n, width, from, row, to);
  for (int64_t j = 0; j < n; j += width)
    pack_columns(k, n - j < width ? n - j : width, width, from + j * col, col, to + j * k);
}

// Rows of a, converted where they are half precision or integers: to[i * to_row + p] = x[i * row +
// p].
template <class T>
void convert_rows(int64_t m, int64_t k, const T* x, int64_t row, SumOf<T>* to, int64_t to_row) {
  for (int64_t i = 0; i < m; ++i) convert_row(k, elements(x) + i * row, to + i * to_row);
}

// ---- products without packing ----

// The first tile of the columns from j on, which begin at b.
template <class T>
TileProduct<SumOf<T>, ElementType<T>> tile_at(const SmallProduct<T>& x, const ElementType<T>* b,
                                              int64_t j) {
  return {x.k,   elements(x.a.data), x.a.row, x.a.col, b, x.b.row, x.c + j,
          x.ldc, x.epilogue.at(0, j)};
}

// Columns from j on, as many as W vectors of N lanes hold: tiles from the top to the bottom, of
// about as many rows each, as those of one or two wait for their sums.
template <class T, int W, bool Part, int64_t N = kLanes<SumOf<T>>>
void tiles(const SmallProduct<T>& x, const ElementType<T>* b, int64_t j, int64_t n) {
  using S = SumOf<T>;
  constexpr int most = same_type<S, T> ? kTileRows : 4;  // of half precision, fewer tiles
  auto tile = tile_at(x, b, j);
  const int64_t count = (x.m + most - 1) / most;
  for (int64_t t = 0, first = 0; t < count; ++t) {
    const int64_t rows = (t + 1) * x.m / count - first;
    tile_of_rows<S, N, W, Part>(std::make_integer_sequence<int, most>{}, rows, n, tile);
    tile.a += rows * x.a.row;
    tile.c += rows * x.ldc;
    tile.epilogue = tile.epilogue.at(rows, 0);
    first += rows;
  }
}

// A row of a times kRowsTogether rows of b, side by side: each is read in order, as the machine's
// prefetching expects.
template <class T> void row_product(const SmallProduct<T>& x) {
  using S = SumOf<T>;
  constexpr int64_t lanes = kLanes<S>, rows = kRowsTogether;
  const Epilogue<S>& e = x.epilogue;
  const ElementType<T>* b = elements(x.b.data);
  S left[rows];
  for (int64_t p = 0; p < rows; ++p) left[p] = to<S>(elements(x.a.data)[p * x.a.col]);
  int64_t j = 0;
  for (; j + lanes <= x.n; j += lanes) {
    Vec<S> sum[2] = {};
#pragma GCC unroll 8
    for (int64_t p = 0; p < rows; ++p) sum[p % 2] += left[p] * load_as<S>(b + p * x.b.row + j);
    Vec<S> v = e.alpha * (sum[0] + sum[1]);
    if (e.beta != S(0) && e.from_col == 0) v += e.beta * *e.from;
    else if (e.beta != S(0)) v += e.beta * load(e.from + j);
    store(x.c + j, v);
  }
  if (j < x.n) tiles<T, 1, true>(x, b + j, j, x.n - j);
}

template <class T> void small_product(const SmallProduct<T>& given) {
  using S = SumOf<T>;
  constexpr int64_t lanes = kLanes<S>;
  SmallProduct<T> x = given;
  ElementType<T> transposed[kSmallTransposed];
  const ElementType<T>* b = elements(x.b.data);
  if (x.b.col != 1 && x.n > 1) {
    transpose(x.n, x.k, b, x.b.col, transposed, x.n);
    b = transposed;
    x.b.row = x.n;
  }
  if (x.m == 1 && x.k == kRowsTogether && x.b.col == 1) return row_product(x);
  int64_t j = 0;
  constexpr int wide = 8;  // sums of a single row that do not wait for each other
  for (; x.m == 1 && j + wide * lanes <= x.n; j += wide * lanes)
    tile_of<S, lanes, 1, wide, false>(wide * lanes, tile_at(x, b + j, j));
  for (; j + 2 * lanes <= x.n; j += 2 * lanes) tiles<T, 2, false>(x, b + j, j, 2 * lanes);
  const int64_t left = x.n - j;
  if (left == 0) return;
  b += j;
  if constexpr (same_type<S, T> && kNarrow<S> < lanes) {
    if (left == kNarrow<S>) return tiles<T, 1, false, kNarrow<S>>(x, b, j, left);
  }
  if constexpr (same_type<S, T> && kRegisterBytes == 16) {  // where no load is masked
    S panel[kSmallDepth * 2 * lanes];
    const int64_t width = left > lanes ? 2 * lanes : lanes;
    pack_rows(x.k, left, width, b, x.b.row, panel);
    x.b.row = width;
    if (left > lanes) tiles<T, 2, false>(x, panel, j, left);
    else tiles<T, 1, false>(x, panel, j, left);
  } else {
    if (left > lanes) tiles<T, 2, true>(x, b, j, left);
    else tiles<T, 1, true>(x, b, j, left);
  }
}

// ---- inner products ----

// M rows of a times N columns of b. Few sums are taken in two chains, which do not wait for each
// other.
template <class T, int M, int N> FN void dots_of(const SmallProduct<T>& x, int64_t i, int64_t j) {
  using S = SumOf<T>;
  constexpr int64_t lanes = kLanes<S>;
  constexpr int chains = M * N >= 8 ? 1 : M * N >= 4 ? 2 : 4;
  const auto *a = elements(x.a.data) + i * x.a.row, *b = elements(x.b.data) + j * x.b.col;
  Vec<S> sum[chains][M][N] = {};
  const auto add = [&](int s, const auto& read) {
    Vec<S> right[N];
    for (int q = 0; q < N; ++q) right[q] = read(b + q * x.b.col);
    for (int r = 0; r < M; ++r) {
      const Vec<S> left = read(a + r * x.a.row);
      for (int q = 0; q < N; ++q) sum[s][r][q] += left * right[q];
    }
  };
  int64_t p = 0;
  for (; p + chains * lanes <= x.k; p += chains * lanes) {
#pragma GCC unroll 4
    for (int s = 0; s < chains; ++s)
      add(s, [at = p + s * lanes](const auto* v) { return load_as<S>(v + at); });
  }
  for (; p + lanes <= x.k; p += lanes) add(0, [p](const auto* v) { return load_as<S>(v + p); });
  if (const int64_t left = x.k - p; left > 0) {
    const FirstLanes<std::conditional_t<same_type<S, T>, S, uint16_t>, lanes> first(left);
    add(0, [&](const auto* v) { return load_first<S, lanes>(first, v + p); });
  }
  for (int r = 0; r < M; ++r) {
    for (int q = 0; q < N; ++q) {
      for (int s = 1; s < chains; ++s) sum[0][r][q] += sum[s][r][q];
      const Epilogue<S> e = x.epilogue.at(i + r, j + q);
      const S v = e.alpha * reduce_add(sum[0][r][q]);
      x.c[(i + r) * x.ldc + j + q] = e.beta != S(0) ? v + e.beta * *e.from : v;
    }
  }
}

template <class T> void dots(const SmallProduct<T>& x) {
  const auto rows = [&]<int N>(int64_t j) {
    int64_t i = 0;
    for (; i + 4 <= x.m; i += 4) dots_of<T, 4, N>(x, i, j);
    for (; i < x.m; ++i) dots_of<T, 1, N>(x, i, j);
  };
  int64_t j = 0;
  if (x.m == 1) {
    for (; j + 4 <= x.n; j += 4) dots_of<T, 1, 4>(x, 0, j);
  }
  for (; j + 2 <= x.n; j += 2) rows.template operator()<2>(j);
  for (; j < x.n; ++j) rows.template operator()<1>(j);
}

// ---- complex numbers ----

// Real and imaginary parts exchanged.
template <class V> FN V swapped(V v) {
  return shuffle(v, v, [](int i) { return i ^ 1; });
}

// b is multiplied by the real and by the imaginary parts of a apart, which are put together at the
// end: by `plain` and, exchanged, by `crossed`.
template <class R, int M, bool Part>
FN void complex_tile(int64_t k, int64_t n, const R* a, int64_t a_row, int64_t a_step, const R* b,
                     int64_t b_row, bool conjugate_a, bool conjugate_b, const R* from,
                     int64_t from_row, R* c, int64_t ldc) {
  constexpr int64_t lanes = kLanes<R>;
  const FirstLanes<R> first(n);
  const auto read = [&](const R* p) { return Part ? first.load(p) : load(p); };
  Vec<R> sum[M] = {}, cross[M] = {};
  for (int64_t p = 0; p < k; ++p, a += a_step, b += b_row) {
    const Vec<R> right = read(b);
    for (int r = 0; r < M; ++r) {
      sum[r] += a[r * a_row] * right;
      cross[r] += a[r * a_row + 1] * right;
    }
  }
  const R left = conjugate_a ? R(-1) : R(1), right = conjugate_b ? R(-1) : R(1);
  Vec<R> plain{}, crossed{};
  for (int64_t l = 0; l < lanes; l += 2) {
    plain[l] = R(1), plain[l + 1] = right;
    crossed[l] = -left * right, crossed[l + 1] = left;
  }
  for (int r = 0; r < M; ++r) {
    R* to = c + r * ldc;
    Vec<R> v = sum[r] * plain + swapped(cross[r]) * crossed;
    if (from) v += read(from + r * from_row);
    if constexpr (Part) first.store(to, v);
    else store(to, v);
  }
}

template <class T> void complex_product(const SmallProduct<T>& x) {
  using R = ElementType<T>;
  constexpr int64_t lanes = kLanes<R>;
  R transposed[2 * kSmallTransposed];
  const R* b = elements(x.b.data);
  int64_t b_row = 2 * x.b.row;
  if (x.b.col != 1 && x.n > 1) {
    for (int64_t p = 0; p < x.k; ++p) {
      for (int64_t j = 0; j < x.n; ++j) {
        transposed[2 * (p * x.n + j)] = b[2 * (j * x.b.col + p)];
        transposed[2 * (p * x.n + j) + 1] = b[2 * (j * x.b.col + p) + 1];
      }
    }
    b = transposed;
    b_row = 2 * x.n;
  }
  const R* added = x.epilogue.beta != T(0) ? reinterpret_cast<const R*>(x.epilogue.from) : nullptr;
  const auto columns = [&]<bool Part>(int64_t j, int64_t n) {
    const R* a = elements(x.a.data);
    R* c = reinterpret_cast<R*>(x.c) + j;
    const R* from = added ? added + j : nullptr;
    int64_t left = x.m;
    const auto run = [&]<int M>() {
      complex_tile<R, M, Part>(x.k, n, a, 2 * x.a.row, 2 * x.a.col, b + j, b_row, x.conjugate_a,
                               x.conjugate_b, from, 2 * x.epilogue.from_row, c, 2 * x.ldc);
      if (from) from += 2 * M * x.epilogue.from_row;
      a += 2 * M * x.a.row;
      c += 2 * M * x.ldc;
      left -= M;
    };
    while (left >= 4) run.template operator()<4>();
    while (left > 0) run.template operator()<1>();
  };
  int64_t j = 0;
  for (; j + lanes <= 2 * x.n; j += lanes) columns.template operator()<false>(j, lanes);
  if (j < 2 * x.n) columns.template operator()<true>(j, 2 * x.n - j);
}

template <class R>
void expand(int64_t n, const std::complex<R>* x, std::complex<R> scale, bool conjugate,
            std::complex<R>* to) {
  const R *v = elements(x), *factor = elements(&scale), sign = conjugate ? -1 : 1;
  R *first = reinterpret_cast<R*>(to), *second = first + 2 * n;
  const R by_re = factor[0], by_im = factor[1];
  const auto put = [&](int64_t j, R re, R im) {
    first[2 * j] = second[2 * j + 1] = re;
    first[2 * j + 1] = im;
    second[2 * j] = -im;
  };
  if (by_im == 0) {  // 0 * infinity would be NaN
    for (int64_t j = 0; j < n; ++j) put(j, by_re * v[2 * j], by_re * (sign * v[2 * j + 1]));
  } else {
    for (int64_t j = 0; j < n; ++j) {
      const R re = v[2 * j], im = sign * v[2 * j + 1];
      put(j, by_re * re - by_im * im, by_re * im + by_im * re);
    }
  }
}

template <class T, void (*Product)(const SmallProduct<T>&)>
void small(int64_t count, const SmallProduct<T>& first) {
  constexpr int64_t parts = same_type<SumOf<T>, T> ? sizeof(SumOf<T>) / sizeof(ElementType<T>) : 1;
  const auto moved = [](const T* p, int64_t by) {
    return reinterpret_cast<const T*>(elements(p) + by * parts);
  };
  SmallProduct<T> x = first;
  for (int64_t i = 0; i < count; ++i) {
    Product(x);
    x.a.data = moved(x.a.data, x.a.next);
    x.b.data = moved(x.b.data, x.b.next);
    x.c += x.c_next;
    x.epilogue = x.epilogue.at(0, x.c_next);
  }
}

template <class T>
constexpr ProductKernels<T> whole = {kTileRows,      kNarrowRows,       kLanes<SumOf<T>>,
                                     tile<SumOf<T>>, kNarrow<SumOf<T>>, pack<T>,
                                     convert_rows<T>};
template <class T> constexpr ProductKernels<T> with_small() {
  ProductKernels<T> all = whole<T>;
  all.small = small<T, small_product<T>>;
  all.dots = dots<T>;
  return all;
}

}  // namespace

extern constinit const GemmTable gemm_table = {
    with_small<float>(),
    with_small<double>(),
    with_small<Half>(),
    with_small<BFloat16>(),
    whole<uint8_t>,
    whole<uint16_t>,
    whole<uint32_t>,
    whole<uint64_t>,
    {small<std::complex<float>, complex_product<std::complex<float>>>, expand<float>},
    {small<std::complex<double>, complex_product<std::complex<double>>>, expand<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
