// Pooling and its gradients. Every element of a result is computed by one thread, in a fixed order.
#include "kernels/pool.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/fault.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

// A shape of always three dimensions, outermost first.
struct Windows {
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t planes, in_volume = 1, out_volume = 1, channels = 1;
  bool adaptive;

  explicit Windows(const PoolShape& s) : planes(s.planes), adaptive(s.adaptive) {
    for (int d = 0; d < 3; ++d) {
      const int from = d - (3 - s.spatial);
      const bool used = from >= 0, given = used && !s.adaptive;
      in[d] = used ? s.in[from] : 1;
      out[d] = used ? s.out[from] : 1;
      kernel[d] = given ? s.kernel[from] : 1;
      stride[d] = given ? s.stride[from] : 1;
      padding[d] = given ? s.padding[from] : 0;
      dilation[d] = given ? s.dilation[from] : 1;
      in_volume *= in[d];
      out_volume *= out[d];
    }
    if (s.channels_last) channels = in[2];
  }

  // The elements that window o reads along a dimension: first, first + dilation, ... below last;
  // and how many there are with the padding, where dilation is 1.
  struct Span {
    int64_t first, last, padded;
  };
  __device__ Span span(int d, int64_t o) const {
    if (adaptive) {
      const int64_t first = o * in[d] / out[d], last = ((o + 1) * in[d] + out[d] - 1) / out[d];
      return {first, last, last - first};
    }
    int64_t first = o * stride[d] - padding[d];
    const int64_t end = first + (kernel[d] - 1) * dilation[d] + 1;
    const int64_t full = first + kernel[d], most = in[d] + padding[d];
    const int64_t padded = (full < most ? full : most) - first;
    if (first < 0) first += (-first + dilation[d] - 1) / dilation[d] * dilation[d];
    return {first, end < in[d] ? end : in[d], padded};
  }
  // The windows that may read element i, where dilation is 1.
  __device__ Span readers(int d, int64_t i) const {
    if (adaptive) return {i * out[d] / in[d], ((i + 1) * out[d] + in[d] - 1) / in[d], 0};
    const int64_t far = i + padding[d], past = far - kernel[d];
    const int64_t first = past < 0 ? 0 : past / stride[d] + 1, last = far / stride[d] + 1;
    return {first, last < out[d] ? last : out[d], 0};
  }
};

struct Spans {
  Windows::Span at[3];
  __device__ Spans(const Windows& w, int64_t o)
      : at{w.span(0, o / w.out[2] / w.out[1]), w.span(1, o / w.out[2] % w.out[1]),
           w.span(2, o % w.out[2])} {}
  __device__ int64_t divisor(const PoolAverage& average) const {
    if (average.divisor != 0) return average.divisor;
    int64_t n = 1;
    for (int d = 0; d < 3; ++d)
      n *= average.count_padding ? at[d].padded : at[d].last - at[d].first;
    return n;
  }
};

// Where the largest element of a window is: the first one, or the last NaN.
template <class T>
__device__ int64_t find_largest(const Windows& w, const Spans& spans, const T* plane) {
  T best{};
  int64_t found = -1;
  for (int64_t a = spans.at[0].first; a < spans.at[0].last; a += w.dilation[0])
    for (int64_t b = spans.at[1].first; b < spans.at[1].last; b += w.dilation[1])
      for (int64_t c = spans.at[2].first; c < spans.at[2].last; c += w.dilation[2]) {
        const int64_t at = (a * w.in[1] + b) * w.in[2] + c;
        const T v = plane[at];
        if (found >= 0 && !(v > best) && v == v) continue;
        best = v;
        found = at;
      }
  return found;
}

template <class T> void max_pool(const PoolShape& s, const T* x, T* y, int64_t* index) {
  const Windows w(s);
  each(w.planes * w.out_volume, [=] __device__(int64_t i) {
    const T* plane = x + i / w.out_volume * w.in_volume;
    const int64_t found = find_largest(w, Spans(w, i % w.out_volume), plane);
    y[i] = found < 0 ? T{} : plane[found];
    index[i] = found / w.channels;
  });
}

// Where window o begins along a dimension: they are `in - kernel` over `out - 1` apart on average.
template <class T> __device__ int64_t random_start(const Windows& w, int d, int64_t o, T sample) {
  const int64_t last = w.in[d] - w.kernel[d];
  if (o + 1 == w.out[d]) return last;
  const T step = static_cast<T>(static_cast<double>(last) / static_cast<double>(w.out[d] - 1));
  return static_cast<int64_t>((static_cast<T>(o) + sample) * step) -
         static_cast<int64_t>(sample * step);
}
// A window that would leave its plane is reported, and moved inside.
template <class T>
bool fractional_max_pool(const PoolShape& s, const T* x, const T* samples, T* y, int64_t* index) {
  PoolShape plain = s;
  plain.adaptive = false;
  std::fill_n(plain.padding, 3, 0);
  std::fill_n(plain.dilation, 3, 1);
  const Windows w(plain);
  const int spatial = s.spatial;
  Fault* fault = used_device().fault;
  each(w.planes * w.out_volume, [=] __device__(int64_t i) {
    const int64_t plane = i / w.out_volume;
    Spans spans(w, i % w.out_volume);
    int64_t rest = i % w.out_volume;
    for (int d = 2; d >= 0; --d) {
      const int64_t o = rest % w.out[d], most = w.in[d] - w.kernel[d];
      rest /= w.out[d];
      const int from = d - (3 - spatial);
      if (from < 0) continue;
      const T sample = samples[plane * spatial + (spatial == 2 ? 1 - from : from)];
      int64_t first = ::fabs(sample) < T(1 << 20) ? random_start(w, d, o, sample) : -1;
      if (first < 0 || first > most) {
        report(fault, first, most + 1);
        first = 0;
      }
      spans.at[d] = {first, first + w.kernel[d], w.kernel[d]};
    }
    const T* from = x + plane * w.in_volume;
    index[i] = find_largest(w, spans, from);
    y[i] = from[index[i]];
  });
  return true;
}

