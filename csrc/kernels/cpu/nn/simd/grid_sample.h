// What each point of a grid reads of an image.
#pragma once

#include "kernels/cpu/simd/pick.h"
#include "kernels/grid_sample.h"

namespace taeda::cpu::simd {

// The taps of all points of one image: those of point p are first[p] to first[p + 1].
// `derivatives`, if any, gets the derivatives of each tap's weight, in the order of the grid's
// coordinates. Returns how many taps there are.
template <class T>
using GridTaps = int64_t (*)(const GridSampler& s, const T* grid, int64_t* first, int32_t* index,
                             T* weight, T* derivatives);

// Rows of channels of one image, `width` elements apart, a whole number of 16-byte pieces, and
// after them a row of zeros: weighted sums of them for the points [begin, end), to rows as wide.
template <class T>
using GridRows = void (*)(const GridSampler& s, const T* x, int64_t width, const T* grid,
                          int64_t begin, int64_t end, T* y);
// Of one image, channel by channel. Sums for the points [begin, end); the gradient of the planes
// [begin, end), zeros before, to which is added point by point; that of the points [begin, end).
template <class T>
using GridPlanes = void (*)(const GridSampler& s, const T* x, const T* grid, int64_t begin,
                            int64_t end, T* y);
template <class T>
using GridPlanesInput = void (*)(const GridSampler& s, const T* gy, const T* grid, int64_t begin,
                                 int64_t end, T* gx);
template <class T>
using GridPlanesGrid = void (*)(const GridSampler& s, const T* gy, const T* x, const T* grid,
                                int64_t begin, int64_t end, T* ggrid);

template <class T> struct GridLoops {
  GridTaps<T> taps;
  GridRows<T> rows;
  GridPlanes<T> planes;
  GridPlanesInput<T> planes_input;
  GridPlanesGrid<T> planes_grid;
};

template <class T> struct GridTable {
  GridLoops<T> by[3][2];  // by the sampling; of 2 and of 3 dimensions

  const GridLoops<T>& of(const GridSampler& s) const {
    return by[static_cast<int>(s.how)][s.spatial - 2];
  }
};

TAEDA_TABLES_UP_TO_V3(ForFloats<GridTable>, grid_kernels)

}  // namespace taeda::cpu::simd
