// Convolution by Winograd's minimal filtering: tiles of outputs of a 3x3 kernel take a quarter to
// half of the multiplications that the definition does, a little more with stride 2, in float32.
// The price is in accuracy, a few times the rounding error of the plain sum.
#include <algorithm>
#include <atomic>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/winograd_tiles.h"
#include "kernels/cpu/gemm/gemm_packed.h"

// In the transformed domain a convolution is a product of matrices, tiles by channels, for every
// element of a tile.
namespace taeda::cpu {
namespace {

using namespace winograd;

constexpr int64_t kDepthTogether = 2;  // blocks of channels that are summed at once
constexpr int64_t kTilesSummed = 128;  // tiles that a weight's gradient sums at a stretch
constexpr int64_t kTilesOfTask = 64;
constexpr int64_t kOutputs = 16;        // whose weights' gradients a task sums
constexpr int64_t kFewTiles = 128;      // whose sums a near cache holds for all elements
constexpr int64_t kMostSums = 1 << 17;  // weights whose gradients runs of rows sum apart
constexpr int64_t kLeastChannels = 16;
constexpr int64_t kPieces = 4;  // a multiple of these is easily shared

// sums[tile][output] of one element and a block of outputs, of some blocks of channels, which are
// x_block apart in x. Adds to what is there, or not.
void multiply(int64_t channel_blocks, const float* x, int64_t x_block, int64_t tiles,
              const float* w, bool add, float* sums) {
  const auto& k = product_kernels<float>();
  const int64_t width = std::min(2 * k.lanes, kBlock);
  const int64_t x_at[kDepthTogether] = {0, x_block}, w_at[kDepthTogether] = {0, kBlock * kBlock};
  for (int64_t column = 0; column < kBlock; column += width) {
    for (int64_t i = 0; i < tiles; i += k.rows) {
      float* c = sums + i * kBlock + column;
      k.tile(std::min(k.rows, tiles - i), width,
             {kBlock,
              x + i * kBlock,
              kBlock,
              1,
              w + column,
              kBlock,
              c,
              kBlock,
              {1, add ? 1.0f : 0.0f, c, kBlock},
              channel_blocks,
              x_at,
              w_at});
    }
  }
}

// The sums over channels for some of x's tiles and a block of w's outputs: [element][tile][output].
void multiply(const Tiling& t, int64_t depth_blocks, const float* x, int64_t x_tiles, int64_t tiles,
              const float* w, int64_t w_blocks, float* sums) {
  const int64_t blocks = depth_blocks / t.phases;
  for (int64_t e = 0; e < t.elements; ++e) {
    const auto [first, last] = t.used(e);
    for (int64_t q = first * blocks; q < last * blocks; q += kDepthTogether) {
      multiply(std::min(kDepthTogether, last * blocks - q),
               x + e * step_of(depth_blocks * x_tiles) + q * x_tiles * kBlock, x_tiles * kBlock,
               tiles, w + e * step_of(w_blocks * depth_blocks * kBlock) + q * kBlock * kBlock,
               q != first * blocks, sums + e * step_of(tiles));
    }
  }
}

// The outputs of rows [begin, end) of tiles, of a block of channels, from their sums.
bool finish(const Tiling& t, int64_t begin, int64_t end, const float* sums, int64_t channel,
            const float* bias, const Planes<float>& y) {
  const int64_t many = std::min(y.channels - channel, kBlock);
  const int64_t tiles = (end - begin) * t.per_row;
  Scratch<float> pixels(t.tile.size * y.width * kBlock);
  float shift[kBlock] = {};
  if (bias) std::copy_n(bias + channel, many, shift);
  bool finite = true;
  for (int64_t row = begin; row < end; ++row, sums += t.per_row * kBlock) {
    const int64_t top = t.top(row);
    const int64_t height = std::clamp<int64_t>(ceil_div(y.height - top, t.down), 0, t.tile.size);
    for (int64_t r = 0; r < t.right; ++r) {
      finite &=
          t.tile.output(sums + r * t.tiles_of_remainder * kBlock, step_of(tiles), shift,
                        {pixels.data(), y.width, 0, height, r, t.tiles_of_remainder, 0, t.right});
    }
    float* to = y.data + row / t.rows_of_image * y.image_step + channel * y.area();
    const int64_t together = t.down == 1 ? height : 1;
    for (int64_t r = 0; r < height; r += together) {
      transpose(pixels.data() + r * y.width * kBlock, kBlock, together * y.width, many,
                to + (top + r * t.down) * y.width, y.area());
    }
  }
  return finite;
}

// Few tiles: the weights are transformed piece by piece, just before they are multiplied, so that
// what is several times as large as the weights need not go through memory.
bool convolve_few(const Tiling& t, const Planes<const float>& x, int64_t top, int64_t left,
                  const Weights& w, const float* bias, const Planes<float>& y) {
  const int64_t each = blocks_of(x.channels), depth = t.phases * each;
  const Rows rows(t, 0, t.rows);
  Scratch<float> seen(t.elements * step_of(depth * rows.tiles));
  transform(t, rows, t.tile.input, t.tile.stride, x, top, left, t.side * t.tile.stride,
            seen.data());
  const int64_t step = step_of(kDepthTogether * kBlock);
  std::atomic<bool> finite = true;
  parallel_for(blocks_of(y.channels), 1, [&](int64_t begin, int64_t end) {
    Scratch<float> weights(t.elements * step), sums(t.elements * step_of(rows.tiles));
    for (int64_t block = begin; block < end; ++block) {
      for (int64_t q = 0; q < depth; q += kDepthTogether) {
        const int64_t until = std::min(q + kDepthTogether, depth);
        transform(t, w, block, q * kBlock, until * kBlock, weights.data(), step);
        for (int64_t e = 0; e < t.elements; ++e) {
          const auto [first, last] = t.used(e);
          const int64_t from = std::max(q, first * each), to = std::min(until, last * each);
          if (from >= to) continue;
          multiply(to - from,
                   seen.data() + e * step_of(depth * rows.tiles) + from * rows.tiles * kBlock,
                   rows.tiles * kBlock, rows.tiles,
                   weights.data() + e * step + (from - q) * kBlock * kBlock, from != first * each,
                   sums.data() + e * step_of(rows.tiles));
        }
      }
      if (!finish(t, 0, t.rows, sums.data(), block * kBlock, bias, y)) finite = false;
    }
  });
  return finite;
}

bool convolve(const Tiling& t, const Planes<const float>& x, int64_t top, int64_t left,
              const Weights& w, const float* bias, const Planes<float>& y) {
  const int64_t depth = t.phases * blocks_of(x.channels), blocks = blocks_of(y.channels);
  if (t.tiles() <= kFewTiles && blocks >= kPieces) return convolve_few(t, x, top, left, w, bias, y);
  Scratch<float> weights(t.elements * step_of(blocks * depth * kBlock));
  transform(t, w, weights.data());
  const int64_t most_of_part = std::max<int64_t>(1, kTilesOfTask / t.per_row);
  std::atomic<bool> finite = true;
  auto convolve_rows = [&](const Rows& rows) {
    Scratch<float> seen(t.elements * step_of(depth * rows.tiles));
    transform(t, rows, t.tile.input, t.tile.stride, x, top, left, t.side * t.tile.stride,
              seen.data());
    const int64_t parts = ceil_div(rows.end - rows.begin, most_of_part);
    const int64_t part = ceil_div(rows.end - rows.begin, parts);
    parallel_for(parts * blocks, 1, [&](int64_t begin, int64_t end) {
      Scratch<float> sums(t.elements * step_of(part * t.per_row));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / parts, from = rows.begin + i % parts * part;
        const int64_t until = std::min(from + part, rows.end);
        multiply(t, depth, seen.data() + (from - rows.begin) * t.per_row * kBlock, rows.tiles,
                 (until - from) * t.per_row, weights.data() + block * depth * kBlock * kBlock,
                 blocks, sums.data());
        if (!finish(t, from, until, sums.data(), block * kBlock, bias, y)) finite = false;
      }
    });
  };
  // Where there are pieces enough, threads take them whole; else they share each.
  const int64_t together = t.together(depth * kBlock);
  const int64_t pieces =
      std::min(ceil_div(ceil_div(t.rows, together), kPieces) * kPieces, t.rows / most_of_part);
  const int64_t size = pieces >= kPieces ? ceil_div(t.rows, pieces) : together;
  parallel_each(ceil_div(t.rows, size), pieces >= kPieces ? 1 : t.rows,
                [&](int64_t i) { convolve_rows(Rows(t, i * size, size)); });
  return finite;
}

// gw[m][c] = or, if `add`, += what the sums over tiles of some outputs from m on and a block of
// channels from c on, of a phase, come to: [element][output][channel].
bool finish(const Tiling& t, const float* sums, int64_t m, int64_t phase, int64_t c,
            int64_t outputs, int64_t channels, bool add, float* gw) {
  float taps[9 * kBlock];
  bool finite = true;
  for (int64_t i = 0; i < std::min(kOutputs, outputs - m); ++i) {
    finite &= t.tile.weight_gradient(sums + i * kBlock, step_of(kOutputs), taps);
    float* to = gw + ((m + i) * channels + c) * 9;
    for (int64_t j = 0; j < std::min(kBlock, channels - c); ++j) {
      for (int64_t k = 0; k < t.taps; ++k) {
        const int64_t tap = t.tap(phase, k);
        if (tap >= 0) to[j * 9 + tap] = taps[k * kBlock + j] + (add ? to[j * 9 + tap] : 0);
      }
    }
  }
  return finite;
}

bool correlate(const Tiling& t, const Planes<const float>& x, int64_t top, int64_t left,
               const Planes<const float>& g, float* gw) {
  const int64_t channel_blocks = blocks_of(x.channels), g_blocks = blocks_of(g.channels);
  const int64_t x_blocks = t.phases * channel_blocks, outputs = ceil_div(g.channels, kOutputs);
  const int64_t together = t.together((x_blocks + g_blocks) * kBlock);
  const auto& k = product_kernels<float>();
  const int64_t width = std::min(2 * k.lanes, kBlock);
  std::atomic<bool> finite = true;
  auto sum_rows = [&](const Rows& rows, bool add, float* to) {
    const int64_t x_step = step_of(x_blocks * rows.tiles), g_step = step_of(g_blocks * rows.tiles);
    Scratch<float> seen(t.elements * x_step), grads(t.elements * g_step);
    transform(t, rows, t.tile.input, t.tile.stride, x, top, left, t.side * t.tile.stride,
              seen.data());
    transform(t, rows, t.tile.output_gradient, 1, g, 0, 0, t.tile.size, grads.data());
    const int64_t plane = rows.tiles * kBlock;
    parallel_for(outputs * x_blocks, 1, [&](int64_t first, int64_t last) {
      Scratch<float> sums(t.elements * step_of(kOutputs));
      for (int64_t i = first; i < last; ++i) {
        const int64_t block = i / outputs, out = i % outputs * kOutputs;
        const int64_t phase = block / channel_blocks;
        for (int64_t e = 0; e < t.elements; ++e) {
          float* of_element = sums.data() + e * step_of(kOutputs);
          const auto [from, until] = t.used(e);
          if (phase < from || phase >= until) {
            std::fill_n(of_element, kOutputs * kBlock, 0.0f);
            continue;
          }
          const float* a = grads.data() + e * g_step + out / kBlock * plane + out % kBlock;
          const float* b = seen.data() + e * x_step + block * plane;
          for (int64_t q = 0; q < rows.tiles; q += kTilesSummed) {
            for (int64_t r = 0; r < kOutputs; r += k.rows) {
              for (int64_t column = 0; column < kBlock; column += width) {
                float* c = of_element + r * kBlock + column;
                k.tile(std::min(k.rows, kOutputs - r), width,
                       {std::min(kTilesSummed, rows.tiles - q),
                        a + q * kBlock + r,
                        1,
                        kBlock,
                        b + q * kBlock + column,
                        kBlock,
                        c,
                        kBlock,
                        {1, q != 0 ? 1.0f : 0.0f, c, kBlock}});
              }
            }
          }
        }
        if (!finish(t, sums.data(), out, phase, block % channel_blocks * kBlock, g.channels,
                    x.channels, add, to))
          finite = false;
      }
    });
  };
  // Where there are many rows, runs of them add to sums of their own, a thread to each.
  const int64_t weights = g.channels * x.channels * 9;
  const int64_t pieces = ceil_div(t.rows, together);
  const int64_t most = weights > kMostSums || pieces < kPieces ? 1 : pieces < 8 ? kPieces : 8;
  const int64_t run = ceil_div(t.rows, most), runs = ceil_div(t.rows, run);
  const int64_t step = ceil_div(run, std::max<int64_t>(1, (run + together / 2) / together));
  Scratch<float> apart(runs > 1 ? runs * weights : 0);
  parallel_each(runs, 1, [&](int64_t i) {
    const int64_t last = std::min((i + 1) * run, t.rows);
    float* to = runs > 1 ? apart.data() + i * weights : gw;
    for (int64_t first = i * run; first < last; first += step)
      sum_rows(Rows(t, first, std::min(step, last - first)), first > i * run, to);
  });
  if (runs > 1) add_parts(apart.data(), runs, weights, gw);
  return finite;
}

// ---- which tiles ----

ConvWork tile_work(const Tiling& t, int64_t channels, int64_t outputs) {
  const double c = real(blocks_of(channels) * kBlock), m = real(blocks_of(outputs) * kBlock);
  const double tiles = real(t.tiles()), elements = real(t.elements);
  int64_t products = 0;
  for (int64_t e = 0; e < t.elements; ++e) products += t.used(e).second - t.used(e).first;
  const double seen = c * real(t.phases);
  return {real(products) * tiles * c * m / real(product_kernels<float>().lanes),
          elements * tiles * (seen + m), elements * seen * m, real(t.rows)};
}

// The tiles that take the least time, and their work.
struct Choice {
  Tiling tiling;
  ConvWork work;
};
Choice best(const ConvShape& s, ConvPass pass) {
  const bool backward = pass == ConvPass::grad_input;
  const auto& written = backward ? s.in : s.out;
  const auto of = [&](const simd::WinogradTile& tile) {
    const Tiling t(tile, s.dilation, s.batch, written[1], written[2]);
    const int64_t c = s.in_channels / s.groups, m = s.out_channels / s.groups;
    return Choice{t, tile_work(t, backward ? m : c, backward ? c : m)};
  };
  if (s.stride[2] == 2) return of(kernels().strided);
  const Choice two = of(kernels().tile2), four = of(kernels().tile4);
  const ConvRates& rates = conv_tuning().winograd[static_cast<size_t>(pass)];
  return rates.time(two.work) < rates.time(four.work) ? two : four;
}

template <class T>
Planes<T> planes(const ConvShape& s, T* data, int64_t channels, Sizes size, int64_t group) {
  const int64_t many = channels / s.groups, area = volume(size);
  return {data + group * many * area, many, size[1], size[2], channels * area};
}

bool supports(const ConvShape& s) {
  const bool flat = s.in[0] == 1 && s.kernel[0] == 1 && s.padding[0] == 0;
  if (!flat || s.channels_last || s.stride[1] != s.stride[2] || s.stride[1] > 2) return false;
  for (int d = 1; d < 3; ++d) {
    if (s.kernel[d] != 3 || (s.stride[d] > 1 && s.dilation[d] > 1)) return false;
  }
  return std::min(s.in_channels, s.out_channels) / s.groups >= kLeastChannels;
}
// Outputs two apart would be gradients of inputs with gaps.
bool supports_grad_input(const ConvShape& s) { return s.stride[2] == 1 && supports(s); }

template <ConvPass Pass> ConvWork work(const ConvShape& s) {
  ConvWork w = best(s, Pass).work;
  for (double* v : {&w.fma, &w.moved, &w.packed, &w.calls}) *v *= real(s.groups);
  return w;
}

template <ConvPass Pass>
bool run(const ConvShape& s, const float* a, const float* b, const float* bias, float* result) {
  const int64_t c = s.in_channels / s.groups, m = s.out_channels / s.groups;
  const Tiling t = best(s, Pass).tiling;
  bool finite = true;
  for (int64_t g = 0; g < s.groups; ++g) {
    const auto in = [&](auto* x) { return planes(s, x, s.in_channels, s.in, g); };
    const auto out = [&](auto* y) { return planes(s, y, s.out_channels, s.out, g); };
    const int64_t weights = g * m * c * 9, top = s.padding[1], left = s.padding[2];
    if constexpr (Pass == ConvPass::forward) {
      finite &= convolve(t, in(a), top, left, {b + weights, m, c, c * 9, 9, false},
                         bias ? bias + g * m : nullptr, out(result));
    } else if constexpr (Pass == ConvPass::grad_input) {
      finite &= convolve(t, out(a), 2 * s.dilation[1] - top, 2 * s.dilation[2] - left,
                         {b + weights, c, m, 9, c * 9, true}, nullptr, in(result));
    } else {
      finite &= correlate(t, in(a), top, left, out(b), result + weights);
    }
  }
  return finite;
}

}  // namespace

extern constinit const ConvAlgorithm<float> winograd_f32 = {
    "winograd",
    &ConvTuning::winograd,
    {{supports, work<ConvPass::forward>, run<ConvPass::forward>},
     {supports_grad_input, work<ConvPass::grad_input>, run<ConvPass::grad_input>},
     {supports, work<ConvPass::grad_weight>, run<ConvPass::grad_weight>}}};

}  // namespace taeda::cpu
