#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_nhwc_tiles.h"

// The gradient of the weights: at every position a row of the kernel reads contiguous memory,
// times the outputs' gradients there, with outputs across the registers.
namespace taeda::cpu {
namespace {

using namespace nhwc;

constexpr double kCachedSums = 1 << 18;  // that a cache holds

// A tap, or a run of neighbours along w, and the outputs whose products with it are summed.
struct Tap {
  int64_t at;  // where it reads, from the position of an output on
  Range d, h, w;
};
Range readers(const Axis& a, int64_t tap, bool skips) {
  if (!skips) return {0, a.out};
  const int64_t position = a.taps[static_cast<size_t>(tap)].position;
  return {std::clamp<int64_t>(ceil_div(-position, a.step), 0, a.out),
          std::clamp<int64_t>(ceil_div(a.in - position, a.step), 0, a.out)};
}
std::vector<Tap> taps_of(const Part& part, const Tile& tile) {
  const Problem& p = part.p;
  const auto count = [](const Axis& a) { return static_cast<int64_t>(a.taps.size()); };
  std::vector<Tap> list;
  list.reserve(static_cast<size_t>(count(p.d) * count(p.h) * count(p.w) / part.joined));
  for (int64_t d = 0; d < count(p.d); ++d) {
    const Range in_d = readers(p.d, d, part.skips_rows);
    for (int64_t h = 0; h < count(p.h); ++h) {
      const Range in_h = readers(p.h, h, part.skips_rows);
      for (int64_t w = 0; w < count(p.w); w += part.joined)
        list.push_back({offset(part, tile, d, h, w), in_d, in_h, readers(p.w, w, part.skips_cols)});
    }
  }
  return list;
}

// Here columns are what is summed over, and cost nothing where they are left out, if channels fill
// the registers.
std::vector<Part> weight_parts(const ConvShape& s) {
  std::vector<Part> parts = forward_parts(s);
  if (parts[0].p.channels % 8 == 0) parts[0].take_apart();
  return parts;
}

// sums[panel][tap][channel][output] += the products at a tile's positions, for the panels [first,
// last). The part has some of the `all` channels, from `channel` on.
template <class T>
void add_tile(const Part& part, int64_t channel, int64_t all, const Tile& tile,
              const std::vector<Panel>& panels, int64_t first_panel, int64_t last_panel,
              const T* padded_x, const Image<T>& gy, Sizes out, T* sums) {
  const auto& kernels = product_kernels<T>();
  const Problem& p = part.p;
  const Box& y = tile.y;
  const std::vector<Tap> taps = taps_of(part, tile);
  const int64_t run = part.run(), depth = all * p.taps();
  // No more with a single register of columns: sums that are read and written again would wait.
  const int64_t block = ceil_div(run, ceil_div(run, kernels.rows));
  const int64_t cols = std::min(y.cols, kPositions);
  const int64_t rows =
      std::min(y.rows, ceil_div(y.rows, std::max<int64_t>(1, y.rows * cols / kPositions)));
  const int64_t begin = panels[static_cast<size_t>(first_panel)].first;
  const Panel& end = panels[static_cast<size_t>(last_panel - 1)];
  Scratch<T> grads(rows * cols * (end.first + end.width - begin));
  std::vector<int64_t> row_at(static_cast<size_t>(rows)), grads_at(row_at);
  simd::TileProduct<T> x{};
  x.a_row = 1;
  x.a_step = p.w.step * p.channels;
  for (int64_t i = 0; i < y.planes * ceil_div(y.rows, rows) * ceil_div(y.cols, cols); ++i) {
    const int64_t w = y.w + i % ceil_div(y.cols, cols) * cols;
    const int64_t h = y.h + i / ceil_div(y.cols, cols) % ceil_div(y.rows, rows) * rows;
    const int64_t d = y.d + i / ceil_div(y.cols, cols) / ceil_div(y.rows, rows);
    const int64_t across = std::min(cols, y.w + y.cols - w);
    const int64_t down = std::min(rows, y.h + y.rows - h), positions = across * down;
    for (int64_t r = 0; r < down; ++r) {
      row_at[static_cast<size_t>(r)] =
          tile.at(d * p.d.step, (h + r) * p.h.step, w * p.w.step) * p.channels;
    }
    for (int64_t n = first_panel; n < last_panel; ++n) {
      const Panel& panel = panels[static_cast<size_t>(n)];
      T* g = grads.data() + (panel.first - begin) * positions;
      if (panel.many < panel.width) std::fill_n(g, positions * panel.width, T(0));
      gy.from(panel.first)
          .read((d * out[1] + h) * out[2] + w, positions, panel.many, g, panel.width);
      x.b_row = x.ldc = panel.width;
      for (int64_t r = 0; r < down; ++r)
        grads_at[static_cast<size_t>(r)] = r * across * panel.width;
      T* to = sums + panel.first * depth + channel * panel.width;
      for (const Tap& tap : taps) {
        // The positions of these that read the tap inside of the input.
        const Range in_h = tap.h.within(h, h + down), in_w = tap.w.within(w, w + across);
        x.runs = in_h.last - in_h.first;
        x.k = in_w.last - in_w.first;
        if (tap.d.first <= d && d < tap.d.last && x.runs > 0 && x.k > 0) {
          x.a_at = row_at.data() + (in_h.first - h);
          x.b_at = grads_at.data() + (in_h.first - h);
          x.b = g + (in_w.first - w) * panel.width;
          for (int64_t r = 0; r < run; r += block) {
            x.a = padded_x + tap.at + (in_w.first - w) * x.a_step + r;
            x.c = to + r * panel.width;
            x.epilogue = {T(1), T(1), x.c, x.ldc};
            kernels.tile(std::min(block, run - r), panel.width, x);
          }
        }
        to += (run + (all - p.channels)) * panel.width;
      }
    }
  }
}

// gw[output][channel][tap] from [used tap][channel][output].
template <class T>
void unpack(const Part& part, const Panel& panel, int64_t taps, const T* sums, T* gw) {
  const int64_t channels = part.p.channels, depth = channels * taps;
  const auto used = static_cast<int64_t>(part.order.size());
  const int64_t together = std::clamp<int64_t>(kNear / (panel.width * taps), 1, channels);
  Scratch<T> near(together * taps * panel.width);
  std::fill_n(near.data(), used < taps ? together * taps * panel.width : 0, T(0));
  for (int64_t c = 0; c < channels; c += together) {
    const int64_t n = std::min(together, channels - c);
    for (int64_t t = 0; t < used; ++t) {
      T* to = near.data() + part.order[static_cast<size_t>(t)] * panel.width;
      for (int64_t k = 0; k < n; ++k) {
        std::copy_n(sums + (t * channels + c + k) * panel.width, panel.width,
                    to + k * taps * panel.width);
      }
    }
    transpose(near.data(), panel.width, n * taps, panel.many, gw + panel.first * depth + c * taps,
              depth);
  }
}

}  // namespace

template <class T> ConvWork nhwc::weight_work(const ConvShape& s) {
  if (is_depthwise(s)) return depthwise_work<T>(s);
  const std::vector<Part> parts = weight_parts(s);
  const Part& part = parts[0];
  const int64_t outputs = s.out_channels / s.groups;
  const int64_t run = std::max<int64_t>(1, part.run());
  Sizes out = s.out;
  const int64_t blocks = ceil_div(run, product_kernels<T>().rows);
  const int64_t rounds = ceil_div(volume(out), kPositions);
  const double images = real(s.groups * s.batch);
  ConvWork w;
  double weights = 0;
  for (const Panel& panel : panels_of<T>(outputs)) {
    const double each = real(blocks) * work_of<T>(ceil_div(run, blocks), panel);
    w.fma += part.read() * real(part.p.channels) / real(run) * each;
    weights += real(part.p.depth()) * real(panel.width);
    w.calls += real(rounds * blocks * part.p.taps() / part.joined);
  }
  w.fma *= images / real(product_kernels<T>().lanes);
  w.calls *= images;
  // Sums that no near cache holds are read and written again and again.
  const double reread = weights > kCachedSums ? real(rounds) * weights / 4 : 0;
  w.moved = images * (reread + padded_input(parts, out) * real(part.p.channels) +
                      real(volume(out)) * real(outputs));
  w.packed = real(s.groups) * weights;
  return w;
}

template <class T>
bool nhwc::grad_weight(const ConvShape& s, const T* x, const T* gy, const T*, T* gw) {
  if (is_depthwise(s)) return depthwise_grad_weight(s, x, gy, gw);
  const std::vector<Part> parts = weight_parts(s);
  const Part& part = parts[0];
  Sizes in = s.in, out = s.out;
  const int64_t channels = part.p.channels, outputs = s.out_channels / s.groups;
  const int64_t depth = part.p.depth(), taps = volume(s.kernel);
  const std::vector<Panel> panels = panels_of<T>(outputs);
  const auto all = static_cast<int64_t>(panels.size());
  const int64_t group_sums = padded(panels) * depth, total = s.groups * group_sums;
  // Where taps lie apart, channels are cut, not images.
  const int64_t positions = volume(in);
  const int64_t together =
      part.skips_cols ? std::clamp<int64_t>(kTileElements / positions / 16 * 16, 16, channels)
                      : channels;
  Cut cut(parts, out, together);
  if (s.batch * s.groups < kTasks && total <= kManyWeights)
    cut.cut_for(ceil_div(kTasks, s.batch * s.groups));
  // Runs of tiles add to sums of their own, which are then added in order. With many weights, some
  // outputs are taken apart from others instead.
  const int64_t each = cut.tiles(), tiles = s.batch * each;
  const int64_t few = total > 8 * kManyWeights ? 1 : 4;
  const int64_t most = std::clamp<int64_t>(kManyWeights / std::max<int64_t>(1, total), few, 16);
  const int64_t run = ceil_div(tiles, std::min(most, tiles)), runs = ceil_div(tiles, run);
  int64_t shares = std::clamp<int64_t>(kTasks / (runs * s.groups), 1, all);
  const int64_t share = ceil_div(all, shares);
  shares = ceil_div(all, share);
  Scratch<T> sums(runs * total);
  parallel_each(runs * s.groups * shares, 1, [&](int64_t i) {
    const int64_t first = i % shares * share, last = std::min(first + share, all);
    const int64_t group = i / shares % s.groups, number = i / shares / s.groups;
    const Panel &from = panels[static_cast<size_t>(first)],
                &until = panels[static_cast<size_t>(last - 1)];
    T* to = sums.data() + number * total + group * group_sums;
    std::fill_n(to + from.first * depth, (until.first + until.width - from.first) * depth, T(0));
    for (int64_t k = number * run; k < std::min((number + 1) * run, tiles); ++k) {
      const Image<T> seen(s, x, k / each, channels * s.groups, group * channels, in);
      const Image<T> grads(s, gy, k / each, outputs * s.groups, group * outputs, out);
      const Tile tile = cut.tile(k % each);
      Scratch<T> padded_x(tile.size() * together);
      auto add_channels = [&](const Part& some, int64_t c) {
        copy_padded(some.p, tile, seen.from(c), padded_x.data());
        add_tile(some, c, channels, tile, panels, first, last, padded_x.data(), grads, out, to);
      };
      if (together == channels) add_channels(part, 0);
      for (int64_t c = 0; together < channels && c < channels; c += together) {
        Part some = part;
        some.p.channels = std::min(together, channels - c);
        add_channels(some, c);
      }
    }
  });
  if (runs > 1) add_parts(sums.data(), runs, total, sums.data());
  parallel_each(s.groups * all, 1, [&](int64_t i) {
    const int64_t group = i / all;
    const Panel& panel = panels[static_cast<size_t>(i % all)];
    unpack(part, panel, taps, sums.data() + group * group_sums + panel.first * depth,
           gw + group * outputs * channels * taps);
  });
  return true;
}

#define TAEDA_NHWC(T)                                       \
  template ConvWork nhwc::weight_work<T>(const ConvShape&); \
  template bool nhwc::grad_weight<T>(const ConvShape&, const T*, const T*, const T*, T*);
TAEDA_NHWC(float)
TAEDA_NHWC(double)

}  // namespace taeda::cpu
