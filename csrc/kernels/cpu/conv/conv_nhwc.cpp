#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_nhwc_tiles.h"

// Convolution with channels across the registers (NHWC): the input is copied so that all channels
// of a position are neighbours, with its padding; then what a row of the kernel reads at a position
// is contiguous, and strides, dilation and short rows cost nothing.
namespace taeda::cpu {
namespace {

using namespace nhwc;

constexpr int64_t kDepthTogether = 512;  // taps of channels that are summed at once

// Weights of output m, channel c and tap t lie at data[m * m_step + c * c_step + t].
template <class T> struct Weights {
  const T* data;
  int64_t group_step, m_step, c_step, taps;
};

// [part][panel][tap][channel][output], and 0 for outputs that there are not; begins: of the parts.
template <class T>
void pack(const std::vector<Part>& parts, const std::vector<int64_t>& begins,
          const std::vector<Panel>& panels, const Weights<T>& w, T* packed) {
  const int64_t channels = parts[0].p.channels, wide = 2 * product_kernels<T>().lanes;
  const int64_t together = std::clamp<int64_t>(kNear / (wide * w.taps), 1, channels);
  const int64_t chunks = ceil_div(channels, together);
  const int64_t grain = std::max<int64_t>(1, kNear / (wide * w.taps * together));
  parallel_for(static_cast<int64_t>(panels.size()) * chunks, grain, [&](auto begin, auto end) {
    Scratch<T> near(together * w.taps * wide);
    for (int64_t i = begin; i < end; ++i) {
      const Panel& panel = panels[static_cast<size_t>(i / chunks)];
      const int64_t c = i % chunks * together, n = std::min(together, channels - c);
      const T* from = w.data + panel.first * w.m_step + c * w.c_step;
      const bool side_by_side = w.c_step == w.taps;
      const int64_t tiles = side_by_side ? 1 : n, cols = side_by_side ? n * w.taps : w.taps;
      if (panel.many < panel.width) std::fill_n(near.data(), n * w.taps * panel.width, T(0));
      for (int64_t k = 0; k < tiles; ++k) {
        transpose(from + k * w.c_step, w.m_step, panel.many, cols,
                  near.data() + k * cols * panel.width, panel.width);
      }
      for (size_t part = 0; part < parts.size(); ++part) {
        const std::vector<int64_t>& order = parts[part].order;
        const auto used = static_cast<int64_t>(order.size());
        T* to = packed + begins[part] + panel.first * channels * used + c * panel.width;
        for (int64_t t = 0; t < used; ++t) {
          const T* tap = near.data() + order[static_cast<size_t>(t)] * panel.width;
          for (int64_t k = 0; k < n; ++k) {
            std::copy_n(tap + k * w.taps * panel.width, panel.width,
                        to + (t * channels + k) * panel.width);
          }
        }
      }
    }
  });
}

// The runs of neighbouring taps that some segments read: where they begin, and their weights.
struct Runs {
  std::vector<int64_t> at, weights;