// gx[index[o]] += gy[o] for all o of a channel of a plane, which a block takes in order: of the
// threads that want to add to one element, that of the first o goes first, then the next. Elements
// that share a claim wait for one another, too.
template <class T>
__global__ void add_in_order(int64_t in, int64_t out, int64_t channels, const T* gy,
                             const int64_t* index, T* gx, int* outside) {
  constexpr int claims = 1024, nobody = kThreads;
  __shared__ int claim[claims];
  const int self = static_cast<int>(threadIdx.x);
  for (int i = self; i < claims; i += kThreads) claim[i] = nobody;
  const int64_t plane = blockIdx.x / channels, channel = blockIdx.x % channels;
  gx += plane * in * channels + channel;
  for (int64_t first = 0; first < out; first += kThreads) {
    const int64_t o = first + self, from = (plane * out + o) * channels + channel;
    const int64_t at = o < out ? index[from] : 0;
    bool waits = o < out && at >= 0 && at < in;
    if (o < out && !waits && outside) *outside = 1;
    int* own = claim + at % claims;
    while (__syncthreads_or(waits)) {
      if (waits) atomicMin(own, self);
      __syncthreads();
      const bool is_first = waits && *own == self;
      __syncthreads();
      if (!is_first) continue;
      gx[at * channels] += gy[from];
      *own = nobody;
      waits = false;
    }
  }
}
template <class T>
bool scatter(int64_t planes, int64_t in, int64_t out, int64_t channels, const T* gy,
             const int64_t* index, T* gx) {
  each(planes * in * channels, [=] __device__(int64_t i) { gx[i] = T(0); });
  const auto run = [&](int* outside) {
    launch(add_in_order<T>, static_cast<unsigned>(planes * channels), kThreads, 0, in, out,
           channels, gy, index, gx, outside);
  };
  if (!is_blocking()) {  // keep_inside() has seen to the indices
    run(nullptr);
    return true;
  }
  const Workspace memory(sizeof(int));
  int* outside = memory.as<int>();
  each(1, [=] __device__(int64_t) { *outside = 0; });
  run(outside);
  return read_back(outside) == 0;
}

template <class T> void avg_pool(const PoolShape& s, PoolAverage average, const T* x, T* y) {
  const Windows w(s);
  each(w.planes * w.out_volume, [=] __device__(int64_t i) {
    const T* plane = x + i / w.out_volume * w.in_volume;
    const Spans spans(w, i % w.out_volume);
    T sum = 0;
    for (int64_t a = spans.at[0].first; a < spans.at[0].last; ++a)
      for (int64_t b = spans.at[1].first; b < spans.at[1].last; ++b)
        for (int64_t c = spans.at[2].first; c < spans.at[2].last; ++c)
          sum += plane[(a * w.in[1] + b) * w.in[2] + c];
    y[i] = sum / static_cast<T>(spans.divisor(average));
  });
}

template <class T>
void avg_pool_backward(const PoolShape& s, PoolAverage average, const T* gy, T* gx) {
  const Windows w(s);
  each(w.planes * w.in_volume, [=] __device__(int64_t i) {
    const T* plane = gy + i / w.in_volume * w.out_volume;
    const int64_t at = i % w.in_volume,
                  place[] = {at / w.in[2] / w.in[1], at / w.in[2] % w.in[1], at % w.in[2]};
    const Windows::Span r[] = {w.readers(0, place[0]), w.readers(1, place[1]),
                               w.readers(2, place[2])};
    T sum = 0;
    for (int64_t a = r[0].first; a < r[0].last; ++a)
      for (int64_t b = r[1].first; b < r[1].last; ++b)
        for (int64_t c = r[2].first; c < r[2].last; ++c) {
          const int64_t o = (a * w.out[1] + b) * w.out[2] + c;
          sum += plane[o] / static_cast<T>(Spans(w, o).divisor(average));
        }
    gx[i] = sum;
  });
}

template <class T>
const PoolKernels<T> table{.max_pool = max_pool<T>,
                           .fractional_max_pool = fractional_max_pool<T>,
                           .scatter = scatter<T>,
                           .avg_pool = avg_pool<T>,
                           .avg_pool_backward = avg_pool_backward<T>};
const PoolKernels<int64_t> integer_table{.max_pool = max_pool<int64_t>,
                                         .fractional_max_pool = nullptr,
                                         .scatter = nullptr,
                                         .avg_pool = nullptr,
                                         .avg_pool_backward = nullptr};

}  // namespace

void add_pool_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(),
            {device_table(table<float>), device_table(table<double>), device_table(integer_table)});
}

}  // namespace taeda::cuda
