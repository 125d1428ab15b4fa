// Convolution as a product of matrices. The matrix of windows (im2col) has a row for each tap of
// each input channel and a column for each output position. It is made in tiles: some columns are
// copied to memory that fits a cache and multiplied at once. Of small images several share a tile:
// they are transposed, so that what all have at a position lies side by side. Tiles follow from the
// sizes alone, so results do not depend on the number of threads.
#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/simd/conv.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/simd/gemm_kernels.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kTileElements = 1 << 18;  // of the matrix of windows in one tile
constexpr int64_t kFewColumns = 128;        // images with fewer outputs share a tile

template <class T> const auto& loops() {
  const simd::ConvKernels& table = TAEDA_PICK(conv_kernels);
  if constexpr (std::is_floating_point_v<T>) return typed<T>(table);
  else if constexpr (sizeof(T) == 1) return table.u8;
  else if constexpr (sizeof(T) == 2) return table.u16;
  else if constexpr (sizeof(T) == 4) return table.u32;
  else return table.u64;
}

// c = a b or, if `add`, += a b. Integers are never added to.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, bool add, T* c,
              int64_t ldc) {
  if constexpr (std::is_integral_v<T>) gemm_integer<T>(m, n, k, a, b, c, ldc);
  else gemm<T>(m, n, k, T(1), a, b, T(add ? 1 : 0), c, ldc);
}

struct Plan : ConvShape {
  int64_t group_in, group_out;  // channels of one group
  int64_t taps, depth;          // kernel volume, and rows of the matrix of windows
  int64_t in_volume, out_volume;
  bool in_place;    // windows are single elements in their order, or one of the whole input
  int64_t columns;  // of a tile, within one image
  int64_t images;   // in a tile, where one image has few columns

  explicit Plan(const ConvShape& s)
      : ConvShape(s),
        group_in(in_channels / groups),
        group_out(out_channels / groups),
        taps(volume(kernel)),
        depth(group_in * taps),
        in_volume(volume(in)),
        out_volume(volume(out)) {
    bool single = taps == 1, whole = out_volume == 1;
    for (int d = 0; d < 3; ++d) {
      single = single && stride[d] == 1 && padding[d] == 0;
      whole = whole && kernel[d] == in[d] && padding[d] == 0 && (dilation[d] == 1 || in[d] == 1);
    }
    in_place = single || whole;
    const bool few = out_volume > 0 && out_volume < kFewColumns;
    images = few ? std::clamp<int64_t>(round_up(2 * kFewColumns / out_volume, 8), 1, batch) : 1;
    const int64_t fitting =
        std::max<int64_t>(2 * kFewColumns, kTileElements / std::max<int64_t>(depth, 1));
    columns = few ? out_volume : std::min(out_volume, round_up(fitting, 16));
  }

  int64_t tiles_of_image() const { return ceil_div(out_volume, columns); }
  int64_t tiles() const { return ceil_div(batch, images) * tiles_of_image(); }
  int64_t most_columns() const { return columns * images; }
  // From a row of the matrix of `count` images' windows to the next, where it is in place.
  int64_t windows_ld(int64_t count) const { return count * (out_volume == 1 ? 1 : in_volume); }
};

// Some columns of the matrix of windows: `count` images from `image` on, output positions [begin,
// end) of each.
struct Tile {
  int64_t image, count, begin, end;

  Tile(const Plan& p, int64_t index) {
    image = index / p.tiles_of_image() * p.images;
    count = std::min(p.images, p.batch - image);
    begin = index % p.tiles_of_image() * p.columns;
    end = std::min(begin + p.columns, p.out_volume);
  }
  int64_t columns() const { return count * (end - begin); }
};

// Memory for the operands of a tile.
template <class T> struct Memory {
  Scratch<T> x, col, y;

  // Of so many input channels.
  Memory(const Plan& p, int64_t channels)
      : x(p.images > 1 ? channels * p.in_volume * p.images : 0),
        col(p.in_place ? 0 : channels * p.taps * p.most_columns()),
        y(p.images > 1 ? p.group_out * p.most_columns() : 0) {}
};

