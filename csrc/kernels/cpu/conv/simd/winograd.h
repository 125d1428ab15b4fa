// The inner loops of convolution by Winograd's minimal filtering, for kernels of 3x3.
//
// Channels go in blocks of 16, side by side: a pixel, or an element of a tile, is 16 floats. A
// tile of `size` x `size` outputs is taken from as many inputs and those that the kernel's taps
// reach beyond; the elements of its transform lie `step` floats apart, the tiles of a row 16.
//
// Where outputs are steps of 2 apart, pixels in even and odd rows and columns are four inputs of
// their own (phases), which kernels of 2x2 and less see in steps of 1.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// A row of tiles, and the rows of pixels that it overlaps.
struct TileRow {
  float* pixels;        // the first of those rows that are there
  int64_t width;        // of them; further to either side there are zeros
  int64_t first, last;  // which of a tile's rows are there; the others are zeros
  int64_t column;       // of the first tile's first pixel; may be negative
  int64_t tiles;
  int64_t row = 0;  // of a tile's first pixel, among a tile's rows
};

// c[r, j] = (add ? c[r, j] : 0) + sum over p < k, q < blocks of
// a[q * a_block + r * a_row + p * a_step] * b[q * b_block + p * b_step + j], for r < rows and j in
// two registers, the second of which lies b_next and c_next after the first.
struct Panel {
  int64_t k, blocks;
  const float* a;
  int64_t a_row, a_step, a_block;
  const float* b;
  int64_t b_next, b_step, b_block;
  float* c;
  int64_t c_row, c_next;
  bool add;
};

struct WinogradTile {
  int64_t size;
  int64_t taps;  // along a side of the kernel, or of a phase's
  int64_t stride;
  // Pixels to transformed tiles: of inputs, and of outputs' gradients.
  void (*input)(const TileRow& row, float* to, int64_t step);
  void (*output_gradient)(const TileRow& row, float* to, int64_t step);
  // Sums of products to pixels of outputs, plus 16 biases. False where one is not finite, stored or
  // not.
  bool (*output)(const float* sums, int64_t step, const float* bias, const TileRow& row);
  // Weights, [tap][channel], to their transform; and the transposed map, which tells as above.
  void (*weight)(const float* weights, float* to, int64_t step);
  bool (*weight_gradient)(const float* sums, int64_t step, float* to);
};

struct WinogradKernels {
  int64_t rows, cols;  // the most rows, and the columns, of a product
  void (*product)(int64_t rows, const Panel& panel);
  WinogradTile tile2, tile4, strided;
};

TAEDA_TABLES(WinogradKernels, winograd_kernels)

}  // namespace taeda::cpu::simd
