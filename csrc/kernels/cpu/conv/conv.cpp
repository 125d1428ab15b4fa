#include "kernels/cpu/conv/conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/conv/conv_batch_simd.h"
#include "kernels/cpu/conv/conv_direct.h"
#include "kernels/cpu/conv/conv_nhwc.h"
#include "kernels/cpu/conv/conv_strided.h"
#include "kernels/cpu/conv/conv_tiling.h"
#include "kernels/cpu/conv/simd/conv.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/gemm/blas.h"
#include "kernels/cpu/simd/pick.h"

// Every product is taken in tiles: some columns of the matrix of windows are laid out in memory
// that fits the cache, and multiplied at once. Tiles follow from the sizes alone, so results do not
// depend on the number of threads.
namespace taeda::cpu {
namespace {

constexpr int64_t kTileElements = 1 << 18;  // of the matrix of windows in one tile
constexpr int64_t kFewColumns = 128;        // images with fewer outputs share a tile
constexpr int64_t kFewPlaces = 64;          // outputs of an image, by which the way is chosen
constexpr int64_t kSomePlaces = 1024;
constexpr int64_t kDeepWindow = 192;  // elements that are more work than a window's copying
// Measured: a multiplication's time in products of matrices, beside one that waits for nothing.
constexpr int64_t kSmallPlaces = 256;  // with so few, the products are slower
constexpr double kSmallProduct = 1.3, kProduct = 1.1;
constexpr double kOneChannel = 1.35;  // sums of one channel take longer than their cost says
constexpr int64_t kFewRows = 4;       // channels of the input, for its gradient
constexpr double kFewRowsGain = .72;
constexpr int64_t kPlaneWork = 1 << 16;  // multiplications worth a chunk, of depthwise planes
constexpr int64_t kMostPlaneWork = 1 << 20, kPlaneTasks = 64;
constexpr int64_t kSummed = 1 << 11;  // registers whose lanes are added up, worth a thread

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T> const simd::ConvLoops<T>& loops() {
  using namespace simd;
  const ConvKernels& kernels = TAEDA_PICK(conv_kernels);
  if constexpr (std::is_same_v<T, float>) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

struct Plan {
  simd::Window window;
  int64_t batch, groups, in_channels, out_channels;
  int64_t group_in, group_out;  // channels of one group
  int64_t taps, depth;          // kernel volume, and rows of the matrix of windows
  int64_t in_volume, out_volume;
  bool pointwise;  // windows are single elements in their order: the matrix is x itself
  bool depthwise;
  int64_t columns;  // of a tile, within one image
  int64_t images;   // in a tile, where one image has few columns

  explicit Plan(const ConvShape& s)
      : batch(s.batch),
        groups(s.groups),
        in_channels(s.in_channels),
        out_channels(s.out_channels) {
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - s.spatial);
      const bool used = from >= 0;
      window.in[d] = used ? s.in[from] : 1;
      window.kernel[d] = used ? s.kernel[from] : 1;
      window.out[d] = used ? s.out[from] : 1;
      window.stride[d] = used ? s.stride[from] : 1;
      window.padding[d] = used ? s.padding[from] : 0;
      window.dilation[d] = used ? s.dilation[from] : 1;
    }
    group_in = in_channels / groups;
    group_out = out_channels / groups;
    taps = window.kernel[0] * window.kernel[1] * window.kernel[2];
    depth = group_in * taps;
    in_volume = window.in[0] * window.in[1] * window.in[2];
    out_volume = window.out[0] * window.out[1] * window.out[2];
    pointwise = taps == 1;
    for (int d = 0; d < 3; ++d)
      pointwise = pointwise && window.stride[d] == 1 && window.padding[d] == 0;
    depthwise = group_in == 1 && group_out <= 2 && groups > 1;
    const int64_t fitting =
        std::max<int64_t>(2 * kFewColumns, kTileElements / std::max<int64_t>(depth, 1));
    columns = std::min(out_volume, ceil_div(fitting, 16) * 16);
    images = 1;
    if (out_volume > 0 && out_volume < kFewColumns) {
      images = std::clamp<int64_t>(2 * kFewColumns / out_volume, 1, batch);
      columns = out_volume;
    }
  }