// A tile's images of n elements each, `step` apart: [element][image].
template <class T>
const T* side_by_side(const Tile& t, const T* x, int64_t step, int64_t n, T* memory) {
  if (t.count == 1) return x;
  transpose(x, step, t.count, n, memory, t.count);
  return memory;
}

// The windows over `channels` input channels from `channel` on.
template <class T>
MatrixRef<T> windows(const Plan& p, const Tile& t, const T* x, int64_t channel, int64_t channels,
                     const Memory<T>& memory) {
  const int64_t step = p.in_channels * p.in_volume;
  const T* seen = side_by_side(t, x + t.image * step + channel * p.in_volume, step,
                               channels * p.in_volume, memory.x.data());
  if (p.in_place) return {seen + t.begin * t.count, p.windows_ld(t.count)};
  loops<T>().im2col(p, channels, t.count, seen, t.begin, t.end, memory.col.data(), t.columns());
  return {memory.col.data(), t.columns()};
}

// The outputs' gradients of a group.
template <class T>
MatrixRef<T> gradients(const Plan& p, const Tile& t, const T* gy, int64_t group,
                       const Memory<T>& memory) {
  const int64_t step = p.out_channels * p.out_volume, n = p.group_out * p.out_volume;
  const T* g = side_by_side(t, gy + t.image * step + group * n, step, n, memory.y.data());
  return {g + t.begin * t.count, p.out_volume * t.count};
}

// How many input channels of a group are worked on at once: parts with work enough each, and not
// too many of them.
int64_t channels_per_part(const Plan& p, int64_t columns) {
  const int64_t enough =
      ceil_div(int64_t{1} << 20, std::max<int64_t>(1, p.taps * p.group_out * columns));
  const int64_t parts =
      std::clamp<int64_t>(p.group_in / std::max(enough, ceil_div(64, p.taps)), 1, 16);
  return ceil_div(p.group_in, parts);
}

template <class T> bool forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Plan p(s);
  const int64_t tiles = p.tiles(), step = p.out_channels * p.out_volume;
  parallel_for(tiles * p.groups, 1, [&](int64_t begin, int64_t end) {
    const Memory<T> memory(p, p.group_in);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / tiles, channel = group * p.group_out;
      const Tile t(p, i % tiles);
      const MatrixRef<T> seen = windows(p, t, x, group * p.group_in, p.group_in, memory);
      const MatrixRef<T> weight{w + channel * p.depth, p.depth};
      T* to = y + t.image * step + channel * p.out_volume + t.begin;
      T* sums = t.count == 1 ? to : memory.y.data();
      const int64_t ld = p.out_volume * t.count;
      if constexpr (std::is_floating_point_v<T>) {
        if (bias)
          gemm_onto<T, true>(p.group_out, t.columns(), p.depth, weight, seen, bias + channel, sums,
                             ld);
      }
      if (!bias) multiply<T>(p.group_out, t.columns(), p.depth, weight, seen, false, sums, ld);
      if (t.count > 1) transpose(sums, t.count, p.group_out * p.out_volume, t.count, to, step);
    }
  });
  return true;
}

