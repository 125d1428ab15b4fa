#include "kernels/cpu/conv_direct.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd/gemm.h"
#include "kernels/cpu/simd/pick.h"

// The padded input is laid out so that outputs next to each other read elements next to each other,
// for every tap:
//
//   * Where outputs step over `step` inputs, inputs are sorted by their position modulo `step`,
//   into
//     a plane for each remainder (a phase). Within a phase the step is 1.
//   * Output rows are taken as wide as the padded rows. Then output number q of a band of rows
//   reads
//     element q + offset(tap), whatever row it is in. The outputs in the padding are not stored.
//
// The gradient of the input is such a sum too, of the outputs' gradients, for each remainder of the
// input's position modulo the stride.
namespace taeda::cpu {
namespace {

constexpr int64_t kBandElements = 1 << 17;  // of the laid-out input of a band: half of a usual L2
constexpr int64_t kTilesTogether = 8;       // tiles that read the same weights one after the other
constexpr int64_t kPlacesTogether = 256;    // outputs whose gradients are summed at a stretch
constexpr int64_t kDepthTogether = 256;     // taps of channels that are summed at a stretch
constexpr int64_t kCopied = 8;              // elements copied at a time

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

template <class T> const simd::GemmLoops<T>& loops() {
  using namespace simd;
  const GemmKernels& kernels = TAEDA_PICK(gemm_kernels);
  if constexpr (std::is_same_v<T, float>) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

// One dimension: output o reads the inputs o * step + position for each tap's position.
struct Axis {
  struct Tap {
    int64_t number;  // in the kernel
    int64_t position;
    int64_t phase = 0, shift = 0;  // position = shift * step + phase; phases are counted as used
  };
  int64_t in, out, step;
  int64_t y_start = 0, y_step = 1;  // output o lies at y_start + o * y_step of its plane
  std::vector<Tap> taps;
  std::vector<int64_t> phases;  // the remainders that occur
  int64_t lo = 0, hi = 0;       // the least and largest shift

  Axis(int64_t in_, int64_t out_, int64_t step_) : in(in_), out(out_), step(step_) {}
  void add(int64_t number, int64_t position) {
    Tap t{number, position};
    t.shift = floor_div(position, step);
    const int64_t remainder = position - t.shift * step;
    const auto known = std::find(phases.begin(), phases.end(), remainder);
    t.phase = known - phases.begin();
    if (known == phases.end()) phases.push_back(remainder);
    lo = taps.empty() ? t.shift : std::min(lo, t.shift);
    hi = taps.empty() ? t.shift : std::max(hi, t.shift);
    taps.push_back(t);
  }
  int64_t halo() const { return hi - lo; }
};

struct Problem {
  Axis d, h, w;
  int64_t channels;  // that are summed over
  int64_t y_height, y_width;

  int64_t width() const { return w.out + w.halo(); }  // of a laid-out row, and of an output row
  int64_t phases() const {
    return static_cast<int64_t>(d.phases.size() * h.phases.size() * w.phases.size());
  }
  int64_t taps() const {
    return static_cast<int64_t>(d.taps.size() * h.taps.size() * w.taps.size());
  }
  int64_t depth() const { return channels * taps(); }
  int64_t channel_size(int64_t rows) const {
    return phases() * (d.halo() + 1) * (rows + h.halo()) * width();
  }
  // Rows of outputs in a band.
  int64_t band() const {
    const int64_t row = channels * phases() * (d.halo() + 1) * width();
    const int64_t rows = kBandElements / std::max<int64_t>(row, 1) - h.halo();
    return std::clamp<int64_t>(rows, std::min<int64_t>(h.out, 4), h.out);
  }
  int64_t bands() const { return d.out * ceil_div(h.out, band()); }
};

Problem forward_problem(const ConvShape& s) {
  auto axis = [&](int d) {
    const int from = d - (3 - s.spatial);
    if (from < 0) {
      Axis a(1, 1, 1);
      a.add(0, 0);
      return a;
    }
    Axis a(s.in[from], s.out[from], s.stride[from]);
    for (int64_t k = 0; k < s.kernel[from]; ++k) a.add(k, k * s.dilation[from] - s.padding[from]);
    return a;
  };
  Problem p{axis(0), axis(1), axis(2), s.in_channels / s.groups, 0, 0};
  p.y_height = p.h.out;
  p.y_width = p.w.out;
  return p;
}

// The inputs r, r + stride, ... of a dimension as sums over the outputs' gradients.
Axis backward_axis(const ConvShape& s, int d, int64_t r) {
  const int from = d - (3 - s.spatial);
  if (from < 0) {
    Axis a(1, 1, 1);
    a.add(0, 0);
    return a;
  }
  const int64_t stride = s.stride[from];
  Axis a(s.out[from], r < s.in[from] ? ceil_div(s.in[from] - r, stride) : 0, 1);
  a.y_start = r;
  a.y_step = stride;
  for (int64_t k = 0; k < s.kernel[from]; ++k) {
    const int64_t distance = r + s.padding[from] - k * s.dilation[from];
    if (distance % stride == 0) a.add(k, distance / stride);
  }
  return a;
}

// Some rows of outputs, of one image or (whole planes) of several.
struct Band {
  int64_t depth, first, rows, images = 1;

  Band(const Problem& p, int64_t index) {
    const int64_t many = ceil_div(p.h.out, p.band());
    depth = index / many;
    first = index % many * p.band();
    rows = std::min(p.band(), p.h.out - first);
  }
};

// One row of a phase: the elements of `row` (null: zeros) at start, start + step, ...
template <class T>
void lay_row(const T* row, int64_t in, int64_t start, int64_t step, int64_t width, T* to) {
  const int64_t first = row ? std::clamp<int64_t>(ceil_div(-start, step), 0, width) : width;
  const int64_t last = row ? std::clamp<int64_t>(ceil_div(in - start, step), first, width) : width;
  std::fill(to, to + first, T(0));
  if (step == 1) {
    std::copy(row + start + first, row + start + last, to + first);
  } else {
    for (int64_t i = first; i < last; ++i) to[i] = row[start + i * step];
  }
  std::fill(to + last, to + width, T(0));
}

// All channels of x, as the band's outputs read them: [channel][phases][depth][row][width].
template <class T> void lay_out(const Problem& p, const Band& band, const T* x, T* to) {
  const int64_t width = p.width(), rows = band.rows + p.h.halo();
  for (int64_t c = 0; c < p.channels; ++c, x += p.d.in * p.h.in * p.w.in) {
    for (int64_t pd : p.d.phases) {
      for (int64_t ph : p.h.phases) {
        for (int64_t pw : p.w.phases) {
          for (int64_t td = 0; td <= p.d.halo(); ++td) {
            const int64_t id = (band.depth + p.d.lo + td) * p.d.step + pd;
            for (int64_t th = 0; th < rows; ++th, to += width) {
              const int64_t ih = (band.first + p.h.lo + th) * p.h.step + ph;
              const bool inside = id >= 0 && id < p.d.in && ih >= 0 && ih < p.h.in;
              lay_row(inside ? x + (id * p.h.in + ih) * p.w.in : nullptr, p.w.in,
                      p.w.lo * p.w.step + pw, p.w.step, width, to);
            }
          }
        }
      }
    }
  }
}

// Where each (channel, tap) begins in what lay_out makes.
std::vector<int64_t> offsets(const Problem& p, int64_t rows) {
  std::vector<int64_t> list;
  list.reserve(static_cast<size_t>(p.depth()));
  const int64_t height = rows + p.h.halo(), plane = height * p.width();
  const auto heights = static_cast<int64_t>(p.h.phases.size());
  const auto widths = static_cast<int64_t>(p.w.phases.size());
  for (int64_t c = 0; c < p.channels; ++c) {
    for (const Axis::Tap& d : p.d.taps) {
      for (const Axis::Tap& h : p.h.taps) {
        for (const Axis::Tap& w : p.w.taps) {
          const int64_t phase = (d.phase * heights + h.phase) * widths + w.phase;
          list.push_back(c * p.channel_size(rows) + phase * (p.d.halo() + 1) * plane +
                         (d.shift - p.d.lo) * plane + (h.shift - p.h.lo) * p.width() + w.shift -
                         p.w.lo);
        }
      }
    }
  }
  return list;
}

// Weights as product() reads them: panels of some outputs, [panel][channel, tap][output]. Those of
// output m, channel c and tap t are at w[m * m_step + c * c_step + t].
template <class T>
void pack_weights(const Problem& p, const ConvShape& s, int64_t outputs, const T* w, int64_t m_step,
                  int64_t c_step, T* to) {
  int64_t kernel[3];
  for (int d = 0; d < 3; ++d) kernel[d] = d < 3 - s.spatial ? 1 : s.kernel[d - (3 - s.spatial)];
  const int64_t rows = loops<T>().rows;
  for (int64_t first = 0; first < outputs; first += rows) {
    const int64_t m = std::min(rows, outputs - first);
    for (int64_t c = 0; c < p.channels; ++c) {
      for (const Axis::Tap& d : p.d.taps) {
        for (const Axis::Tap& h : p.h.taps) {
          for (const Axis::Tap& k : p.w.taps) {
            const int64_t tap = (d.number * kernel[1] + h.number) * kernel[2] + k.number;
            for (int64_t i = 0; i < m; ++i) *to++ = w[(first + i) * m_step + c * c_step + tap];
          }
        }
      }
    }
  }
}

// Outputs that lie next to each other in a run of tiles, in y, and in what is laid out.
struct Stretch {
  int64_t from, to, laid, count;
};
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

// Where rows are so short that padding would be much of the work, the outputs' windows are copied
// out of what is laid out, one row for each (channel, tap). Whole registers are copied: what a
// stretch writes too much, the next one overwrites.
template <class T>
void gather(const std::vector<Stretch>& kept, std::span<const int64_t> offset, const T* laid,
            int64_t ld, T* to) {
  for (int64_t start : offset) {
    for (const Stretch& k : kept) {
      const T* source = laid + start + k.laid;
      for (int64_t i = 0; i < k.count; i += kCopied)
        std::memcpy(to + k.from + i, source + i, kCopied * sizeof(T));
    }
    to += ld;
  }
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
  bool copied;  // windows are copied
};

template <class T>
void store(const Problem& p, const std::vector<Stretch>& kept, const T* from, T* y) {
  for (const Stretch& k : kept) {
    if (p.w.y_step == 1) {
      std::copy_n(from + k.from, k.count, y + k.to);
    } else {
      for (int64_t j = 0; j < k.count; ++j) y[k.to + j * p.w.y_step] = from[k.from + j];
    }
  }
}

// The outputs [first, first + outputs) of one band, in y, from x.
template <class T>
void run_band(const Work<T>& work, const Band& band, int64_t first, int64_t outputs, const T* x,
              T* y) {
  const auto& kernel = loops<T>();
  const Problem& p = work.problem;
  const int64_t depth = p.depth(), width = work.copied ? p.w.out : p.width();
  const int64_t n = (band.images * band.rows - 1) * width + p.w.out;
  const int64_t together = kTilesTogether * kernel.cols;
  const std::vector<int64_t> offset = offsets(p, band.rows);
  std::vector<int64_t> own(kDepthTogether);
  for (int64_t k = 0; k < kDepthTogether; ++k) own[static_cast<size_t>(k)] = k * together;
  // The last tile may read past the last element, but uses nothing of it.
  const int64_t image = p.channels * p.channel_size(band.rows), used = band.images * image;
  const int64_t more = std::max(kernel.cols, kCopied);
  const int64_t window_size = work.copied ? kDepthTogether * together + kCopied : 0;
  Scratch<T> laid(used + more), windows(window_size), sums(outputs * together);
  std::fill_n(laid.data() + used, more, T(0));
  std::fill_n(windows.data(), window_size, T(0));
  for (int64_t i = 0; i < band.images; ++i)
    lay_out(p, band, x + i * work.strides.x_image, laid.data() + i * image);
  for (int64_t q = 0; q < n; q += together) {
    const int64_t last = std::min(q + together, n);
    const std::vector<Stretch> kept = stretches(p, band, width, q, last, work.strides.y_image);
    for (int64_t m = 0; m < outputs; ++m)
      std::fill_n(sums.data() + m * together, together, work.bias ? work.bias[first + m] : T(0));
    for (int64_t k = 0; k < depth; k += kDepthTogether) {
      const int64_t count = std::min(kDepthTogether, depth - k);
      const std::span<const int64_t> part(offset.data() + k, static_cast<size_t>(count));
      if (work.copied) gather(kept, part, laid.data(), together, windows.data());
      const T* from = work.copied ? windows.data() : laid.data() + q;
      for (int64_t m = 0; m < outputs; m += kernel.rows) {
        const int64_t rows = std::min(kernel.rows, outputs - m);
        const T* weights = work.packed + (first + m) * depth + k * rows;
        for (int64_t c = 0; c < last - q; c += kernel.cols) {
          kernel.product(count, rows, weights, from + c, work.copied ? own.data() : part.data(),
                         sums.data() + m * together + c, together);
        }
      }
    }
    for (int64_t m = 0; m < outputs; ++m)
      store(p, kept, sums.data() + m * together, y + m * work.strides.y_channel);
  }
}

// How many runs of outputs are computed apart, where images and bands are too few for the threads.
int64_t output_parts(int64_t tasks, int64_t outputs) {
  return tasks >= 8 ? 1 : std::clamp<int64_t>(outputs / 32, 1, 4);
}

int64_t volume(const ConvShape& s, const int64_t (&sizes)[3]) {
  int64_t v = 1;
  for (int d = 0; d < s.spatial; ++d) v *= sizes[d];
  return v;
}

// Runs a problem for all images and groups. Weights of a group start at w + group * w_group.
template <class T>
void run(const Problem& p, const ConvShape& s, int64_t outputs, const T* x, const T* w,
         int64_t w_group, int64_t m_step, int64_t c_step, const T* bias, int64_t y_volume, T* y) {
  const int64_t depth = p.depth(), x_volume = p.d.in * p.h.in * p.w.in;
  const int64_t bands = p.bands(), rows = loops<T>().rows;
  // Rows so short that padding would cost more than copying; small images then go together, so
  // that their outputs fill whole tiles.
  const bool copied = outputs >= 16 && p.w.halo() * 12 > p.w.out;
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
  parallel_for(tasks * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / parts / bands % s.groups,
                    image = i / parts / bands / s.groups * images;
      const int64_t first = i % parts * part, channel = group * outputs + first;
      Band band(p, i / parts % bands);
      band.images = std::min(images, s.batch - image);
      run_band(work, band, channel, std::min(part, outputs - first),
               x + image * work.strides.x_image + group * p.channels * x_volume,
               y + image * work.strides.y_image + channel * y_volume);
    }
  });
}

// ---- the gradient of the weights ----
// It is a sum over all places of the outputs' gradients there times what was read there. With the
// channels of the laid-out input side by side, what a row of taps reads at one place is one stretch
// of memory, and the sum over places a product like any other.

// A stretch of columns of that product: the taps (d, h) of the kernel with those along w that fall
// into one phase.
struct TapRow {
  const Axis::Tap *d, *h;
  int64_t phase, lo, columns;  // along w; the least shift; shifts times channels
  int64_t at = 0;              // where its sums begin
};
struct TapRows {
  std::vector<TapRow> list;
  int64_t ld = 0;         // from one output's sums to the next's
  int64_t size = 0;       // of all sums
  bool gathered = false;  // with few channels, the stretches are copied behind one another first
};
TapRows tap_rows(const Problem& p, int64_t outputs, int64_t cols) {
  TapRows rows;
  int64_t total = 0;
  for (const Axis::Tap& d : p.d.taps) {
    for (const Axis::Tap& h : p.h.taps) {
      for (int64_t phase = 0; phase < static_cast<int64_t>(p.w.phases.size()); ++phase) {
        int64_t lo = INT64_MAX, hi = INT64_MIN;
        for (const Axis::Tap& w : p.w.taps) {
          if (w.phase != phase) continue;
          lo = std::min(lo, w.shift);
          hi = std::max(hi, w.shift);
        }
        rows.list.push_back({&d, &h, phase, lo, (hi - lo + 1) * p.channels});
        rows.ld = std::max(rows.ld, rows.list.back().columns);
        total += rows.list.back().columns;
      }
    }
  }
  rows.gathered = rows.ld < 2 * cols;
  if (rows.gathered) rows.ld = total;
  rows.ld = ceil_div(rows.ld, cols) * cols;
  int64_t at = 0;
  for (TapRow& row : rows.list) {
    row.at = at;
    at += rows.gathered ? row.columns : outputs * rows.ld;
  }
  rows.size = rows.gathered ? outputs * rows.ld : at;
  return rows;
}

// Transposes what lay_out has made: all channels of a place side by side.
template <class T> void channels_last(const T* from, int64_t channels, int64_t places, T* to) {
  constexpr int64_t block = 16;
  for (int64_t q = 0; q < places; q += block) {
    const int64_t n = std::min(block, places - q);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < n; ++i) to[(q + i) * channels + c] = from[c * places + q + i];
    }
  }
}