  int64_t tiles_of_image() const { return ceil_div(out_volume, columns); }
  int64_t tiles() const { return ceil_div(batch, images) * tiles_of_image(); }
};

// Some columns of the matrix of windows: `count` images from `image` on, places [begin, end) of
// each.
struct Tile {
  int64_t image, count, begin, end;

  Tile(const Plan& p, int64_t index) {
    image = index / p.tiles_of_image() * p.images;
    count = std::min(p.images, p.batch - image);
    begin = index % p.tiles_of_image() * p.columns;
    end = std::min(begin + p.columns, p.out_volume);
  }
  int64_t width() const { return end - begin; }
  int64_t columns() const { return count * width(); }
};

// A matrix in memory: rows `ld` apart.
template <class T> struct Matrix {
  T* data;
  int64_t ld;
};

// Whether a tile's part of a (batch, channels, volume) array is a matrix as it lies there.
bool in_place(const Tile& t) { return t.count == 1; }

// The windows over `channels` input channels from `channel` on.
template <class T>
Matrix<const T> windows(const Plan& p, const Tile& t, const T* x, int64_t channel, int64_t channels,
                        T* memory) {
  if (p.pointwise && in_place(t)) {
    return {x + (t.image * p.in_channels + channel) * p.in_volume + t.begin, p.in_volume};
  }
  for (int64_t i = 0; i < t.count; ++i) {
    loops<T>().im2col(p.window, channels,
                      x + ((t.image + i) * p.in_channels + channel) * p.in_volume, t.begin, t.end,
                      memory + i * t.width(), t.columns());
  }
  return {memory, t.columns()};
}

// The outputs' gradients of `channels` channels from `channel` on.
template <class T>
Matrix<const T> outputs(const Plan& p, const Tile& t, const T* gy, int64_t channel,
                        int64_t channels, T* memory) {
  if (in_place(t))
    return {gy + (t.image * p.out_channels + channel) * p.out_volume + t.begin, p.out_volume};
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < t.count; ++i) {
      std::copy_n(gy + ((t.image + i) * p.out_channels + channel + c) * p.out_volume + t.begin,
                  t.width(), memory + c * t.columns() + i * t.width());
    }
  }
  return {memory, t.columns()};
}