template <class T> bool grad_input(const ConvShape& s, const T* gy, const T* w, const T*, T* gx) {
  const Plan p(s);
  // Windows overlap, so all tiles of an image are added by one thread; images and channels are
  // dealt out.
  const int64_t part = channels_per_part(p, p.out_volume * p.images),
                parts = ceil_div(p.group_in, part);
  const int64_t stacks = ceil_div(p.batch, p.images), step = p.in_channels * p.in_volume;
  parallel_for(stacks * p.groups * parts, 1, [&](int64_t begin, int64_t end) {
    const Memory<T> memory(p, part);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t stack = i / (p.groups * parts), group = i / parts % p.groups;
      const int64_t first = i % parts * part, channels = std::min(part, p.group_in - first);
      const MatrixRef<T> weight{w + group * p.group_out * p.depth + first * p.taps, p.depth,
                                Trans::Yes};
      for (int64_t k = 0; k < p.tiles_of_image(); ++k) {
        const Tile t(p, stack * p.tiles_of_image() + k);
        const MatrixRef<T> g = gradients(p, t, gy, group, memory);
        T* to = gx + t.image * step + (group * p.group_in + first) * p.in_volume;
        T* sums = t.count == 1 ? to : memory.x.data();
        T* col = p.in_place ? sums + t.begin * t.count : memory.col.data();
        const int64_t ld = p.in_place ? p.windows_ld(t.count) : t.columns();
        multiply<T>(channels * p.taps, t.columns(), p.group_out, weight, g, false, col, ld);
        if (!p.in_place) {
          if (k == 0) std::fill_n(sums, channels * p.in_volume * t.count, T(0));
          loops<T>().col2im(p, channels, t.count, col, ld, t.begin, t.end, sums);
        }
        if (t.count > 1) transpose(sums, t.count, channels * p.in_volume, t.count, to, step);
      }
    }
  });
  return true;
}

// How the gradient of the weights is cut. Few weights: runs of tiles are dealt out to threads, and
// have sums of their own that are added in order. Many: input channels are dealt out.
struct WeightCut {
  int64_t run, sums, part;

  explicit WeightCut(const Plan& p) {
    const int64_t total = p.out_channels * p.depth, tiles = p.tiles();
    const bool by_tiles = total <= int64_t{1} << 18;
    const double work = real(total) * real(p.out_volume) * real(p.batch);
    const int64_t most_sums = std::min(tiles, static_cast<int64_t>(work / (1 << 21)));
    run = ceil_div(tiles, by_tiles ? std::clamp<int64_t>(most_sums, 1, 16) : 1);
    sums = ceil_div(tiles, run);
    part = by_tiles ? p.group_in : channels_per_part(p, p.batch * p.out_volume);
  }
};

template <class T> bool grad_weight(const ConvShape& s, const T* x, const T* gy, const T*, T* gw) {
  const Plan p(s);
  const int64_t total = p.out_channels * p.depth, tiles = p.tiles();
  const WeightCut cut(p);
  const int64_t parts = ceil_div(p.group_in, cut.part);
  Scratch<T> partial(cut.sums > 1 ? cut.sums * total : 0);
  parallel_for(cut.sums * p.groups * parts, 1, [&](int64_t begin, int64_t end) {
    const Memory<T> memory(p, cut.part);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sum = i / (p.groups * parts), group = i / parts % p.groups;
      const int64_t first = i % parts * cut.part, channels = std::min(cut.part, p.group_in - first);
      T* to = (cut.sums > 1 ? partial.data() + sum * total : gw) + group * p.group_out * p.depth +
              first * p.taps;
      for (int64_t k = sum * cut.run; k < std::min((sum + 1) * cut.run, tiles); ++k) {
        const Tile t(p, k);
        const MatrixRef<T> seen = windows(p, t, x, group * p.group_in + first, channels, memory);
        const MatrixRef<T> g = gradients(p, t, gy, group, memory);
        multiply<T>(p.group_out, channels * p.taps, t.columns(), g, seen.transposed(),
                    k > sum * cut.run, to, p.depth);
      }
    }
  });
  if (cut.sums > 1) add_parts(partial.data(), cut.sums, total, gw);
  return true;
}

// A pointwise convolution of channels_last is a single product, whose rows are positions.
template <class T, ConvPass Pass>
bool run(const ConvShape& s, const T* a, const T* b, const T* bias, T* result) {
  const int64_t rows = s.batch * volume(s.out), m = s.out_channels, k = s.in_channels;
  if constexpr (Pass == ConvPass::forward) {
    if (!s.channels_last) return forward(s, a, b, bias, result);
    if (bias) gemm_onto<T>(rows, m, k, {a, k}, {b, k, Trans::Yes}, bias, result, m);
    else multiply<T>(rows, m, k, {a, k}, {b, k, Trans::Yes}, false, result, m);
  } else if constexpr (Pass == ConvPass::grad_input) {
    if (!s.channels_last) return grad_input(s, a, b, bias, result);
    multiply<T>(rows, k, m, {a, m}, {b, k}, false, result, k);
  } else {
    if (!s.channels_last) return grad_weight(s, a, b, bias, result);
    multiply<T>(m, k, rows, {b, m, Trans::Yes}, {a, k}, false, result, k);
  }
  return true;
}

