#include "kernels/cpu/conv/simd/conv.h"

#include "kernels/cpu/conv/simd/strided_load.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Calls f(columns, elements of x, outputs that read zeros, that read x, that read zeros again) for
// each row of outputs, or part of one, within [begin, end), of the matrix's row of one tap.
template <class C, class P, class F>
FN void each_part(const ConvWindow& w, int64_t images, int64_t kd, int64_t kh, int64_t kw, P* x,
                  int64_t begin, int64_t end, C* col, F&& f) {
  // The outputs [first, last) of a row for which the tap falls inside of it.
  const int64_t start = kw * w.dilation[2] - w.padding[2], step = w.stride[2];
  const int64_t first = most(0, step - 1 - start) / step;
  const int64_t last = most(first, (w.in[2] - start + step - 1) / step);
  int64_t ow = begin % w.out[2], row = begin / w.out[2];
  int64_t oh = row % w.out[1], od = row / w.out[1];
  for (int64_t p = begin, count; p < end; p += count, col += count * images, ow = 0) {
    count = least(w.out[2] - ow, end - p);
    const int64_t id = od * w.stride[0] - w.padding[0] + kd * w.dilation[0];
    const int64_t ih = oh * w.stride[1] - w.padding[1] + kh * w.dilation[1];
    const bool inside = id >= 0 && id < w.in[0] && ih >= 0 && ih < w.in[1];
    const int64_t from = inside ? least(most(first - ow, 0), count) : count;
    const int64_t until = most(from, least(last - ow, count));
    const int64_t at = (id * w.in[1] + ih) * w.in[2] + start + (ow + from) * step;
    f(col, x + (from < until ? at * images : 0), from, until - from, count - until);
    if (++oh == w.out[1]) {
      oh = 0;
      ++od;
    }
  }
}

template <class C, class P, class F>
FN void each_row(const ConvWindow& w, int64_t channels, int64_t images, P* x, int64_t begin,
                 int64_t end, C* col, int64_t ld, F&& f) {
  for (int64_t c = 0; c < channels; ++c, x += w.in[0] * w.in[1] * w.in[2] * images) {
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, col += ld)
          each_part(w, images, kd, kh, kw, x, begin, end, col, f);
      }
    }
  }
}

template <class T>
void im2col(const ConvWindow& w, int64_t channels, int64_t images, const T* x, int64_t begin,
            int64_t end, T* col, int64_t ld) {
  const int64_t step = w.stride[2];
  each_row(w, channels, images, x, begin, end, col, ld,
           [&](T* to, const T* from, int64_t before, int64_t count, int64_t after) {
             for (int64_t j = 0; j < before * images; ++j) *to++ = T(0);
             if (step == 1) {
               copy_row(from, count * images, to);
             } else if (images == 1) {
               load_strided(from, step, count, to);
             } else {
               for (int64_t j = 0; j < count; ++j)
                 copy_row(from + j * step * images, images, to + j * images);
             }
             to += count * images;
             for (int64_t j = 0; j < after * images; ++j) *to++ = T(0);
           });
}

template <class T>
void col2im(const ConvWindow& w, int64_t channels, int64_t images, const T* col, int64_t ld,
            int64_t begin, int64_t end, T* x) {
  const int64_t step = w.stride[2];
  each_row(w, channels, images, x, begin, end, col, ld,
           [&](const T* from, T* to, int64_t before, int64_t count, int64_t) {
             const T* source = from + before * images;
             if (step == 1) {
               add_row(source, count * images, to);
             } else if (images == 1) {
               add_strided(source, count, step, to);
             } else {
               for (int64_t j = 0; j < count; ++j, to += step * images, source += images)
                 add_row(source, images, to);
             }
           });
}

}  // namespace

template <class T> constexpr ConvLoops<T> conv_loops = {im2col<T>, col2im<T>};

extern const ConvKernels conv_kernels = {conv_loops<float>,    conv_loops<double>,
                                         conv_loops<uint8_t>,  conv_loops<uint16_t>,
                                         conv_loops<uint32_t>, conv_loops<uint64_t>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
