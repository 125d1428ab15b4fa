// How outputs are cut into Winograd tiles, and the transforms of pixels and weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/simd/winograd.h"

// All transforms lie as [element][block of channels][tile][channel]. Some rows of tiles, of one
// image or several, are worked on together: as many as a cache holds.
namespace taeda::cpu::winograd {

constexpr int64_t kLeastTiles = 128;  // so that reading the weights does not cost the more
constexpr int64_t kCached = 1 << 18;  // floats of transforms that are worked on together
constexpr int64_t kBlock = simd::kWinogradBlock;
inline int64_t blocks_of(int64_t channels) { return ceil_div(channels, kBlock); }

inline const simd::WinogradKernels& kernels() { return TAEDA_PICK(winograd_kernels); }

// ---- steps of two pixels ----
// Outputs in steps of 2 see four inputs, the pixels in even and odd rows and columns, with the taps
// 0 and 2 of the kernel or with tap 1 alone: four times the channels, and 2x2 taps, of which some
// are 0. So are then the last elements of the weights' transforms, and need not be multiplied. In
// this order of the phases, those that are left are neighbours.
struct Phase {
  int64_t down, right;  // of the first pixel
};
constexpr Phase kPhases[] = {{1, 0}, {0, 0}, {0, 1}, {1, 1}};

// How the outputs of all images are cut into tiles. With dilation, outputs whose indices have the
// same remainder modulo it share tiles: the rows of an image, and the tiles of a row, are those of
// one remainder after the other.
struct Tiling {
  const simd::WinogradTile& tile;
  int64_t side, elements;  // of a transformed tile
  int64_t phases, taps;    // inputs in one, and taps of each
  int64_t down, right;     // dilation
  int64_t tiles_of_remainder, rows_of_remainder;
  int64_t per_row, rows_of_image, rows;

  Tiling(const simd::WinogradTile& tile_, Sizes dilation, int64_t batch, int64_t height,
         int64_t width)
      : tile(tile_),
        side(tile.size + tile.taps - 1),
        elements(side * side),
        phases(tile.stride * tile.stride),
        taps(tile.taps * tile.taps),
        down(dilation[1]),
        right(dilation[2]),
        tiles_of_remainder(ceil_div(ceil_div(width, right), tile.size)),
        rows_of_remainder(ceil_div(ceil_div(height, down), tile.size)),
        per_row(right * tiles_of_remainder),
        rows_of_image(down * rows_of_remainder),
        rows(batch * rows_of_image) {}
  // The first output of a row of tiles; further ones lie `down` apart.
  int64_t top(int64_t row) const {
    const int64_t of_image = row % rows_of_image;
    return of_image / rows_of_remainder + of_image % rows_of_remainder * tile.size * down;
  }
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

// From a tile's element to the next, of that many blocks: no power of two, or the lines of
// all elements would drive each other out of a cache.
inline int64_t step_of(int64_t blocks) { return blocks * kBlock + kBlock; }

// The transforms of rows of tiles, [element][phase][block of channels][tile][channel]: a row of
// tiles begins `top` pixels above and `left` before its outputs, and takes `height` rows of pixels.
inline void transform(const Tiling& t, const Rows& rows, Spread spread, int64_t stride,
                      const Planes<const float>& x, int64_t top, int64_t left, int64_t height,
                      float* to) {
  const int64_t blocks = blocks_of(x.channels), phases = stride * stride;
  const int64_t plane = rows.tiles * kBlock;
  parallel_for((rows.end - rows.begin) * blocks, 1, [&](int64_t begin, int64_t end) {
    Scratch<float> pixels(height * x.width * kBlock);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks, row = rows.begin + i / blocks;
      const int64_t channels = std::min(x.channels - block * kBlock, kBlock);
      const int64_t start = t.top(row) * stride - top;
      const int64_t first = std::clamp<int64_t>(ceil_div(-start, t.down), 0, height);
      const int64_t last = std::clamp<int64_t>(ceil_div(x.height - start, t.down), first, height);
      if (channels < kBlock) std::fill_n(pixels.data(), (last - first) * x.width * kBlock, 0.0f);
      const float* from = x.data + row / t.rows_of_image * x.image_step + block * kBlock * x.area();
      const int64_t together = t.down == 1 ? last - first : 1;
      for (int64_t r = first; r < last; r += together) {
        transpose(from + (start + r * t.down) * x.width, x.area(), channels, together * x.width,
                  pixels.data() + (r - first) * x.width * kBlock, kBlock);
      }
      for (int64_t k = 0; k < phases * t.right; ++k) {
        const int64_t remainder = k % t.right, tile = remainder * t.tiles_of_remainder;
        const Phase phase = phases == 1 ? Phase{0, 0} : t.phase(k);
        spread({pixels.data(), x.width, first, last, remainder + phase.right - left,
                t.tiles_of_remainder, phase.down, t.right},
               to + (k / t.right * blocks + block) * plane +
                   ((row - rows.begin) * t.per_row + tile) * kBlock,
               step_of(phases * blocks * rows.tiles));
      }
    }
  });
}

// Weights of output m, channel c and tap t, at data[m * m_step + c * c_step + t], the taps
// backwards if `flipped`.
struct Weights {
  const float* data;
  int64_t outputs, channels, m_step, c_step;
  bool flipped;

  // The taps of a block of outputs from m on, [tap][output], of a phase.
  void read(const Tiling& t, int64_t phase, int64_t m, int64_t c, float* to) const {
    constexpr int64_t side = 16;  // of the squares that are transposed in registers
    float kernel[side * kBlock];  // [tap][output]
    const int64_t many = std::min(kBlock, outputs - m), at = m * m_step + c * c_step;
    const bool whole =
        many == kBlock && at + (kBlock - 1) * m_step + side <= outputs * channels * 9;
    if (!whole) std::fill_n(kernel, side * kBlock, 0.0f);
    transpose(data + at, m_step, many, whole ? side : 9, kernel, kBlock);
    for (int64_t k = 0; k < t.taps; ++k) {
      const int64_t tap = t.tap(phase, k);
      if (tap < 0) std::fill_n(to + k * kBlock, kBlock, 0.0f);
      else std::copy_n(kernel + (flipped ? 8 - tap : tap) * kBlock, kBlock, to + k * kBlock);
    }
  }
};

// Those of a block of outputs and the channels [first, last) of all phases,
// [element][channel][output], with zeros for channels that fill up blocks.
inline void transform(const Tiling& t, const Weights& w, int64_t block, int64_t first, int64_t last,
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
inline void transform(const Tiling& t, const Weights& w, float* to) {
  const int64_t blocks = blocks_of(w.outputs);
  const int64_t depth = t.phases * blocks_of(w.channels) * kBlock;
  parallel_for(blocks * depth / kBlock, 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kBlock; i < end * kBlock; i += kBlock) {
      transform(t, w, i / depth, i % depth, i % depth + kBlock, to + i * kBlock,
                step_of(blocks * depth));
    }
  });
}

}  // namespace taeda::cpu::winograd