// The outputs' gradients of a band as product() reads them: [panel][place][output].
template <class T>
void pack_gradients(const Problem& p, const Band& band, int64_t outputs, const T* g, int64_t volume,
                    T* to) {
  const int64_t rows = loops<T>().rows, places = band.rows * p.w.out;
  for (int64_t first = 0; first < outputs; first += rows) {
    const int64_t m = std::min(rows, outputs - first);
    for (int64_t i = 0; i < m; ++i) {
      const T* from = g + (first + i) * volume;
      for (int64_t q = 0; q < places; ++q) to[first * places + q * m + i] = from[q];
    }
  }
}

// sums[output][column] += the products of the places [q, q + n), for a stretch of columns.
template <class T>
void add_columns(int64_t q, int64_t n, int64_t columns, int64_t outputs, int64_t places,
                 const T* grads, const T* laid, const int64_t* offset, int64_t ld, T* sums) {
  const auto& kernel = loops<T>();
  for (int64_t j = 0; j < columns; j += kernel.cols) {
    for (int64_t first = 0; first < outputs; first += kernel.rows) {
      const int64_t m = std::min(kernel.rows, outputs - first);
      kernel.product(n, m, grads + first * places + q * m, laid + j, offset + q,
                     sums + first * ld + j, ld);
    }
  }
}

