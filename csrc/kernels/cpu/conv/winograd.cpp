#include "kernels/cpu/conv/winograd.h"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/simd/winograd.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/simd/pick.h"

// In the transformed domain a convolution is a product of matrices, tiles by channels, for every
// element of a tile. All transforms lie as [element][block of 16 channels][tile][channel]. Some
// rows of tiles, of one image or several, are worked on together: as many as a cache holds.
namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 16;         // channels side by side
constexpr int64_t kPair = 2 * kBlock;  // outputs of a task
constexpr int64_t kDepthTogether = 4;  // blocks of channels that are summed at a stretch
constexpr int64_t kTilesSummed = 128;  // tiles that a weight's gradient sums at a stretch
constexpr int64_t kCached = 1 << 18;   // floats of transforms that are worked on together
constexpr int64_t kLeastTiles = 128;   // so that reading the weights does not cost the more
constexpr int64_t kTilesOfTask = 64;
constexpr int64_t kFewTiles = 128;      // whose sums a near cache holds for all elements
constexpr int64_t kMostSums = 1 << 17;  // weights whose gradients runs of rows sum apart
constexpr double kTransformed = 1.6;    // beside a multiplication that waits for no memory
constexpr int64_t kPieces = 4;          // a multiple of these is easily shared

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t blocks_of(int64_t channels) { return ceil_div(channels, kPair) * 2; }

const simd::WinogradKernels& kernels() {
  using namespace simd;
  return TAEDA_PICK(winograd_kernels);
}
void transpose(const float* from, int64_t from_step, int64_t rows, int64_t cols, float* to,
               int64_t to_step) {
  using namespace simd;
  const auto f = TAEDA_PICK(transpose_kernels).bytes4;
  constexpr int64_t size = sizeof(float);
  f(reinterpret_cast<char*>(to), to_step * size, reinterpret_cast<const char*>(from),
    from_step * size, rows, cols);
}

// ---- steps of two pixels ----
// Outputs in steps of 2 see four inputs, the pixels in even and odd rows and columns, with the taps
// 0 and 2 of the kernel or with tap 1 alone: four times the channels, and 2x2 taps, of which some
// are 0. So are then the last elements of the weights' transforms, and need not be multiplied. In
// this order of the phases, those that are left are neighbours.
struct Phase {
  int64_t down, right;  // of the first pixel
};
constexpr Phase kPhases[] = {{1, 0}, {0, 0}, {0, 1}, {1, 1}};

// How the outputs of all images are cut into tiles.
struct Tiling {
  const simd::WinogradTile& tile;
  int64_t side, elements;  // of a transformed tile
  int64_t phases, taps;    // inputs in one, and taps of each
  int64_t per_row, rows_of_image, rows;

  Tiling(const simd::WinogradTile& tile_, int64_t batch, int64_t height, int64_t width)
      : tile(tile_),
        side(tile.size + tile.taps - 1),
        elements(side * side),
        phases(tile.stride * tile.stride),
        taps(tile.taps * tile.taps),
        per_row(ceil_div(width, tile.size)),
        rows_of_image(ceil_div(height, tile.size)),
        rows(batch * rows_of_image) {}
  int64_t tiles() const { return rows * per_row; }
  // Rows to work on together where a tile takes `channels` transforms.
  int64_t together(int64_t channels) const {
    const int64_t tiles = std::max(kLeastTiles, kCached / (elements * channels));
    return std::clamp<int64_t>(tiles / per_row, 1, rows);
  }
  Phase phase(int64_t i) const { return phases == 1 ? Phase{0, 0} : kPhases[i]; }
  // The phases [first, last) whose weights have an element that need not be 0.
  std::pair<int64_t, int64_t> used(int64_t element) const {
    if (phases == 1) return {0, 1};
    const bool lowest = element / side == side - 1, rightmost = element % side == side - 1;
    return {lowest ? 1 : 0, rightmost ? 2 : lowest ? 3 : 4};
  }
  // The kernel's tap that is a phase's tap i; -1: a 0.
  int64_t tap(int64_t phase, int64_t i) const {
    if (phases == 1) return i;
    const auto [down, right] = kPhases[phase];
    const int64_t row = i / 2, column = i % 2;
    if (row * down + column * right != 0) return -1;
    return (down ? 1 : 2 * row) * 3 + (right ? 1 : 2 * column);
  }
};

