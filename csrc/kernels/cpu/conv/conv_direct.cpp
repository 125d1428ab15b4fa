#include "kernels/cpu/conv/conv_direct.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_tiling.h"

namespace taeda::cpu {
namespace {

using namespace direct;

constexpr int64_t kTilesTogether = 8;    // tiles that read the same weights one after the other
constexpr int64_t kDepthTogether = 256;  // taps of channels that are summed at a stretch
constexpr int64_t kPackedTogether = 1 << 14;  // weights worth a chunk
// Measured: the time of a multiplication, beside one of a kernel that waits for nothing, and of an
// element moved, of one gathered, of a result stored and of a weight packed, in those of a
// register.
constexpr double kWork = 1.25, kMove = 1, kGather = .4, kStore = .25, kApart = 3, kPack = 2;

// Weights as product() reads them: panels of some outputs, [panel][channel, tap][output]. Those of
// output m, channel c and tap t are at w[m * m_step + c * c_step + t].
template <class T>
void pack_weights(const Problem& p, const ConvShape& s, int64_t outputs, const T* w, int64_t m_step,
                  int64_t c_step, T* packed) {
  int64_t kernel[3];
  for (int d = 0; d < 3; ++d) kernel[d] = d < 3 - s.spatial ? 1 : s.kernel[d - (3 - s.spatial)];
  std::vector<int64_t> taps;
  for (const Axis::Tap& d : p.d.taps) {
    for (const Axis::Tap& h : p.h.taps) {
      for (const Axis::Tap& k : p.w.taps)
        taps.push_back((d.number * kernel[1] + h.number) * kernel[2] + k.number);
    }
  }
  const int64_t rows = loops<T>().rows, depth = p.depth();
  const int64_t grain = std::max<int64_t>(1, kPackedTogether / std::max<int64_t>(1, rows * depth));
  parallel_for(ceil_div(outputs, rows), grain, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin * rows; first < std::min(end * rows, outputs); first += rows) {
      const int64_t m = std::min(rows, outputs - first);
      T* to = packed + first * depth;
      for (int64_t c = 0; c < p.channels; ++c) {
        for (int64_t tap : taps) {
          for (int64_t i = 0; i < m; ++i) *to++ = w[(first + i) * m_step + c * c_step + tap];
        }
      }
    }
  });
}

using simd::Stretch;

// The outputs [q, last) of a band whose rows are `width` outputs wide, without those in the
// padding. Images are `y_image` apart in y.
std::vector<Stretch> stretches(const Problem& p, const Band& band, int64_t width, int64_t q,
                               int64_t last, int64_t y_image) {
  std::vector<Stretch> list;
  const int64_t begin = q, plane = (p.d.y_start + band.depth * p.d.y_step) * p.y_height;
  while (q < last) {
    const int64_t row = q / width, column = q % width;
    const int64_t image = row / band.rows, image_row = row % band.rows;
    const int64_t count = std::min(p.w.out - column, last - q);
    const int64_t y_row = plane + p.h.y_start + (band.first + image_row) * p.h.y_step;
    if (count > 0) {
      list.push_back(
          {q - begin, image * y_image + y_row * p.y_width + p.w.y_start + column * p.w.y_step,
           image * p.channels * p.channel_size(band.rows) + image_row * p.width() + column, count});
    }
    q = (row + 1) * width;
  }
  return list;
}

// How images follow each other in x and y.
struct Strides {
  int64_t x_image, y_image, y_channel;
};

// What the threads share.
template <class T> struct Work {
  const Problem& problem;
  const T* packed;  // weights
  const T* bias;
  Strides strides;
  // Whether the outputs' windows are copied out of what is laid out, one row for each (channel,
  // tap).
  bool copied;
};

// Whether y holds a run of tiles as it comes.
bool in_one_piece(const Problem& p, const std::vector<Stretch>& kept) {
  bool straight = p.w.y_step == 1;
  for (size_t i = 1; i < kept.size(); ++i) {
    straight &= kept[i].from - kept[0].from == kept[i].to - kept[0].to &&
                kept[i].from == kept[i - 1].from + kept[i - 1].count;
  }
  return straight && !kept.empty() && kept[0].from == 0;
}

// Some stretches of outputs.
template <class T>
void store(const Problem& p, std::span<const Stretch> kept, const T* from, T* y) {
  for (const Stretch& k : kept) {
    if (p.w.y_step == 1) {
      std::copy_n(from + k.from, k.count, y + k.to);
    } else {
      for (int64_t j = 0; j < k.count; ++j) y[k.to + j * p.w.y_step] = from[k.from + j];
    }
  }
}