  // Of all runs of a part, numbered by taps, [first, last).
  Runs(const Part& part, const Tile& tile, const Segment& d, const Segment& h, const Segment& w,
       int64_t width, int64_t first, int64_t last) {
    const auto heights = static_cast<int64_t>(part.p.h.taps.size());
    const auto widths = static_cast<int64_t>(part.p.w.taps.size()), each = widths / part.joined;
    const auto reads = [](const Segment& s, int64_t tap) {
      return tap >= s.tap && tap < s.tap + s.taps;
    };
    at.reserve(static_cast<size_t>(last - first));
    weights.reserve(static_cast<size_t>(last - first));
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = i / each, tap_d = row / heights, tap_h = row % heights;
      const int64_t tap_w = part.joined > 1 ? w.tap : i % each;
      if (!reads(d, tap_d) || !reads(h, tap_h) || !reads(w, tap_w)) continue;
      at.push_back(offset(part, tile, tap_d, tap_h, tap_w));
      weights.push_back((row * widths + tap_w) * part.p.channels * width);
    }
  }
  int64_t many() const { return static_cast<int64_t>(at.size()); }
};

// The sums of one panel for a tile's outputs of a part, [position][output], `step` apart.
template <class T>
void sum_part(const Part& part, const Tile& tile, const Panel& panel, const T* padded_x,
              const T* weights, const T* start, T* sums, int64_t step) {
  const auto& kernels = product_kernels<T>();
  const Problem& p = part.p;
  const Box& y = tile.y;
  const int64_t all = p.taps() / part.joined;
  const int64_t together = std::max<int64_t>(1, kDepthTogether / std::max<int64_t>(1, part.run()));
  const Range depth(p.d, y.d, y.d + y.planes), height(p.h, y.h, y.h + y.rows);
  const Range width(p.w, y.w, y.w + y.cols);
  simd::TileProduct<T> x{};
  x.a_row = p.w.step * p.channels;
  x.a_step = 1;
  x.b = weights;
  x.b_row = panel.width;
  x.ldc = p.w.y_step * step;
  bool begins = true;  // at `start`, not at sums of before
  auto sum = [&](const Range& planes, const Range& rows, const Range& columns) {
    const int64_t cols = columns.last - columns.first;
    const int64_t block = ceil_div(cols, ceil_div(cols, panel.rows));
    for (int64_t d = planes.first; d < planes.last; ++d) {
      for (int64_t h = rows.first; h < rows.last; ++h) {
        const int64_t row =
            (p.d.y_start + d * p.d.y_step - y.d) * y.rows + p.h.y_start + h * p.h.y_step - y.h;
        const T* from =
            padded_x + tile.at(d * p.d.step, h * p.h.step, columns.first * p.w.step) * p.channels;
        T* to = sums + (row * y.cols + p.w.y_start + columns.first * p.w.y_step - y.w) * step;
        for (int64_t w = 0; w < cols; w += block) {
          x.a = from + w * x.a_row;
          x.c = to + w * x.ldc;
          x.epilogue = {T(1), T(1), begins ? start : x.c, begins ? 0 : x.ldc};
          kernels.tile(std::min(block, cols - w), panel.width, x);
        }
      }
    }
  };
  for (int64_t first = 0; first == 0 || first < all; first += together) {
    begins = first == 0;
    for (const Segment& d : part.planes) {
      for (const Segment& h : part.rows) {
        for (const Segment& w : part.cols) {
          const Range planes = depth.within(d.first, d.last);
          const Range rows = height.within(h.first, h.last), cols = width.within(w.first, w.last);
          if (planes.none() || rows.none() || cols.none()) continue;
          const Runs runs(part, tile, d, h, w, panel.width, first, std::min(first + together, all));
          x.runs = runs.many();
          x.k = (part.joined > 1 ? w.taps : 1) * p.channels;
          x.a_at = runs.at.data();
          x.b_at = runs.weights.data();
          if (x.runs > 0 || first == 0) sum(planes, rows, cols);
        }
      }
    }
  }
}

// What is summed, and read and written, by the forward pass or the gradient of the input.
struct Roles {
  std::vector<Part> parts;
  int64_t channels, outputs;  // of a group
  Sizes in, out;