// The planes of one group of channels in an array (batch, groups * channels, height, width).
template <class T> struct Planes {
  T* data;
  int64_t channels, height, width, image_step;

  int64_t area() const { return height * width; }
};

// Some rows of tiles, and memory for their transforms.
struct Rows {
  int64_t begin, end, tiles;
  Rows(const Tiling& t, int64_t begin_, int64_t together)
      : begin(begin_),
        end(std::min(begin + together, t.rows)),
        tiles((end - begin) * t.per_row) {}
};

using Spread = void (*)(const simd::TileRow&, float*, int64_t);

// From a tile's element to the next, of that many blocks of 16: no power of two, or the lines of
// all elements would drive each other out of a cache.
int64_t step_of(int64_t blocks) { return blocks * kBlock + kBlock; }

// The transforms of rows of tiles, [element][phase][block of channels][tile][channel]: tile row r
// of an image begins `top` pixels above its outputs, and takes `height` rows of pixels.
void transform(const Tiling& t, const Rows& rows, Spread spread, int64_t stride,
               const Planes<const float>& x, int64_t top, int64_t left, int64_t height, float* to) {
  const int64_t blocks = blocks_of(x.channels), phases = stride * stride;
  const int64_t plane = rows.tiles * kBlock;
  parallel_for((rows.end - rows.begin) * blocks, 1, [&](int64_t begin, int64_t end) {
    Scratch<float> pixels(height * x.width * kBlock);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks, row = rows.begin + i / blocks;
      const int64_t channels = std::clamp<int64_t>(x.channels - block * kBlock, 0, kBlock);
      const int64_t start = row % t.rows_of_image * t.tile.size * stride - top;
      const int64_t first = std::clamp<int64_t>(-start, 0, height);
      const int64_t last = std::clamp<int64_t>(x.height - start, first, height);
      const int64_t count = (last - first) * x.width;
      if (channels < kBlock) std::fill_n(pixels.data(), count * kBlock, 0.0f);
      const float* from = x.data + row / t.rows_of_image * x.image_step +
                          block * kBlock * x.area() + (start + first) * x.width;
      transpose(from, x.area(), channels, count, pixels.data(), kBlock);
      for (int64_t k = 0; k < phases; ++k) {
        const Phase phase = phases == 1 ? Phase{0, 0} : t.phase(k);
        spread({pixels.data(), x.width, first, last, phase.right - left, t.per_row, phase.down},
               to + (k * blocks + block) * plane + (row - rows.begin) * t.per_row * kBlock,
               step_of(phases * blocks * rows.tiles));
      }
    }
  });
}

// Weights of output m, channel c and tap t, at data[m * m_step + c * c_step + t], the taps
// backwards if `turned`.
struct Weights {
  const float* data;
  int64_t outputs, channels, m_step, c_step;
  bool turned;

  // The taps of 16 outputs from m on, [tap][output], of a phase.
  void read(const Tiling& t, int64_t phase, int64_t m, int64_t c, float* to) const {
    float kernel[kBlock * kBlock];  // [tap][output]; a whole square is transposed in registers
    const int64_t many = std::min(kBlock, outputs - m), at = m * m_step + c * c_step;
    const bool whole =
        many == kBlock && at + (kBlock - 1) * m_step + kBlock <= outputs * channels * 9;
    if (!whole) std::fill_n(kernel, kBlock * kBlock, 0.0f);
    transpose(data + at, m_step, many, whole ? kBlock : 9, kernel, kBlock);
    for (int64_t k = 0; k < t.taps; ++k) {
      const int64_t tap = t.tap(phase, k);
      if (tap < 0) std::fill_n(to + k * kBlock, kBlock, 0.0f);
      else std::copy_n(kernel + (turned ? 8 - tap : tap) * kBlock, kBlock, to + k * kBlock);
    }
  }
};