// The outputs [first, first + outputs) of one band, in y, from its laid-out input.
template <class T>
void run_band(const Work<T>& work, const Band& band, int64_t first, int64_t outputs, const T* laid,
              T* y) {
  const auto& kernel = loops<T>();
  const Problem& p = work.problem;
  const int64_t depth = p.depth(), width = work.copied ? p.w.out : p.width();
  const int64_t n = (band.images * band.rows - 1) * width + p.w.out;
  const int64_t together = kTilesTogether * kernel.cols;
  const std::vector<int64_t> offset = offsets(p, band.rows);
  std::vector<int64_t> own(kDepthTogether);
  for (int64_t k = 0; k < kDepthTogether; ++k) own[static_cast<size_t>(k)] = k * together;
  const int64_t window_size =
      work.copied ? std::min(depth, kDepthTogether) * together + kernel.cols : 0;
  Scratch<T> windows(window_size), sums(outputs * together);
  std::fill_n(windows.data(), window_size, T(0));
  const std::vector<T> zeros(static_cast<size_t>(work.bias ? 0 : outputs));
  const T* begins = work.bias ? work.bias + first : zeros.data();
  for (int64_t q = 0; q < n; q += together) {
    const int64_t last = std::min(q + together, n);
    const std::vector<Stretch> kept = stretches(p, band, width, q, last, work.strides.y_image);
    // Tiles that lie in y as they are go there, all others through `sums`.
    const int64_t straight =
        in_one_piece(p, kept) ? (kept.back().from + kept.back().count) / kernel.cols * kernel.cols
                              : int64_t{0};
    for (int64_t k = 0; k < depth; k += kDepthTogether) {
      const int64_t count = std::min(kDepthTogether, depth - k);
      const std::span<const int64_t> part(offset.data() + k, static_cast<size_t>(count));
      if (work.copied) {
        kernel.gather(kept.data(), static_cast<int64_t>(kept.size()), part.data(), count, laid,
                      together, windows.data());
      }
      const T* from = work.copied ? windows.data() : laid + q;
      const int64_t* rows_at = work.copied ? own.data() : part.data();
      for (int64_t m = 0; m < outputs; m += kernel.rows) {
        const int64_t rows = std::min(kernel.rows, outputs - m);
        const T* weights = work.packed + (first + m) * depth + k * rows;
        const T* start = k == 0 ? begins + m : nullptr;
        for (int64_t c = 0; c < last - q; c += kernel.cols) {
          const bool there = c < straight;
          T* to = there ? y + kept[0].to + m * work.strides.y_channel + c
                        : sums.data() + m * together + c;
          kernel.product(count, rows, weights, from + c, rows_at, start, to,
                         there ? work.strides.y_channel : together);
        }
      }
    }
    std::vector<Stretch> rest;
    for (const Stretch& k : kept) {
      const int64_t done = std::clamp<int64_t>(straight - k.from, 0, k.count);
      if (done < k.count) rest.push_back({k.from + done, k.to + done, k.laid, k.count - done});
    }
    for (int64_t m = 0; m < outputs && !rest.empty(); ++m)
      store<T>(p, rest, sums.data() + m * together, y + m * work.strides.y_channel);
  }
}

// How many runs of outputs are computed apart, where images and bands are too few for the threads.
int64_t output_parts(int64_t tasks, int64_t outputs) {
  return tasks >= 8 ? 1 : std::clamp<int64_t>(outputs / 32, 1, 4);
}

// Runs a problem for all images and groups. Weights of a group start at w + group * w_group.
template <class T>
void run(const Problem& p, const ConvShape& s, int64_t outputs, const T* x, const T* w,
         int64_t w_group, int64_t m_step, int64_t c_step, const T* bias, int64_t y_volume, T* y) {
  const int64_t depth = p.depth(), x_volume = p.d.in * p.h.in * p.w.in;
  const int64_t bands = p.bands(), rows = loops<T>().rows;
  // Small images then go together, so that their outputs fill whole tiles.
  const bool copied = p.copied(outputs);
  const int64_t enough = ceil_div(kTilesTogether * loops<T>().cols, p.h.out * p.w.out);
  const int64_t images = copied && bands == 1 ? std::min(enough, s.batch) : 1;
  const int64_t tasks = ceil_div(s.batch, images) * s.groups * bands;
  const int64_t part = ceil_div(ceil_div(outputs, output_parts(tasks, outputs)), rows) * rows;
  const int64_t parts = ceil_div(outputs, part);
  Scratch<T> packed(s.groups * outputs * depth);
  for (int64_t g = 0; g < s.groups; ++g) {
    pack_weights(p, s, outputs, w + g * w_group, m_step, c_step,
                 packed.data() + g * outputs * depth);
  }
  const Work<T> work{p,
                     packed.data(),
                     bias,
                     {s.groups * p.channels * x_volume, s.groups * outputs * y_volume, y_volume},
                     copied};
  auto band_of = [&](int64_t task) {
    Band band(p, task % bands);
    band.images = std::min(images, s.batch - task / bands / s.groups * images);
    return band;
  };
  // The last tile may read past the last element, but uses nothing of it.
  const int64_t image_size = p.channels * p.channel_size(p.band()), more = loops<T>().cols;
  const int64_t laid_size = images * image_size + more;
  auto lay_images = [&](int64_t task, int64_t from, int64_t until, T* laid) {
    const Band band = band_of(task);
    const int64_t group = task / bands % s.groups, size = p.channels * p.channel_size(band.rows);
    const int64_t first = task / bands / s.groups * images;
    for (int64_t i = from; i < std::min(until, band.images); ++i) {
      lay_out(p, band, x + (first + i) * work.strides.x_image + group * p.channels * x_volume,
              laid + i * size);
    }
    if (from < band.images && until >= band.images)
      std::fill_n(laid + band.images * size, more, T(0));
  };
  // What several parts read is laid out once, before them.
  const bool shared = parts > 1;
  Scratch<T> all(shared ? tasks * laid_size : 0);
  if (shared) {
    parallel_for(tasks * images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t task = i / images, image = i % images;
        lay_images(task, image, image + 1, all.data() + task * laid_size);
      }
    });
  }
  parallel_for(tasks * parts, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> own(shared ? 0 : laid_size);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t task = i / parts, first = i % parts * part;
      const int64_t group = task / bands % s.groups, image = task / bands / s.groups * images;
      const int64_t channel = group * outputs + first;
      T* laid = shared ? all.data() + task * laid_size : own.data();
      if (!shared) lay_images(task, 0, images, laid);
      run_band(work, band_of(task), channel, std::min(part, outputs - first), laid,
               y + image * work.strides.y_image + channel * y_volume);
    }
  });
}

}  // namespace