  Roles(const ConvShape& s, bool backward)
      : parts(parts_of(s, backward ? backward_problems(s) : forward_problem(s))),
        channels((backward ? s.out_channels : s.in_channels) / s.groups),
        outputs((backward ? s.in_channels : s.out_channels) / s.groups),
        in(backward ? s.out : s.in),
        out(backward ? s.in : s.out) {}
};

template <class T, bool Backward>
bool run(const ConvShape& s, const T* x, const T* weights, const T* bias, T* y) {
  if (is_depthwise(s))
    return depthwise<T, Backward ? ConvPass::grad_input : ConvPass::forward>(s, x, weights, bias,
                                                                             y);
  const auto& [parts, channels, outputs, in, out] = Roles(s, Backward);
  const int64_t taps = volume(s.kernel), each = channels * outputs * taps;
  const Weights<T> w = Backward ? Weights<T>{weights, each, taps, outputs * taps, taps}
                                : Weights<T>{weights, each, channels * taps, taps, taps};
  const std::vector<Panel> panels = panels_of<T>(outputs);
  const int64_t wide = 2 * product_kernels<T>().lanes, many_panels = padded(panels);
  std::vector<int64_t> begins{0};  // of each part's weights
  for (const Part& part : parts)
    begins.push_back(begins.back() + many_panels * channels * part.p.taps());
  const int64_t group_weights = begins.back();
  Scratch<T> packed(s.groups * group_weights);
  parallel_each(s.groups, kNear / std::max<int64_t>(1, group_weights), [&](int64_t g) {
    Weights<T> of_group = w;
    of_group.data += g * w.group_step;
    pack(parts, begins, panels, of_group, packed.data() + g * group_weights);
  });
  // Where there are few images, each is cut, or its outputs are if there are many weights to read.
  Cut cut(parts, out, channels);
  const int64_t images = s.batch * s.groups, all = static_cast<int64_t>(panels.size());
  int64_t shares = 1;
  if (group_weights > kManyWeights)
    shares = std::clamp<int64_t>(kTasks / (images * cut.tiles()), 1, all);
  else if (images < kTasks) cut.cut_for(ceil_div(kTasks, images));
  const int64_t share = ceil_div(all, shares), tiles = cut.tiles();
  shares = ceil_div(all, share);
  // What several shares read is padded_x out once, before them.
  const bool shared = shares > 1;
  const auto image_of = [&](int64_t i) {
    return Image<T>(s, x, i / s.groups, channels * s.groups, i % s.groups * channels, in);
  };
  const int64_t padded_size = std::max<int64_t>(1, cut.most() * channels);  // 0: all is padding
  Scratch<T> shared_x(shared ? images * tiles * padded_size : 0);
  if (shared) {
    parallel_each(images * tiles, 1, [&](int64_t i) {
      copy_padded(parts[0].p, cut.tile(i % tiles), image_of(i / tiles),
                  shared_x.data() + i * padded_size);
    });
  }
  parallel_for(images * tiles * shares, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> sums(cut.planes * cut.rows * cut.cols * wide), start(wide);
    Scratch<T> own(shared ? 0 : padded_size);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / shares / tiles, group = image % s.groups;
      Tile tile = cut.tile(i / shares % tiles);
      const T* padded_x = shared ? shared_x.data() + i / shares * padded_size : own.data();
      if (s.channels_last && s.groups == 1 && tile.inside(parts[0].p)) {
        tile.read_all(parts[0].p);
        padded_x = image_of(image).data;
      } else if (!shared) {
        copy_padded(parts[0].p, tile, image_of(image), own.data());
      }
      // Of channels_last, whole panels are summed where they belong.
      const int64_t all_outputs = outputs * s.groups;
      const auto output = [&](int64_t first) {
        if (!s.channels_last) return y + (image * outputs + first) * volume(out) + cut.begin(tile);
        return y + (image / s.groups * volume(out) + cut.begin(tile)) * all_outputs +
               group * outputs + first;
      };
      for (int64_t n = i % shares * share; n < std::min((i % shares + 1) * share, all); ++n) {
        const Panel& panel = panels[static_cast<size_t>(n)];
        std::fill_n(start.data(), panel.width, T(0));
        if (bias) std::copy_n(bias + group * outputs + panel.first, panel.many, start.data());
        T* const to = output(panel.first);
        const bool there = s.channels_last && panel.many == panel.width;
        for (size_t k = 0; k < parts.size(); ++k) {
          const T* weights = packed.data() + group * group_weights + begins[k] +
                             panel.first * channels * parts[k].p.taps();
          sum_part(parts[k], tile, panel, padded_x, weights, start.data(), there ? to : sums.data(),
                   there ? all_outputs : panel.width);
        }
        if (there) continue;
        if (s.channels_last)
          copy_rows(sums.data(), panel.width, tile.y.volume(), panel.many, to, all_outputs);
        else transpose(sums.data(), panel.width, tile.y.volume(), panel.many, to, volume(out));
      }
    }
  });
  return true;
}

// Whether the padded copy keeps to the size of the input: dilation and padding can blow it up.
template <class T, bool Backward> bool supports(const ConvShape& s) {
  if (is_depthwise(s)) return supports_depthwise<T>(s);
  const Roles r(s, Backward);
  return s.in_channels > 0 && !r.parts.empty() &&
         padded_input(r.parts, r.out) <= real(8 * volume(r.in) + kTileElements);
}

template <class T, bool Backward> ConvWork work(const ConvShape& s) {
  if (is_depthwise(s)) return depthwise_work<T>(s);
  const auto& [parts, channels, outputs, in, out] = Roles(s, Backward);
  ConvWork w;
  for (const Panel& panel : panels_of<T>(outputs)) {
    for (const Part& part : parts) {
      if (part.read() == 0) continue;
      double across = 0;
      for (const Segment& segment : part.cols) {
        const int64_t cols = segment.last - segment.first, blocks = ceil_div(cols, panel.rows);
        across += real(segment.taps * blocks) * work_of<T>(ceil_div(cols, blocks), panel);
        w.calls += real(blocks) * real(part.planes.size() * part.rows.size() == 1
                                           ? part.p.d.out * part.p.h.out
                                           : part.p.d.out * part.p.h.out * 2);
      }
      w.fma += part.read() / taps_read(part.cols) * across * real(part.p.channels);
      w.packed += real(part.p.depth()) * real(panel.width);
    }
  }
  const double images = real(s.groups * s.batch);
  w.fma *= images / real(product_kernels<T>().lanes);
  w.calls *= images;
  w.packed *= real(s.groups);
  w.moved =
      images * (padded_input(parts, out) * real(channels) + 2 * real(volume(out)) * real(outputs));
  return w;
}

template <class T>
constexpr ConvAlgorithm<T> algorithm = {
    "nhwc",
    &ConvTuning::nhwc,
    {{supports<T, false>, work<T, false>, run<T, false>},
     {supports<T, true>, work<T, true>, run<T, true>},
     {supports<T, false>, weight_work<T>, nhwc::grad_weight<T>}}};

}  // namespace

extern constinit const ConvAlgorithm<float> nhwc_f32 = algorithm<float>;
extern constinit const ConvAlgorithm<double> nhwc_f64 = algorithm<double>;

}  // namespace taeda::cpu