// ---- estimates ----

bool supports(const ConvShape& s) {
  return !s.channels_last || (s.groups == 1 && volume(s.kernel) == 1 && Plan(s).in_place);
}

template <class T, ConvPass Pass> ConvWork work(const ConvShape& s) {
  const Plan p(s);
  const auto& panels = typed<T>(TAEDA_PICK(gemm_table));
  const int64_t width = 2 * panels.lanes, positions = p.batch * p.out_volume;
  // The product's rows, columns and depth.
  int64_t m = p.group_out, n = positions, k = p.depth;
  if (Pass == ConvPass::grad_input) std::swap(m, k);
  if (Pass == ConvPass::grad_weight) std::swap(n, k);
  else if (s.channels_last) std::swap(m, n);
  const int64_t tiles = s.channels_last ? 1 : p.tiles();
  ConvWork w;
  // Short sums take as long to begin and to store as kBegin more terms.
  constexpr int64_t kBegin = 4;
  w.fma = real(p.groups) * real(std::max<int64_t>(m, 3)) * real(round_up(n, width)) *
          real(k + kBegin) / real(panels.lanes);
  const double windows = real(positions) * real(p.depth) * real(p.groups);
  const double results = real(positions) * real(p.out_channels) * (p.images > 1 ? 1 : .25);
  w.moved = (p.in_place && p.images == 1 ? .25 : p.stride[2] > 1 ? 1.5 : 1) * windows + results;
  w.packed = real(p.out_channels) * real(p.depth) *
             real(Pass == ConvPass::grad_weight && tiles > 1 ? WeightCut(p).sums : tiles);
  w.calls = real(p.groups) * real(tiles);
  return w;
}
template <class T>
constexpr ConvAlgorithm<T> im2col = {
    "im2col",
    &ConvTuning::im2col,
    {{supports, work<T, ConvPass::forward>, run<T, ConvPass::forward>},
     {supports, work<T, ConvPass::grad_input>, run<T, ConvPass::grad_input>},
     {supports, work<T, ConvPass::grad_weight>, run<T, ConvPass::grad_weight>}}};

// Of integers, whose arithmetic wraps around.
template <class T> void forward_integer(const ConvShape& s, const T* x, const T* w, T* y) {
  using U = std::make_unsigned_t<T>;
  if (s.batch * s.out_channels * volume(s.out) == 0) return;
  forward<U>(s, reinterpret_cast<const U*>(x), reinterpret_cast<const U*>(w), nullptr,
             reinterpret_cast<U*>(y));
}
template <class T> void grad_input_integer(const ConvShape& s, const T* gy, const T* w, T* gx) {
  using U = std::make_unsigned_t<T>;
  const int64_t total = s.batch * s.in_channels * volume(s.in);
  if (s.out_channels * volume(s.out) * volume(s.kernel) == 0) std::fill_n(gx, total, T(0));
  else if (total > 0)
    grad_input<U>(s, reinterpret_cast<const U*>(gy), reinterpret_cast<const U*>(w), nullptr,
                  reinterpret_cast<U*>(gx));
}

}  // namespace

extern constinit const ConvAlgorithm<float> im2col_f32 = im2col<float>;
extern constinit const ConvAlgorithm<double> im2col_f64 = im2col<double>;

}  // namespace taeda::cpu

template <class T>
const taeda::IntegerConvKernels<T> taeda::IntegerConvKernels<T>::cpu = {cpu::forward_integer<T>,
                                                                        cpu::grad_input_integer<T>};
template struct taeda::IntegerConvKernels<uint8_t>;
template struct taeda::IntegerConvKernels<int8_t>;
template struct taeda::IntegerConvKernels<int16_t>;
template struct taeda::IntegerConvKernels<int32_t>;
template struct taeda::IntegerConvKernels<int64_t>;
