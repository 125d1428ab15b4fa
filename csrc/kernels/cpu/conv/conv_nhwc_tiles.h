// What convolutions with channels side by side share: panels of outputs, the tiles that images are
// cut into, and how a tile's input is copied.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/gemm/gemm_packed.h"

namespace taeda::cpu::nhwc {

constexpr int64_t kPositions = 128;  // outputs whose gradients are summed at once
constexpr int64_t kNear = 1 << 13;   // weights that are copied at once
constexpr int64_t kTasks = 8;        // or more, where there is work enough
constexpr int64_t kManyWeights = 1 << 17;
constexpr int64_t kTileElements = 1 << 17;  // of the padded copy of a block: half of a usual L2
constexpr int64_t kMostElements = 1 << 22;  // of it where taps are far apart
// Outputs [first, first + many) across one or two registers, or part of one: the columns of a tile.
struct Panel {
  int64_t first, many;
  int64_t width;
  int64_t rows;  // the most of a tile
};
template <class T> std::vector<Panel> panels_of(int64_t outputs) {
  const auto& tile = product_kernels<T>();
  std::vector<Panel> list;
  for (int64_t first = 0; first < outputs; first += 2 * tile.lanes) {
    const int64_t many = std::min(2 * tile.lanes, outputs - first);
    if (many > tile.lanes) list.push_back({first, many, 2 * tile.lanes, tile.rows});
    else if (many > tile.narrow) list.push_back({first, many, tile.lanes, tile.narrow_rows});
    else list.push_back({first, many, tile.narrow, tile.narrow_rows});
  }
  return list;
}
inline int64_t padded(const std::vector<Panel>& panels) {
  return panels.back().first + panels.back().width;
}

// Outputs [first, last) of an axis, which read the same taps [tap, tap + taps).
struct Segment {
  int64_t first, last, tap, taps;
};

// Taps of all outputs together.
inline double taps_read(const std::vector<Segment>& list) {
  double sum = 0;
  for (const Segment& s : list) sum += real((s.last - s.first) * s.taps);
  return sum;
}

// Outputs that are summed of the same taps; without those that are outside of the input for all of
// them.
struct Part {
  Problem p;
  std::vector<int64_t> order;  // the taps' numbers in the kernel, by their positions
  int64_t joined;              // taps along w that lie side by side, or 1
  // Whether outputs leave out rows, and columns, of taps outside of the input, where those
  // are many. Otherwise there are zeros around it. Neighbours along w are not taken apart.
  bool skips_rows, skips_cols;
  std::vector<Segment> planes, rows, cols;  // of p.d, p.h and p.w

  Part(const Problem& all, const ConvShape& s);
  void skip(bool in_rows, bool in_cols);
  void take_apart();  // neighbours too, if many of them read outside of the input
  int64_t run() const { return joined * p.channels; }
  double read() const { return taps_read(planes) * taps_read(rows) * taps_read(cols); }
};

// The outputs of an axis that lie in [begin, end) of their plane.
struct Range {
  int64_t first, last;
  bool none() const { return first >= last; }
  Range within(int64_t from, int64_t until) const {
    return {std::max(first, from), std::min(last, until)};
  }
  Range(int64_t first_, int64_t last_) : first(first_), last(last_) {}
  Range(const Axis& a, int64_t begin, int64_t end)
      : first(std::max<int64_t>(0, ceil_div(begin - a.y_start, a.y_step))),
        last(std::min(a.out, ceil_div(end - a.y_start, a.y_step))) {}
};
inline void cover(const Axis& a, int64_t begin, int64_t end, bool skips, Extent& e) {
  const Range r(a, begin, end);
  if (r.first >= r.last || a.taps.empty()) return;
  const int64_t from = r.first * a.step + a.taps.front().position;
  const int64_t until = (r.last - 1) * a.step + a.taps.back().position + 1;
  e.cover(skips ? std::clamp<int64_t>(from, 0, a.in) : from,
          skips ? std::clamp<int64_t>(until, 0, a.in) : until);
}

// A box of outputs.
struct Box {
  int64_t d, h, w, planes, rows, cols;
  int64_t volume() const { return planes * rows * cols; }
};

// Some planes of y or, of one plane, rows or, of one row, columns; and what of the input they read.
struct Tile {
  Box y;
  Extent depth, height, width;

  Tile(const std::vector<Part>& parts, const Box& y_) : y(y_) {
    for (const Part& part : parts) {
      cover(part.p.d, y.d, y.d + y.planes, part.skips_rows, depth);
      cover(part.p.h, y.h, y.h + y.rows, part.skips_rows, height);
      cover(part.p.w, y.w, y.w + y.cols, part.skips_cols, width);
    }
  }
  int64_t size() const { return depth.size * height.size * width.size; }
  bool inside(const Problem& p) const {
    const auto within = [](const Extent& e, const Axis& a) {
      return e.first >= 0 && e.first + e.size <= a.in;
    };
    return within(depth, p.d) && within(height, p.h) && within(width, p.w);
  }
  // Reads the whole input where it is, instead of a copy of a part.
  void read_all(const Problem& p) {
    depth = {0, p.d.in};
    height = {0, p.h.in};
    width = {0, p.w.in};
  }
  // Where a position's channels begin.
  int64_t at(int64_t z, int64_t y, int64_t x) const {
    return ((z - depth.first) * height.size + y - height.first) * width.size + x - width.first;
  }
};

// How y is cut into tiles, from the sizes alone.
struct Cut {
  const std::vector<Part>& parts;
  Sizes y;
  int64_t planes = 1, rows, cols;