template <class T> void add(const T* from, T* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// Of a plane with its padding, where this many outputs lie `step` apart.
int64_t padded_volume(const int64_t (&out)[3], const int64_t (&step)[3], const simd::Window& w) {
  int64_t volume = 1;
  for (int d = 0; d < 3; ++d)
    volume *= std::max<int64_t>(0, (out[d] - 1) * step[d] + (w.kernel[d] - 1) * w.dilation[d] + 1);
  return volume;
}

int64_t plane_grain(const Plan& p) {
  const int64_t each = std::max<int64_t>(1, p.taps * p.out_volume);
  const int64_t tasks = p.batch * p.out_channels / kPlaneTasks;
  return std::max<int64_t>({1, kPlaneWork / each, std::min(tasks, kMostPlaneWork / each)});
}

// The gradient of one kernel's weights for each channel, plane by plane.
template <class T> void planes_grad_weight(const Plan& p, const T* x, const T* gy, T* gw) {
  const int64_t lanes = loops<T>().lanes, size = p.taps * lanes;
  // Runs of images have sums of their own, which are then added in order.
  const int64_t run = ceil_div(p.batch, std::clamp<int64_t>(8 / p.groups, 1, p.batch));
  const int64_t parts = ceil_div(p.batch, run), grain = ceil_div(plane_grain(p), run);
  Scratch<T> sums(p.groups * parts * size);
  parallel_for(p.groups * parts, grain, [&](int64_t begin, int64_t end) {
    const int64_t x_size = padded_volume(p.window.out, p.window.stride, p.window);
    const int64_t rows = p.window.in[1] + p.window.padding[1] * 2 + p.window.kernel[1];
    Scratch<T> memory(simd::kPlaneMore + 4 * x_size + 4 * lanes * rows);
    for (int64_t i = begin; i < end; ++i) {
      T* to = sums.data() + i * size;
      std::fill_n(to, size, T(0));
      for (int64_t n = i % parts * run; n < std::min((i % parts + 1) * run, p.batch); ++n) {
        const int64_t plane = n * p.groups + i / parts;
        loops<T>().plane_grad_weight(p.window, x + plane * p.in_volume, gy + plane * p.out_volume,
                                     memory.data(), i == begin && n == i % parts * run, to);
      }
    }
  });
  const int64_t height = p.window.kernel[1], width = p.window.kernel[2];
  const int64_t each = parts * p.taps;  // registers of a group
  parallel_for(p.groups, std::max<int64_t>(1, kSummed / each), [&](int64_t begin, int64_t end) {
    Scratch<T> added((end - begin) * each);
    add_lanes(sums.data() + begin * each * lanes, (end - begin) * each, lanes, added.data());
    for (int64_t group = begin; group < end; ++group) {
      T* from = added.data() + (group - begin) * each;
      if (parts > 1) add_parts(from, parts, p.taps, from);
      for (int64_t tap = 0; tap < p.taps; ++tap)
        gw[group * p.taps + tap] = from[tap % width * height + tap / width];
    }
  });
}

// Whether the matrix of windows is the faster way: in steps over images so small that what lies
// between the outputs, or weights read anew for each image, would cost the direct way more.
bool prefers_windows(const Plan& p, int64_t most_places) {
  const auto& step = p.window.stride;
  const int64_t channels = step[0] > 1 ? 8 : 32;  // eight phases are worse than four
  return (step[0] > 1 || step[1] > 1 || step[2] > 1) && p.out_volume <= most_places &&
         std::min(p.group_in, p.group_out) >= channels;
}

// Whether windows do not overlap: then their matrix holds every input once.
bool windows_apart(const Plan& p) {
  bool apart = p.taps > 1;
  for (int d = 0; d < 3; ++d)
    apart &= p.window.stride[d] > (p.window.kernel[d] - 1) * p.window.dilation[d];
  return apart;
}

// How many chunks of input channels of a group are worked on apart from each other: enough work
// each, and not too many.
int64_t channels_per_part(const Plan& p, int64_t columns) {
  const int64_t enough =
      ceil_div(int64_t{1} << 20, std::max<int64_t>(1, p.taps * p.group_out * columns));
  const int64_t parts =
      std::clamp<int64_t>(p.group_in / std::max(enough, ceil_div(64, p.taps)), 1, 16);
  return ceil_div(p.group_in, parts);
}

// About how long the matrix of windows takes, in multiplications of a kernel that waits for
// nothing. copy: of an element of that matrix, beside a product of registers.
template <class T> double windows_cost(const Plan& p, double copy) {
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const double places = real(p.batch) * real(p.out_volume);
  const double work = places * real(p.depth) * real(p.out_channels);
  const double copied = p.pointwise && p.images == 1
                            ? 0
                            : copy * places * real(p.depth) * real(p.groups) * 64 / sizeof(T);
  return (p.out_volume <= kSmallPlaces ? kSmallProduct : kProduct) * work + copied;
}

// Whether there is one window, the whole input: then the convolution is a product of matrices as
// they lie there.
bool is_one_window(const Plan& p) {
  bool whole = p.out_volume == 1 && !p.depthwise && p.group_in > 0;
  for (int d = 0; d < 3; ++d) {
    const simd::Window& w = p.window;
    whole &= w.kernel[d] == w.in[d] && w.padding[d] == 0 && (w.dilation[d] == 1 || w.in[d] == 1);
  }
  return whole;
}
template <class T> void window_forward(const Plan& p, const T* x, const T* w, const T* bias, T* y) {
  for (int64_t i = 0; bias && i < p.batch; ++i)
    std::copy_n(bias, p.out_channels, y + i * p.out_channels);
  for (int64_t g = 0; g < p.groups; ++g) {
    gemm<T>(p.batch, p.group_out, p.depth, T(1), {x + g * p.depth, p.groups * p.depth},
            {w + g * p.group_out * p.depth, p.depth, Trans::Yes}, T(bias ? 1 : 0),
            y + g * p.group_out, p.out_channels);
  }
}
template <class T> void window_grad_input(const Plan& p, const T* gy, const T* w, T* gx) {
  for (int64_t g = 0; g < p.groups; ++g) {
    gemm<T>(p.batch, p.depth, p.group_out, T(1), {gy + g * p.group_out, p.out_channels},
            {w + g * p.group_out * p.depth, p.depth}, T(0), gx + g * p.depth, p.groups * p.depth);
  }
}
template <class T> void window_grad_weight(const Plan& p, const T* x, const T* gy, T* gw) {
  for (int64_t g = 0; g < p.groups; ++g) {
    gemm<T>(p.group_out, p.depth, p.batch, T(1), {gy + g * p.group_out, p.out_channels, Trans::Yes},
            {x + g * p.depth, p.groups * p.depth}, T(0), gw + g * p.group_out * p.depth, p.depth);
  }
}

// The weights' gradient where there are few places: what some images have is laid out as two
// matrices, whose product is added up, for a single group. Cut by the depth that products take at a
// time.
constexpr int64_t kDepthTogether = 512;
constexpr int64_t kManyWeights = 1 << 15;
constexpr int64_t kMostLaid = 1 << 22;  // elements of an image's windows
template <class T> double few_places_cost(const Plan& p) {
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  if (p.groups > 1 || p.depth * p.out_volume > kMostLaid) return HUGE_VAL;
  if (p.depth * p.out_channels < kManyWeights) return HUGE_VAL;
  const double places = real(p.batch * p.out_volume), weights = real(p.depth * p.out_channels);
  const double sums = std::floor((places - 1) / kDepthTogether) * weights;
  return kProduct * places * weights + (1.5 * places * real(p.depth) + sums) * 64 / sizeof(T);
}
template <class T> void few_places_grad_weight(const Plan& p, const T* x, const T* gy, T* gw) {
  const int64_t volume = p.out_volume;
  const int64_t images = ceil_div(p.batch, ceil_div(p.batch * volume, kDepthTogether));
  Scratch<T> seen(p.depth * images * volume), grads(p.out_channels * images * volume);
  for (int64_t first = 0; first < p.batch; first += images) {
    const int64_t count = std::min(images, p.batch - first), places = count * volume;
    auto in_parallel = [&](int64_t channels, int64_t each, auto&& f) {
      const int64_t grain = std::max<int64_t>(1, kPlaneWork / (each * places));
      parallel_for(channels, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; i < count; ++i) f(first + i, i * volume, begin, end);
      });
    };
    auto lay_planes = [&](const T* from, int64_t channels, T* to) {
      in_parallel(channels, 1, [&](int64_t image, int64_t at, int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c)
          std::copy_n(from + (image * channels + c) * volume, volume, to + c * places + at);
      });
    };
    lay_planes(gy, p.out_channels, grads.data());
    if (p.pointwise) {
      lay_planes(x, p.in_channels, seen.data());
    } else {
      auto lay_windows = [&](int64_t image, int64_t at, int64_t begin, int64_t end) {
        loops<T>().im2col(p.window, end - begin, x + (image * p.in_channels + begin) * p.in_volume,
                          0, volume, seen.data() + begin * p.taps * places + at, places);
      };
      in_parallel(p.in_channels, p.taps, lay_windows);
    }
    gemm<T>(p.out_channels, p.depth, places, T(1), {grads.data(), places},
            {seen.data(), places, Trans::Yes}, T(first == 0 ? 0 : 1), gw, p.depth);
  }
}

}  // namespace

