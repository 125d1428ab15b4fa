// The inner loops of convolution by Winograd's minimal filtering, for kernels of 3x3.
//
// Channels go in blocks, side by side: a pixel, or an element of a tile, is kWinogradBlock floats.
// A tile of `size` x `size` outputs is taken from as many inputs and those that the kernel's taps
// reach beyond; the elements of its transform lie `step` floats apart, the tiles of a row a block.
//
// Where outputs are steps of 2 apart, pixels in even and odd rows and columns are four inputs of
// their own (phases), which kernels of 2x2 and less see in steps of 1.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

constexpr int64_t kWinogradBlock = 32;

// A row of tiles, and the rows of pixels that it overlaps.
struct TileRow {
  float* pixels;        // the first of those rows that are there
  int64_t width;        // of them; further to either side there are zeros
  int64_t first, last;  // which of a tile's rows are there; the others are zeros
  int64_t column;       // of the first tile's first pixel; may be negative
  int64_t tiles;
  int64_t row = 0;       // of a tile's first pixel, among a tile's rows
  int64_t dilation = 1;  // from one column of a tile to the next
};

struct WinogradTile {
  int64_t size;
  int64_t taps;  // along a side of the kernel, or of a phase's
  int64_t stride;
  // Pixels to transformed tiles: of inputs, and of outputs' gradients.
  void (*input)(const TileRow& row, float* to, int64_t step);
  void (*output_gradient)(const TileRow& row, float* to, int64_t step);
  // Sums of products to pixels of outputs, plus a block of biases. False where one is not finite,
  // stored or not.
  bool (*output)(const float* sums, int64_t step, const float* bias, const TileRow& row);
  // Weights, [tap][channel], to their transform; and the transposed map, which tells as above.
  void (*weight)(const float* weights, float* to, int64_t step);
  bool (*weight_gradient)(const float* sums, int64_t step, float* to);
};

struct WinogradKernels {
  WinogradTile tile2, tile4, strided;
};

TAEDA_TABLES(WinogradKernels, winograd_kernels)

}  // namespace taeda::cpu::simd