// sums += the products of one band.
template <class T>
void add_places(const Problem& p, const Band& band, const TapRows& rows, int64_t outputs,
                const T* grads, const T* laid, T* sums) {
  const int64_t width = p.width(), plane = (band.rows + p.h.halo()) * width;
  const int64_t places = band.rows * p.w.out;
  const auto heights = static_cast<int64_t>(p.h.phases.size());
  const auto widths = static_cast<int64_t>(p.w.phases.size());
  auto start = [&](const TapRow& row) {
    const int64_t phase = (row.d->phase * heights + row.h->phase) * widths + row.phase;
    return (phase * (p.d.halo() + 1) * plane + (row.d->shift - p.d.lo) * plane +
            (row.h->shift - p.h.lo) * width + row.lo - p.w.lo) *
           p.channels;
  };
  std::vector<int64_t> offset(static_cast<size_t>(places)), own(static_cast<size_t>(places));
  for (int64_t q = 0; q < places; ++q) {
    offset[static_cast<size_t>(q)] = (q / p.w.out * width + q % p.w.out) * p.channels;
    own[static_cast<size_t>(q)] = q % kPlacesTogether * rows.ld;
  }
  Scratch<T> gathered(rows.gathered ? kPlacesTogether * rows.ld : 0);
  std::fill_n(gathered.data(), rows.gathered ? kPlacesTogether * rows.ld : 0, T(0));
  for (int64_t q = 0; q < places; q += kPlacesTogether) {
    const int64_t n = std::min(kPlacesTogether, places - q);
    for (const TapRow& row : rows.list) {
      const T* from = laid + start(row);
      if (!rows.gathered) {
        add_columns(q, n, row.columns, outputs, places, grads, from, offset.data(), rows.ld,
                    sums + row.at);
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        const T* source = from + offset[static_cast<size_t>(q + i)];
        T* to = gathered.data() + i * rows.ld + row.at;
        for (int64_t c = 0; c < row.columns; ++c) to[c] = source[c];
      }
    }
    if (rows.gathered) {
      add_columns(q, n, rows.ld, outputs, places, grads, gathered.data(), own.data(), rows.ld,
                  sums);
    }
  }
}