  Cut(const std::vector<Part>& parts_, Sizes y_, int64_t channels);
  int64_t down() const { return ceil_div(y[1], rows); }
  int64_t across() const { return ceil_div(y[2], cols); }
  int64_t tiles() const { return ceil_div(y[0], planes) * down() * across(); }
  // Makes more of them, as long as they are not too small.
  void cut_for(int64_t tasks) {
    while (tiles() < tasks) {
      if (planes > 1) planes = ceil_div(planes, 2);
      else if (rows >= 8) rows = ceil_div(rows, 2);
      else if (rows == 1 && cols > kPositions) cols = ceil_div(cols, 2);
      else return;
    }
  }
  Tile tile(int64_t i) const {
    const int64_t w = i % across() * cols, h = i / across() % down() * rows;
    const int64_t d = i / across() / down() * planes;
    return Tile(parts, {d, h, w, std::min(planes, y[0] - d), std::min(rows, y[1] - h),
                        std::min(cols, y[2] - w)});
  }
  int64_t most() const {  // positions of the largest tile
    int64_t size = 0;
    for (int64_t i = 0; i < tiles(); ++i) size = std::max(size, tile(i).size());
    return size;
  }
  // Where a tile begins in a plane of y: its outputs are contiguous.
  int64_t begin(const Tile& p) const { return (p.y.d * y[1] + p.y.h) * y[2] + p.y.w; }
};

template <class T>
void copy_rows(const T* from, int64_t from_step, int64_t rows, int64_t n, T* to, int64_t to_step) {
  if (from_step == n && to_step == n) std::copy_n(from, rows * n, to);
  else
    for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * from_step, n, to + i * to_step);
}
// Some channels of an image: [channel][position], or of channels_last [position][channel].
template <class T> struct Image {
  const T* data;
  int64_t volume;  // positions
  int64_t last;    // all channels, of channels_last; else 0

  // `first`: the image's first channel.
  Image(const ConvShape& s, const T* x, int64_t image, int64_t all, int64_t first, Sizes size)
      : data(x + image * all * taeda::cpu::volume(size) +
             first * (s.channels_last ? 1 : taeda::cpu::volume(size))),
        volume(taeda::cpu::volume(size)),
        last(s.channels_last ? all : 0) {}
  Image from(int64_t channel) const {
    Image part = *this;
    part.data += channel * (last ? 1 : volume);
    return part;
  }
  // Of `channels` channels, `many` positions from `at` on: [position][channel], `step` apart.
  void read(int64_t at, int64_t many, int64_t channels, T* to, int64_t step) const {
    if (!last) return transpose(data + at, volume, channels, many, to, step);
    copy_rows(data + at * last, last, many, channels, to, step);
  }
};

// What a tile reads of the channels of an image: [depth][height][width][channel].
template <class T> void copy_padded(const Problem& p, const Tile& tile, const Image<T>& x, T* to);

// Where the part's tap reads, from the position of an output on.
inline int64_t offset(const Part& part, const Tile& tile, int64_t d, int64_t h, int64_t w) {
  const auto at = [](const Axis& a, int64_t i) { return a.taps[static_cast<size_t>(i)].position; };
  const int64_t row = at(part.p.d, d) * tile.height.size + at(part.p.h, h);
  return (row * tile.width.size + at(part.p.w, w)) * part.p.channels;
}

inline std::vector<Part> parts_of(const ConvShape& s, const std::vector<Problem>& problems) {
  std::vector<Part> parts;
  for (const Problem& p : problems) parts.emplace_back(p, s);
  return parts;
}
inline std::vector<Part> forward_parts(const ConvShape& s) {
  return parts_of(s, forward_problem(s));
}

// Elements of the input with its padding.
inline double padded_input(const std::vector<Part>& parts, Sizes out) {
  const Tile all(parts, {0, 0, 0, out[0], out[1], out[2]});
  return real(all.depth.size) * real(all.height.size) * real(all.width.size);
}

// Multiplications of rows by a panel, or as many as would take as long where rows are too few.
template <class T> double work_of(int64_t rows, const Panel& panel) {
  const auto& tile = product_kernels<T>();
  return real(std::max(rows, tile.rows * tile.lanes / (panel.width * 2)) * panel.width);
}

// The gradient of the weights (conv_nhwc_weight.cpp).
template <class T> ConvWork weight_work(const ConvShape& s);
template <class T> bool grad_weight(const ConvShape& s, const T* x, const T* gy, const T*, T* gw);

// Where each channel has a kernel and an output of its own (conv_nhwc_depthwise.cpp); y from x and
// the weights, or gx from gy and the weights. Of channels_last, channels fill a block at least.
inline bool is_depthwise(const ConvShape& s) {
  return s.groups == s.in_channels && s.groups == s.out_channels && volume(s.kernel) > 1;
}
template <class T> bool supports_depthwise(const ConvShape& s);
template <class T> ConvWork depthwise_work(const ConvShape& s);
template <class T, ConvPass Pass>
bool depthwise(const ConvShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T> bool depthwise_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw);

}  // namespace taeda::cpu::nhwc