template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Plan p(s);
  if (p.batch * p.out_channels * p.out_volume == 0) return;
  if (is_one_window(p)) return window_forward(p, x, w, bias, y);
  if constexpr (std::is_same_v<T, float>) {
    if (phases_forward(s, x, w, bias, y)) return;
  }
  if (across_forward(s, x, w, bias, y)) return;
  double last = p.depthwise ? HUGE_VAL : last_forward_cost<T>(s);
  if (p.group_in == 1) last *= kOneChannel;
  if constexpr (std::is_same_v<T, float>) {
    if (fits_winograd<T>(s) && winograd_cost(s) < last && winograd_forward(s, x, w, bias, y))
      return;
  }
  const bool by_windows = !fits_direct(s) || prefers_windows(p, kFewPlaces) ||
                          (windows_apart(p) && p.depth >= kDeepWindow);
  if (last < (by_windows ? windows_cost<T>(p, 1) : direct_forward_cost<T>(s)))
    return last_forward(s, x, w, bias, y);
  if (!p.depthwise && !by_windows) return direct_forward(s, x, w, bias, y);
  if (p.depthwise) {
    if (channels_forward(s, x, w, bias, y)) return;
    parallel_for(p.batch * p.out_channels, plane_grain(p), [&](int64_t begin, int64_t end) {
      Scratch<T> memory(simd::kPlaneMore +
                        4 * padded_volume(p.window.out, p.window.stride, p.window));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / p.out_channels, channel = i % p.out_channels;
        const T* plane = x + (image * p.in_channels + channel / p.group_out) * p.in_volume;
        loops<T>().plane(p.window, plane, w + channel * p.taps, bias ? bias[channel] : T(0),
                         memory.data(), i == begin, y + i * p.out_volume);
      }
    });
    return;
  }
  const int64_t tiles = p.tiles();
  parallel_for(tiles * p.groups, 1, [&](int64_t begin, int64_t end) {
    const int64_t columns = p.columns * p.images;
    Scratch<T> col(p.pointwise && p.images == 1 ? 0 : p.depth * columns);
    Scratch<T> result(p.images == 1 ? 0 : p.group_out * columns);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / tiles;
      const Tile t(p, i % tiles);
      const Matrix<const T> seen = windows(p, t, x, group * p.group_in, p.group_in, col.data());
      const int64_t channel = group * p.group_out;
      T* to = y + (t.image * p.out_channels + channel) * p.out_volume + t.begin;
      const MatrixRef<T> weight{w + channel * p.depth, p.depth};
      T* sums = in_place(t) ? to : result.data();
      const int64_t ld = in_place(t) ? p.out_volume : t.columns();
      if (bias) {
        gemm_onto_rows<T>(p.group_out, t.columns(), p.depth, weight, {seen.data, seen.ld},
                          bias + channel, sums, ld);
      } else {
        gemm<T>(p.group_out, t.columns(), p.depth, T(1), weight, {seen.data, seen.ld}, T(0), sums,
                ld);
      }
      if (in_place(t)) continue;
      for (int64_t c = 0; c < p.group_out; ++c) {
        for (int64_t image = 0; image < t.count; ++image) {
          std::copy_n(result.data() + c * t.columns() + image * t.width(), t.width(),
                      to + (image * p.out_channels + c) * p.out_volume);
        }
      }
    }
  });
}