// gw[output][channel][tap] += sums.
template <class T>
void add_taps(const Problem& p, const ConvShape& s, const TapRows& rows, int64_t outputs,
              const T* sums, T* gw) {
  const int64_t taps = p.taps(), kernel_w = s.kernel[s.spatial - 1];
  const int64_t kernel_h = s.spatial > 1 ? s.kernel[s.spatial - 2] : 1;
  for (const TapRow& row : rows.list) {
    for (int64_t m = 0; m < outputs; ++m) {
      for (const Axis::Tap& w : p.w.taps) {
        if (w.phase != row.phase) continue;
        const int64_t tap = (row.d->number * kernel_h + row.h->number) * kernel_w + w.number;
        const T* from = sums + row.at + m * rows.ld + (w.shift - row.lo) * p.channels;
        T* to = gw + m * p.channels * taps + tap;
        for (int64_t c = 0; c < p.channels; ++c) to[c * taps] += from[c];
      }
    }
  }
}

}  // namespace

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
  auto stride = [&](int d) { return d < 3 - s.spatial ? 1 : s.stride[d - (3 - s.spatial)]; };
  auto each_remainder = [&](auto&& f) {
    for (int64_t r = 0; r < stride(0) * stride(1) * stride(2); ++r) {
      Problem p{backward_axis(s, 0, r / stride(2) / stride(1)),
                backward_axis(s, 1, r / stride(2) % stride(1)),
                backward_axis(s, 2, r % stride(2)),
                channels,
                0,
                0};
      p.y_height = s.spatial > 1 ? s.in[s.spatial - 2] : 1;
      p.y_width = s.in[s.spatial - 1];
      if (p.d.out * p.h.out * p.w.out != 0) f(p);
    }
  };
  bool all_read = true;
  each_remainder([&](const Problem& p) { all_read &= p.taps() != 0; });
  if (!all_read) std::fill_n(gx, s.batch * s.in_channels * in_volume, T(0));
  each_remainder([&](const Problem& p) {
    if (p.taps() == 0) return;
    run<T>(p, s, outputs, gy, w, channels * outputs * taps, taps, outputs * taps, nullptr,
           in_volume, gx);
  });
}