// Those of 16 outputs and the channels [first, last) of all phases, [element][channel][output],
// with zeros for channels that fill up blocks.
void transform(const Tiling& t, const Weights& w, int64_t block, int64_t first, int64_t last,
               float* to, int64_t step) {
  const int64_t channels = blocks_of(w.channels) * kBlock;
  float taps[9 * kBlock];
  for (int64_t i = first; i < last; ++i, to += kBlock) {
    const int64_t phase = i / channels, c = i % channels;
    if (c < w.channels && block * kBlock < w.outputs) {
      w.read(t, phase, block * kBlock, c, taps);
    } else {
      std::fill_n(taps, 9 * kBlock, 0.0f);
    }
    t.tile.weight(taps, to, step);
  }
}

// [element][block of outputs][phase][channel][output].
void transform(const Tiling& t, const Weights& w, float* to) {
  const int64_t blocks = blocks_of(w.outputs);
  const int64_t depth = t.phases * blocks_of(w.channels) * kBlock;
  parallel_for(blocks * depth / kBlock, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kBlock; i < end * kBlock; i += kBlock) {
      transform(t, w, i / depth, i % depth, i % depth + kBlock, to + i * kBlock,
                step_of(blocks * depth));
    }
  });
}

// sums[block][tile][output] of one element and a pair of blocks of outputs, of some blocks of
// channels; those are x_block apart, and weights of the second block of outputs w_block after those
// of the first. Adds to what is there, or not.
void multiply(int64_t channel_blocks, const float* x, int64_t x_block, int64_t tiles,
              const float* w, int64_t w_block, bool add, float* sums) {
  const simd::WinogradKernels& k = kernels();
  const bool wide = k.cols == kPair;
  for (int64_t column = 0; column < kPair; column += k.cols) {
    const int64_t block = column / kBlock, inside = column % kBlock;
    simd::Panel p{kBlock,
                  channel_blocks,
                  nullptr,
                  kBlock,
                  1,
                  x_block,
                  w + block * w_block + inside,
                  wide ? w_block : k.cols / 2,
                  kBlock,
                  kBlock * kBlock,
                  nullptr,
                  kBlock,
                  wide ? tiles * kBlock : k.cols / 2,
                  add};
    for (int64_t i = 0; i < tiles; i += k.rows) {
      p.a = x + i * kBlock;
      p.c = sums + (block * tiles + i) * kBlock + inside;
      k.product(std::min(k.rows, tiles - i), p);
    }
  }
}

// The sums over channels for some of x's tiles and a pair of blocks of w's outputs:
// [element][block][tile][output].
void multiply(const Tiling& t, int64_t depth_blocks, const float* x, int64_t x_tiles, int64_t tiles,
              const float* w, int64_t w_blocks, float* sums) {
  const int64_t w_block = depth_blocks * kBlock * kBlock, blocks = depth_blocks / t.phases;
  for (int64_t e = 0; e < t.elements; ++e) {
    const auto [first, last] = t.used(e);
    for (int64_t q = first * blocks; q < last * blocks; q += kDepthTogether) {
      multiply(std::min(kDepthTogether, last * blocks - q),
               x + e * step_of(depth_blocks * x_tiles) + q * x_tiles * kBlock, x_tiles * kBlock,
               tiles, w + e * step_of(w_blocks * depth_blocks * kBlock) + q * kBlock * kBlock,
               w_block, q != first * blocks, sums + e * step_of(2 * tiles));
    }
  }
}