template <class T> void conv_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx) {
  const Plan p(s);
  if (p.batch * p.in_channels * p.in_volume == 0) return;
  if (is_one_window(p)) return window_grad_input(p, gy, w, gx);
  if constexpr (std::is_same_v<T, float>) {
    if (p.out_volume != 0 && phases_grad_input(s, gy, w, gx)) return;
  }
  if (p.out_volume != 0 && across_grad_input(s, gy, w, gx)) return;
  const bool empty = p.out_volume == 0 || p.group_out == 0 || p.taps == 0;
  const double last = p.depthwise || empty ? HUGE_VAL : last_grad_input_cost<T>(s);
  if constexpr (std::is_same_v<T, float>) {
    if (s.stride[0] == 1 && fits_winograd<T>(s) && winograd_cost(s) < last &&
        winograd_grad_input(s, gy, w, gx))
      return;
  }
  // Products of so few rows wait for what they read, more than their cost says.
  const bool few_rows =
      !empty && p.group_in < kFewRows &&
      windows_cost<T>(p, 3) < kFewRowsGain * std::min(last, direct_grad_input_cost<T>(s));
  const bool by_windows =
      empty || few_rows || !fits_direct(s) || prefers_windows(p, kSomePlaces) || windows_apart(p);
  if (last < (by_windows ? windows_cost<T>(p, 3) : direct_grad_input_cost<T>(s)))
    return last_grad_input(s, gy, w, gx);
  if (!p.depthwise && !by_windows) return direct_grad_input(s, gy, w, gx);
  if (p.depthwise) {
    if (channels_grad_input(s, gy, w, gx)) return;
    parallel_for(p.batch * p.in_channels, plane_grain(p), [&](int64_t begin, int64_t end) {
      constexpr int64_t ones[3] = {1, 1, 1};
      Scratch<T> memory(simd::kPlaneMore + 4 * padded_volume(p.window.in, ones, p.window));
      Scratch<T> other(p.group_out > 1 ? p.in_volume : 0);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / p.in_channels, channel = i % p.in_channels * p.group_out;
        T* to = gx + i * p.in_volume;
        for (int64_t c = channel; c < channel + p.group_out; ++c) {
          loops<T>().plane_grad_input(p.window, gy + (image * p.out_channels + c) * p.out_volume,
                                      w + c * p.taps, memory.data(), i == begin && c == channel,
                                      c == channel ? to : other.data());
          if (c != channel) add(other.data(), to, p.in_volume);
        }
      }
    });
    return;
  }
  if (empty) {
    std::fill_n(gx, p.batch * p.in_channels * p.in_volume, T(0));
    return;
  }
  // Windows overlap, so all tiles of an image are added by one thread; images and channels are
  // dealt out.
  const int64_t part = channels_per_part(p, p.out_volume * p.images),
                parts = ceil_div(p.group_in, part);
  const int64_t stacks = ceil_div(p.batch, p.images);
  parallel_for(stacks * p.groups * parts, 1, [&](int64_t begin, int64_t end) {
    const int64_t columns = p.columns * p.images;
    Scratch<T> col(p.pointwise && p.images == 1 ? 0 : part * p.taps * columns);
    Scratch<T> gathered(p.images == 1 ? 0 : p.group_out * columns);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t stack = i / (p.groups * parts), group = i / parts % p.groups;
      const int64_t first = i % parts * part, channels = std::min(part, p.group_in - first);
      const int64_t channel = group * p.group_in + first;
      const MatrixRef<T> weight{w + group * p.group_out * p.depth + first * p.taps, p.depth,
                                Trans::Yes};
      for (int64_t k = 0; k < p.tiles_of_image(); ++k) {
        const Tile t(p, stack * p.tiles_of_image() + k);
        const Matrix<const T> g =
            outputs(p, t, gy, group * p.group_out, p.group_out, gathered.data());
        T* to = gx + (t.image * p.in_channels + channel) * p.in_volume;
        if (p.pointwise && in_place(t)) {
          gemm<T>(channels, t.columns(), p.group_out, T(1), weight, {g.data, g.ld}, T(0),
                  to + t.begin, p.in_volume);
          continue;
        }
        gemm<T>(channels * p.taps, t.columns(), p.group_out, T(1), weight, {g.data, g.ld}, T(0),
                col.data(), t.columns());
        for (int64_t image = 0; image < t.count; ++image) {
          T* plane = to + image * p.in_channels * p.in_volume;
          if (k == 0) std::fill_n(plane, channels * p.in_volume, T(0));
          loops<T>().col2im(p.window, channels, col.data() + image * t.width(), t.columns(),
                            t.begin, t.end, plane);
        }
      }
    }
  });
}