namespace direct {

template <class T> double direct_cost(const Problem& p, int64_t outputs, int64_t batch) {
  const bool copied = p.copied(outputs);
  const int64_t places = batch * p.d.out * p.h.out * (copied ? p.w.out : p.width());
  const auto cols = static_cast<double>(loops<T>().cols);
  return static_cast<double>(places) * static_cast<double>(p.depth()) *
             (kWork * static_cast<double>(outputs) + (copied ? kGather * cols : 0)) +
         static_cast<double>(batch * p.channels * p.d.in * p.h.in * p.w.in) * kMove * cols;
}
template double direct_cost<float>(const Problem&, int64_t, int64_t);
template double direct_cost<double>(const Problem&, int64_t, int64_t);

}  // namespace direct

bool fits_direct(const ConvShape& s) {
  const int64_t taps = volume(s, s.kernel);
  bool product = taps == 1;  // of matrices, as they lie there
  for (int d = 0; d < s.spatial; ++d) product &= s.stride[d] == 1 && s.padding[d] == 0;
  const int64_t width = std::min(s.out[s.spatial - 1], s.in[s.spatial - 1]);
  const int64_t channels = std::min(s.in_channels, s.out_channels) / s.groups;
  return !product && taps <= 1024 && s.out_channels / s.groups >= 4 &&
         (width >= 6 || channels >= 16);
}

template <class T>
void direct_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Problem p = forward_problem(s);
  const int64_t outputs = s.out_channels / s.groups, taps = p.taps();
  run(p, s, outputs, x, w, outputs * p.channels * taps, p.channels * taps, taps, bias,
      volume(s, s.out), y);
}

template <class T> void direct_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
  const int64_t outputs = s.in_channels / s.groups, channels = s.out_channels / s.groups;
  const int64_t taps = volume(s, s.kernel), in_volume = volume(s, s.in);
  bool all_read = true;
  each_remainder(s, [&](const Problem& p) { all_read &= p.taps() != 0; });
  if (!all_read) std::fill_n(gx, s.batch * s.in_channels * in_volume, T(0));
  each_remainder(s, [&](const Problem& p) {
    if (p.taps() == 0) return;
    run<T>(p, s, outputs, gy, w, channels * outputs * taps, taps, outputs * taps, nullptr,
           in_volume, gx);
  });
}

namespace {

// A problem's time, for all groups, with its weights' packing, the storing of results and padding.
template <class T> double whole_cost(const Problem& p, const ConvShape& s, int64_t outputs) {
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const double laid =
      real(p.phases()) * real(p.d.out + p.d.halo()) * real(p.h.out + p.h.halo()) * real(p.width());
  const double padding = std::max(0.0, laid - real(p.d.in * p.h.in * p.w.in)) * real(p.channels);
  const double store = p.w.y_step == 1 ? kStore : kApart;
  const double moved =
      kPack * real(p.depth() * outputs) +
      real(s.batch) * (store * real(p.d.out * p.h.out * p.w.out * outputs) + kMove * padding);
  return real(s.groups) * (direct_cost<T>(p, outputs, s.batch) + moved * real(loops<T>().cols / 2));
}

}  // namespace

template <class T> double direct_forward_cost(const ConvShape& s) {
  return whole_cost<T>(forward_problem(s), s, s.out_channels / s.groups);
}

template <class T> double direct_grad_input_cost(const ConvShape& s) {
  double cost = 0;
  each_remainder(s,
                 [&](const Problem& p) { cost += whole_cost<T>(p, s, s.in_channels / s.groups); });
  return cost;
}

#define TAEDA_DIRECT(T)                                                                \
  template double direct_forward_cost<T>(const ConvShape&);                            \
  template double direct_grad_input_cost<T>(const ConvShape&);                         \
  template void direct_forward<T>(const ConvShape&, const T*, const T*, const T*, T*); \
  template void direct_grad_input<T>(const ConvShape&, const T*, const T*, T*);
TAEDA_DIRECT(float)
TAEDA_DIRECT(double)

}  // namespace taeda::cpu