// The outputs of rows [begin, end) of tiles from their sums.
bool finish(const Tiling& t, int64_t begin, int64_t end, const float* sums, int64_t channel,
            const float* bias, const Planes<float>& y) {
  const int64_t tiles = (end - begin) * t.per_row;
  Scratch<float> pixels(t.tile.size * y.width * kBlock);
  bool finite = true;
  for (int64_t block = 0; block < 2; ++block) {
    const int64_t first = channel + block * kBlock;
    const int64_t many = std::clamp<int64_t>(y.channels - first, 0, kBlock);
    float shift[kBlock] = {};
    if (bias) std::copy_n(bias + first, many, shift);
    for (int64_t row = begin; many > 0 && row < end; ++row) {
      const int64_t top = row % t.rows_of_image * t.tile.size;
      const int64_t height = std::min(t.tile.size, y.height - top);
      finite &= t.tile.output(sums + (block * tiles + (row - begin) * t.per_row) * kBlock,
                              step_of(2 * tiles), shift,
                              {pixels.data(), y.width, 0, height, 0, t.per_row});
      transpose(pixels.data(), kBlock, height * y.width, many,
                y.data + row / t.rows_of_image * y.image_step + first * y.area() + top * y.width,
                y.area());
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
  const int64_t block = kDepthTogether * kBlock * kBlock;
  const int64_t step = step_of(2 * block / kBlock);
  std::atomic<bool> finite = true;
  parallel_for(blocks_of(y.channels) / 2, 1, [&](int64_t begin, int64_t end) {
    Scratch<float> weights(t.elements * step), sums(t.elements * step_of(2 * rows.tiles));
    for (int64_t pair = begin; pair < end; ++pair) {
      for (int64_t q = 0; q < depth; q += kDepthTogether) {
        const int64_t until = std::min(q + kDepthTogether, depth);
        for (int64_t b = 0; b < 2; ++b) {
          transform(t, w, 2 * pair + b, q * kBlock, until * kBlock, weights.data() + b * block,
                    step);
        }
        for (int64_t e = 0; e < t.elements; ++e) {
          const auto [first, last] = t.used(e);
          const int64_t from = std::max(q, first * each), to = std::min(until, last * each);
          if (from >= to) continue;
          multiply(to - from,
                   seen.data() + e * step_of(depth * rows.tiles) + from * rows.tiles * kBlock,
                   rows.tiles * kBlock, rows.tiles,
                   weights.data() + e * step + (from - q) * kBlock * kBlock, block,
                   from != first * each, sums.data() + e * step_of(2 * rows.tiles));
        }
      }
      if (!finish(t, 0, t.rows, sums.data(), pair * kPair, bias, y)) finite = false;
    }
  });
  return finite;
}

bool convolve(const simd::WinogradTile& tile, int64_t batch, const Planes<const float>& x,
              int64_t top, int64_t left, const Weights& w, const float* bias,
              const Planes<float>& y) {
  const Tiling t(tile, batch, y.height, y.width);
  const int64_t depth = t.phases * blocks_of(x.channels), blocks = blocks_of(y.channels);
  if (t.tiles() <= kFewTiles && blocks / 2 >= kPieces)
    return convolve_few(t, x, top, left, w, bias, y);
  Scratch<float> weights(t.elements * step_of(blocks * depth * kBlock));
  transform(t, w, weights.data());
  const int64_t most_of_part = std::max<int64_t>(1, kTilesOfTask / t.per_row);
  std::atomic<bool> finite = true;
  auto convolve_rows = [&](const Rows& rows) {
    Scratch<float> seen(t.elements * step_of(depth * rows.tiles));
    transform(t, rows, tile.input, tile.stride, x, top, left, t.side * tile.stride, seen.data());
    const int64_t parts = ceil_div(rows.end - rows.begin, most_of_part);
    const int64_t part = ceil_div(rows.end - rows.begin, parts);
    parallel_for(parts * blocks / 2, 1, [&](int64_t begin, int64_t end) {
      Scratch<float> sums(t.elements * step_of(2 * part * t.per_row));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / parts * 2, from = rows.begin + i % parts * part;
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
  parallel_for(ceil_div(t.rows, size), pieces >= kPieces ? 1 : t.rows,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) convolve_rows(Rows(t, i * size, size));
               });
  return finite;
}

// gw[m][c] = or, if `add`, += what the sums over tiles of 16 outputs from m on and a pair of blocks
// of channels from c on, of a phase, come to: [element][output][channel].
bool finish(const Tiling& t, const float* sums, int64_t m, int64_t phase, int64_t c,
            int64_t outputs, int64_t channels, bool add, float* gw) {
  float taps[9 * kBlock];
  bool finite = true;
  for (int64_t i = 0; i < std::min(kBlock, outputs - m); ++i) {
    for (int64_t block = 0; block < 2; ++block) {
      finite &= t.tile.weight_gradient(sums + i * kPair + block * kBlock, step_of(kPair), taps);
      const int64_t first = c + block * kBlock;
      float* to = gw + ((m + i) * channels + first) * 9;
      for (int64_t j = 0; j < std::min(kBlock, channels - first); ++j) {
        for (int64_t k = 0; k < t.taps; ++k) {
          const int64_t tap = t.tap(phase, k);
          if (tap >= 0) to[j * 9 + tap] = taps[k * kBlock + j] + (add ? to[j * 9 + tap] : 0);
        }
      }
    }
  }
  return finite;
}

bool correlate(const simd::WinogradTile& tile, int64_t batch, const Planes<const float>& x,
               int64_t top, int64_t left, const Planes<const float>& g, float* gw) {
  const Tiling t(tile, batch, g.height, g.width);
  const int64_t channel_blocks = blocks_of(x.channels), g_blocks = blocks_of(g.channels);
  const int64_t x_blocks = t.phases * channel_blocks;
  const int64_t together = t.together((x_blocks + g_blocks) * kBlock);
  const simd::WinogradKernels& k = kernels();
  const bool wide = k.cols == kPair;
  std::atomic<bool> finite = true;
  auto sum_rows = [&](const Rows& rows, bool add, float* to) {
    const int64_t x_step = step_of(x_blocks * rows.tiles), g_step = step_of(g_blocks * rows.tiles);
    Scratch<float> seen(t.elements * x_step), grads(t.elements * g_step);
    transform(t, rows, tile.input, tile.stride, x, top, left, t.side * tile.stride, seen.data());
    transform(t, rows, tile.output_gradient, 1, g, 0, 0, t.tile.size, grads.data());
    const int64_t plane = rows.tiles * kBlock, pairs = x_blocks / 2;
    parallel_for(g_blocks * pairs, 1, [&](int64_t first, int64_t last) {
      Scratch<float> sums(t.elements * step_of(kPair));
      for (int64_t i = first; i < last; ++i) {
        const int64_t pair = i / g_blocks * 2, out = i % g_blocks;
        if (out * kBlock >= g.channels) continue;
        const int64_t phase = pair / channel_blocks;
        for (int64_t e = 0; e < t.elements; ++e) {
          const auto [from, until] = t.used(e);
          if (phase < from || phase >= until) {
            std::fill_n(sums.data() + e * step_of(kPair), kBlock * kPair, 0.0f);
            continue;
          }
          const float* a = grads.data() + e * g_step + out * plane;
          const float* b = seen.data() + e * x_step + pair * plane;
          for (int64_t q = 0; q < rows.tiles; q += kTilesSummed) {
            for (int64_t r = 0; r < kBlock; r += k.rows) {
              for (int64_t column = 0; column < kPair; column += k.cols) {
                const int64_t inside = column / kBlock * plane + column % kBlock;
                k.product(std::min(k.rows, kBlock - r),
                          {std::min(kTilesSummed, rows.tiles - q), 1, a + q * kBlock + r, 1, kBlock,
                           0, b + q * kBlock + inside, wide ? plane : k.cols / 2, kBlock, 0,
                           sums.data() + e * step_of(kPair) + r * kPair + column, kPair, k.cols / 2,
                           q != 0});
              }
            }
          }
        }
        if (!finish(t, sums.data(), out * kBlock, phase, pair % channel_blocks * kBlock, g.channels,
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
  parallel_for(runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t last = std::min((i + 1) * run, t.rows);
      float* to = runs > 1 ? apart.data() + i * weights : gw;
      for (int64_t first = i * run; first < last; first += step)
        sum_rows(Rows(t, first, std::min(step, last - first)), first > i * run, to);
    }
  });
  if (runs > 1) add_parts(apart.data(), runs, weights, gw);
  return finite;
}

// ---- which tiles ----

// Multiplications, and what else costs as much as some.
double cost(const simd::WinogradTile& tile, int64_t batch, int64_t channels, int64_t outputs,
            int64_t height, int64_t width) {
  const Tiling t(tile, batch, height, width);
  const auto c = static_cast<double>(blocks_of(channels) * kBlock),
             m = static_cast<double>(blocks_of(outputs) * kBlock);
  const auto tiles = static_cast<double>(t.tiles()), elements = static_cast<double>(t.elements);
  int64_t products = 0;
  for (int64_t e = 0; e < t.elements; ++e) products += t.used(e).second - t.used(e).first;
  const double seen = c * static_cast<double>(t.phases);
  return static_cast<double>(products) * tiles * c * m +
         12 * elements * (tiles * (seen + m) + seen * m);
}
const simd::WinogradTile& best(int64_t stride, int64_t batch, int64_t channels, int64_t outputs,
                               int64_t height, int64_t width) {
  if (stride == 2) return kernels().strided;
  auto of = [&](const simd::WinogradTile& t) {
    return cost(t, batch, channels, outputs, height, width);
  };
  return of(kernels().tile2) < of(kernels().tile4) ? kernels().tile2 : kernels().tile4;
}

double shape_cost(const ConvShape& s) {
  const int64_t c = s.in_channels / s.groups, m = s.out_channels / s.groups;
  const auto& tile = best(s.stride[0], s.batch, c, m, s.out[0], s.out[1]);
  return cost(tile, s.batch, c, m, s.out[0], s.out[1]);
}

template <class F> bool each_group(const ConvShape& s, F&& f) {
  bool finite = true;
  for (int64_t g = 0; g < s.groups; ++g) finite &= f(g);
  return finite;
}

template <class T>
Planes<T> planes(const ConvShape& s, T* data, int64_t channels, const int64_t (&size)[3],
                 int64_t group) {
  const int64_t many = channels / s.groups, area = size[0] * size[1];
  return {data + group * many * area, many, size[0], size[1], channels * area};
}

}  // namespace

template <class T> bool fits_winograd(const ConvShape& s) {
  if (!std::is_same_v<T, float> || s.spatial != 2) return false;
  for (int d = 0; d < 2; ++d) {
    if (s.kernel[d] != 3 || s.dilation[d] != 1) return false;
  }
  if (s.stride[0] != s.stride[1] || s.stride[0] > 2) return false;
  const int64_t c = s.in_channels / s.groups, m = s.out_channels / s.groups;
  if (c < kBlock || m < kBlock) return false;
  const double direct = 9.0 * static_cast<double>(s.batch * s.out[0] * s.out[1]) *
                        static_cast<double>(c) * static_cast<double>(m);
  return shape_cost(s) < direct;
}
template bool fits_winograd<float>(const ConvShape&);
template bool fits_winograd<double>(const ConvShape&);

double winograd_cost(const ConvShape& s) { return kTransformed * shape_cost(s); }

bool winograd_forward(const ConvShape& s, const float* x, const float* w, const float* bias,
                      float* y) {
  const int64_t c = s.in_channels / s.groups, m = s.out_channels / s.groups;
  const auto& tile = best(s.stride[0], s.batch, c, m, s.out[0], s.out[1]);
  return each_group(s, [&](int64_t g) {
    return convolve(tile, s.batch, planes(s, x, s.in_channels, s.in, g), s.padding[0], s.padding[1],
                    {w + g * m * c * 9, m, c, c * 9, 9, false}, bias ? bias + g * m : nullptr,
                    planes(s, y, s.out_channels, s.out, g));
  });
}

bool winograd_grad_input(const ConvShape& s, const float* gy, const float* w, float* gx) {
  const int64_t c = s.in_channels / s.groups, m = s.out_channels / s.groups;
  const auto& tile = best(1, s.batch, m, c, s.in[0], s.in[1]);
  return each_group(s, [&](int64_t g) {
    return convolve(tile, s.batch, planes(s, gy, s.out_channels, s.out, g), 2 - s.padding[0],
                    2 - s.padding[1], {w + g * m * c * 9, c, m, 9, c * 9, true}, nullptr,
                    planes(s, gx, s.in_channels, s.in, g));
  });
}

bool winograd_grad_weight(const ConvShape& s, const float* x, const float* gy, float* gw) {
  const int64_t c = s.in_channels / s.groups, m = s.out_channels / s.groups;
  const auto& tile = best(s.stride[0], s.batch, c, m, s.out[0], s.out[1]);
  return each_group(s, [&](int64_t g) {
    return correlate(tile, s.batch, planes(s, x, s.in_channels, s.in, g), s.padding[0],
                     s.padding[1], planes(s, gy, s.out_channels, s.out, g), gw + g * m * c * 9);
  });
}

}  // namespace taeda::cpu