template <class T> void conv_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const Plan p(s);
  const int64_t total = p.out_channels * p.depth;
  if (total == 0 || p.batch * p.out_volume == 0) {
    std::fill_n(gw, total, T(0));
    return;
  }
  if (is_one_window(p)) return window_grad_weight(p, x, gy, gw);
  if (p.pointwise && p.images > 1 && p.groups == 1) return few_places_grad_weight(p, x, gy, gw);
  if constexpr (std::is_same_v<T, float>) {
    if (phases_grad_weight(s, x, gy, gw)) return;
  }
  const double few = few_places_cost<T>(p);
  if (across_grad_weight(s, x, gy, gw, few)) return;
  const double last = p.depthwise ? HUGE_VAL : last_grad_weight_cost<T>(s);
  const double winograd = fits_winograd<T>(s) ? winograd_cost(s) : HUGE_VAL;
  if (few < std::min({last, winograd, direct_grad_weight_cost<T>(s)}))
    return few_places_grad_weight(p, x, gy, gw);
  if constexpr (std::is_same_v<T, float>) {
    if (fits_winograd<T>(s) && winograd_cost(s) < last && winograd_grad_weight(s, x, gy, gw))
      return;
  }
  if (p.depthwise) {
    const bool strips = p.group_out == 1 && loops<T>().fits_plane_weight(p.window);
    if (channels_grad_weight(s, x, gy, gw, strips)) return;
    if (strips) planes_grad_weight(p, x, gy, gw);
    else direct::places_grad_weight(s, x, gy, gw);
    return;
  }
  const bool by_windows =
      p.taps == 1 || prefers_windows(p, kFewPlaces) || windows_apart(p) || !fits_direct(s);
  if (last < (by_windows ? windows_cost<T>(p, 2) : direct_grad_weight_cost<T>(s)))
    return last_grad_weight(s, x, gy, gw);
  if (!by_windows) {
    parallel_for(total, kPlaneWork,
                 [&](int64_t begin, int64_t end) { std::fill_n(gw + begin, end - begin, T(0)); });
    return direct_grad_weight(s, x, gy, gw);
  }
  // Few weights: tiles are dealt out, to sums of their own that are added in order. Many: channels
  // are.
  const int64_t tiles = p.tiles();
  const int64_t columns = p.columns * p.images;
  const bool by_tiles = total <= int64_t{1} << 18;
  const double work =
      static_cast<double>(total) * static_cast<double>(p.out_volume) * static_cast<double>(p.batch);
  const int64_t most_sums = std::min<int64_t>(tiles, static_cast<int64_t>(work / (1 << 21)));
  const int64_t run = ceil_div(tiles, by_tiles ? std::clamp<int64_t>(most_sums, 1, 16) : 1);
  const int64_t sums = ceil_div(tiles, run);
  const int64_t part = by_tiles ? p.group_in : channels_per_part(p, p.batch * p.out_volume);
  const int64_t parts = ceil_div(p.group_in, part);
  Scratch<T> apart(sums > 1 ? sums * total : 0);
  parallel_for(sums * p.groups * parts, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> col(p.pointwise && p.images == 1 ? 0 : part * p.taps * columns);
    Scratch<T> gathered(p.images == 1 ? 0 : p.group_out * columns);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t sum = i / (p.groups * parts), group = i / parts % p.groups;
      const int64_t first = i % parts * part, channels = std::min(part, p.group_in - first);
      T* to = (sums > 1 ? apart.data() + sum * total : gw) + group * p.group_out * p.depth +
              first * p.taps;
      for (int64_t k = sum * run; k < std::min((sum + 1) * run, tiles); ++k) {
        const Tile t(p, k);
        const Matrix<const T> seen =
            windows(p, t, x, group * p.group_in + first, channels, col.data());
        const Matrix<const T> g =
            outputs(p, t, gy, group * p.group_out, p.group_out, gathered.data());
        gemm<T>(p.group_out, channels * p.taps, t.columns(), T(1), {g.data, g.ld},
                {seen.data, seen.ld, Trans::Yes}, T(k == sum * run ? 0 : 1), to, p.depth);
      }
    }
  });
  if (sums > 1) add_parts(apart.data(), sums, total, gw);
}

template void conv_forward<float>(const ConvShape&, const float*, const float*, const float*,
                                  float*);
template void conv_forward<double>(const ConvShape&, const double*, const double*, const double*,
                                   double*);
template void conv_grad_input<float>(const ConvShape&, const float*, const float*, float*);
template void conv_grad_input<double>(const ConvShape&, const double*, const double*, double*);
template void conv_grad_weight<float>(const ConvShape&, const float*, const float*, float*);
template void conv_grad_weight<double>(const ConvShape&, const double*, const double*, double*);

}  // namespace taeda::cpu