template <class T> void direct_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw) {
  const Problem p = forward_problem(s);
  const int64_t outputs = s.out_channels / s.groups;
  const int64_t x_volume = p.d.in * p.h.in * p.w.in, y_volume = volume(s, s.out);
  const TapRows rows = tap_rows(p, outputs, loops<T>().cols);
  // Runs of pieces add to sums of their own, which are then added in order.
  const int64_t bands = p.bands(), pieces = s.batch * bands;
  const int64_t group_sums = rows.size, total = s.groups * group_sums;
  const int64_t most = total > (1 << 18) ? 4 : 16;
  const int64_t run = ceil_div(pieces, std::min(most, pieces)), runs = ceil_div(pieces, run);
  Scratch<T> sums(runs * total);
  parallel_for(runs * s.groups, 1, [&](int64_t begin, int64_t end) {
    const int64_t laid_size = p.channels * p.channel_size(p.band());
    Scratch<T> laid(laid_size), last(laid_size + loops<T>().cols);
    Scratch<T> grads(outputs * p.band() * p.w.out);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % s.groups, number = i / s.groups;
      T* to = sums.data() + number * total + group * group_sums;
      std::fill_n(to, group_sums, T(0));
      for (int64_t piece = number * run; piece < std::min((number + 1) * run, pieces); ++piece) {
        const int64_t image = piece / bands;
        const Band band(p, piece % bands);
        lay_out(p, band, x + (image * s.groups + group) * p.channels * x_volume, laid.data());
        channels_last(laid.data(), p.channels, p.channel_size(band.rows), last.data());
        const T* g = gy + (image * s.groups + group) * outputs * y_volume;
        pack_gradients(p, band, outputs, g + (band.depth * p.h.out + band.first) * p.w.out,
                       y_volume, grads.data());
        add_places(p, band, rows, outputs, grads.data(), last.data(), to);
      }
    }
  });
  for (int64_t r = 0; r < runs; ++r) {
    for (int64_t group = 0; group < s.groups; ++group) {
      add_taps(p, s, rows, outputs, sums.data() + r * total + group * group_sums,
               gw + group * outputs * p.depth());
    }
  }
}

#define TAEDA_DIRECT(T)                                                                \
  template void direct_forward<T>(const ConvShape&, const T*, const T*, const T*, T*); \
  template void direct_grad_input<T>(const ConvShape&, const T*, const T*, T*);        \
  template void direct_grad_weight<T>(const ConvShape&, const T*, const T*, T*);
TAEDA_DIRECT(float)
TAEDA_DIRECT(double)

}  // namespace taeda::cpu
