// Fourier transforms: taeda.fft. Three ops do the work (complex to complex, real to complex,
// complex to real) over any dimensions; the others determine lengths, dimensions and scale factors.
#include "kernels/fft.h"

#include <algorithm>
#include <cmath>

#include "ops/core/shape_util.h"

namespace taeda {
namespace {

using OptInt = std::optional<int64_t>;
using OptDims = std::optional<Dims>;
using Norm = std::optional<std::string>;

// ---- transforms ----

FftShape shape_along(DimsRef sizes, int64_t dim) {
  FftShape s{1, 1, 1};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto d = static_cast<int64_t>(i);
    (d < dim ? s.outer : d == dim ? s.n : s.inner) *= sizes[i];
  }
  return s;
}

// The block of (batch, dims...) where `dims`, not one alone, are the last dimensions of an array.
std::optional<FftBlock> block_of(DimsRef sizes, Dims dims) {
  const size_t rank = dims.size();
  if (rank < 2 || rank > 3) return std::nullopt;
  std::sort(dims.begin(), dims.end());
  FftBlock b{static_cast<int>(rank), 1, {}};
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = sizes.size() - rank + i;
    if (dims[i] != static_cast<int64_t>(d)) return std::nullopt;
    b.n[i] = sizes[d];
  }
  for (int64_t n : sizes.first(sizes.size() - rank)) b.batch *= n;
  return b;
}

// Transforms along each of `dims` into `out`, which is contiguous; the first pass reads `in`, the
// others run in place.
template <class T>
void complex_dims(const Tensor& in, const Tensor& out, DimsRef dims, bool forward, double scale) {
  const FftKernels<T>& k = kernels<FftKernels<T>>(out.device());
  const Tensor* from = &in;
  for (size_t i = dims.size(); i-- > 0;) {
    k.complex(shape_along(out.sizes(), dims[i]), forward, static_cast<T>(i ? 1.0 : scale),
              from->data_as<T>(), out.data_as<T>());
    from = &out;
  }
}

Dims wrapped(const char* what, const Tensor& x, DimsRef dims) {
  check(!dims.empty(), what, "(): dim must not be empty");
  Dims result;
  for (int64_t d : dims) result.push_back(wrap_dim(d, x.dim()));
  dim_mask(result, x.dim());
  check<IndexError>(x.dim() > 0, what, "(): self must have a dimension");
  return result;
}

template <class F> void visit_parts(DType d, const char* what, F&& f) {
  visit_floating(to_real(d), what, std::forward<F>(f));
}

Tensor c2c(const Tensor& self, const Dims& dim, double scale, bool forward) {
  check(is_complex(self.dtype()), "_fft_c2c(): self must be complex, got ", self.dtype());
  const Dims dims = wrapped("_fft_c2c", self, dim);
  const Tensor out = empty(self.sizes(), self.options());
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor in = raw_contiguous(self);
  const auto block = block_of(out.sizes(), dims);
  visit_parts(self.dtype(), "_fft_c2c", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto at_once = kernels<FftKernels<T>>(out.device()).complex_block;
    if (block && at_once)
      at_once(*block, forward, static_cast<T>(scale), in.data_as<T>(), out.data_as<T>());
    else complex_dims<T>(in, out, dims, forward, scale);
  });
  return out;
}

Tensor r2c(const Tensor& self, const Dims& dim, double scale, bool half) {
  check(self.dtype() == DType::Float32 || self.dtype() == DType::Float64,
        "_fft_r2c(): self must be float32 or float64, got ", self.dtype());
  const Dims dims = wrapped("_fft_r2c", self, dim);
  const int64_t last = dims.back();
  Dims sizes(self.sizes());
  int64_t& n = sizes[static_cast<size_t>(last)];
  check(n > 0, "Invalid number of data points (", n, ") specified");
  if (half) n = n / 2 + 1;
  const Tensor out = empty(sizes, {to_complex(self.dtype()), self.device()});
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor in = raw_contiguous(self);
  const auto block = half && last + 1 == self.dim() ? block_of(in.sizes(), dims) : std::nullopt;
  visit_parts(self.dtype(), "_fft_r2c", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto at_once = kernels<FftKernels<T>>(out.device()).real_block;
    if (block && at_once)
      return at_once(*block, static_cast<T>(scale), in.data_as<T>(), out.data_as<T>());
    const bool more = dims.size() > 1;
    kernels<FftKernels<T>>(out.device())
        .real(shape_along(in.sizes(), last), half, static_cast<T>(more ? 1.0 : scale),
              in.data_as<T>(), out.data_as<T>());
    complex_dims<T>(out, out, DimsRef(dims).first(dims.size() - 1), true, scale);
  });
  return out;
}

Tensor c2r(const Tensor& self, const Dims& dim, double scale, int64_t n) {
  check(is_complex(self.dtype()), "_fft_c2r(): self must be complex, got ", self.dtype());
  const Dims dims = wrapped("_fft_c2r", self, dim);
  const int64_t last = dims.back();
  check(n > 0, "Invalid number of data points (", n, ") specified");
  check(self.size(last) == n / 2 + 1, "_fft_c2r(): expected size ", n / 2 + 1, " along dimension ",
        last, " for a result of size ", n, ", got ", self.size(last));
  Dims sizes(self.sizes());
  sizes[static_cast<size_t>(last)] = n;
  const Tensor out = empty(sizes, {to_real(self.dtype()), self.device()});
  if (out.is_meta() || out.numel() == 0) return out;
  const Tensor in = raw_contiguous(self);
  visit_parts(self.dtype(), "_fft_c2r", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DimsRef others = DimsRef(dims).first(dims.size() - 1);
    const Tensor between = others.empty() ? in : empty(self.sizes(), self.options());
    complex_dims<T>(in, between, others, false, 1.0);
    kernels<FftKernels<T>>(out.device())
        .to_real(shape_along(sizes, last), static_cast<T>(scale), between.data_as<T>(),
                 out.data_as<T>());
  });
  return out;
}

// ---- derivatives ----

// The adjoint of a transform is the transform in the other direction.
void c2c_backward(Backward& b) {
  b.set(0, op<"_fft_c2c">(b.grad(), b.arg<Dims>(1), b.arg<double>(2), !b.arg<bool>(3)));
}

// Multiplies x by `inside` along `dim`, except the frequencies without a conjugate partner in a
// real transform of n elements: the first and, if n is even, the last.
Tensor weigh_inside(const Tensor& x, int64_t dim, int64_t n, double inside) {
  const int64_t size = x.size(dim);
  const Options options{to_real(x.dtype()), x.device()};
  const Tensor w = full(Dims{size}, inside, options), one = full(Dims{1}, 1.0, options);
  if (!x.is_meta()) {
    copy_into(raw_narrow(w, 0, 0, 1), one);
    if (n % 2 == 0) copy_into(raw_narrow(w, 0, size - 1, 1), one);
  }
  Dims shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(dim)] = size;
  return x * reshape(w, shape);
}

void r2c_backward(Backward& b) {
  const Dims dims = b.arg<Dims>(1);
  const Tensor& g = b.grad();
  const double scale = b.arg<double>(2);
  if (!b.arg<bool>(3)) return b.set(0, op<"real">(op<"_fft_c2c">(g, dims, scale, false)));
  const auto ndim = static_cast<int64_t>(b.sizes(0).size());
  const int64_t last = wrap_dim(dims.back(), ndim), n = at(b.sizes(0), last);
  b.set(0, op<"_fft_c2r">(weigh_inside(g, last, n, 0.5), dims, scale, n));
}

void c2r_backward(Backward& b) {
  const Dims dims = b.arg<Dims>(1);
  const Tensor& g = b.grad();
  const int64_t last = wrap_dim(dims.back(), g.dim()), n = b.arg<int64_t>(3);
  b.set(0, weigh_inside(op<"_fft_r2c">(g, dims, b.arg<double>(2), true), last, n, 2.0));
}

// ---- lengths, dimensions, factors ----

DType inexact(const Tensor& x) {
  check(!is_half(to_real(x.dtype())), "Unsupported dtype ", x.dtype());
  return is_inexact(x.dtype()) ? x.dtype() : default_dtype();
}
Tensor as_inexact(const Tensor& x) { return to(x, inexact(x)); }
Tensor as_complex(const Tensor& x) { return to(x, to_complex(inexact(x))); }

// The normalisation factor of a transform over `count` elements.
double factor(const Norm& norm, double count, bool forward) {
  if (!norm || *norm == "backward") return forward ? 1.0 : 1.0 / count;
  if (*norm == "ortho") return 1.0 / std::sqrt(count);
  check(*norm == "forward", "Invalid normalization mode: \"", *norm, "\"");
  return forward ? 1.0 / count : 1.0;
}

int64_t line_dim(const Tensor& x, int64_t dim) {
  check<IndexError>(x.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  return wrap_dim(dim, x.dim());
}

// x truncated or zero-padded to size n along dim.
Tensor resized(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t size = x.size(dim);
  if (n == size) return x;
  if (n < size) return narrow(x, dim, 0, n);
  Dims pad(static_cast<size_t>(2 * (x.dim() - dim)), 0);
  pad.back() = n - size;
  return op<"constant_pad_nd">(x, pad, Scalar(0));
}
void check_length(int64_t n) { check(n >= 1, "Invalid number of data points (", n, ") specified"); }

Tensor complex_1d(const Tensor& self, OptInt length, int64_t dim, const Norm& norm, bool forward) {
  Tensor x = as_inexact(self);
  const int64_t d = line_dim(x, dim), n = length.value_or(x.size(d));
  check_length(n);
  const double scale = factor(norm, static_cast<double>(n), forward);
  x = resized(x, d, n);
  if (is_complex(x.dtype())) return op<"_fft_c2c">(x, Dims{d}, scale, forward);
  const Tensor y = op<"_fft_r2c">(x, Dims{d}, scale, false);
  return forward ? y : conj(y);
}
Tensor real_1d(const char* what, const Tensor& self, OptInt length, int64_t dim, const Norm& norm,
               bool forward) {
  check(!is_complex(self.dtype()), what, " expects a real input tensor, but got ", self.dtype());
  const Tensor x = as_inexact(self);
  const int64_t d = line_dim(x, dim), n = length.value_or(x.size(d));
  check_length(n);
  const Tensor y = op<"_fft_r2c">(resized(x, d, n), Dims{d},
                                  factor(norm, static_cast<double>(n), forward), true);
  return forward ? y : conj(y);
}
Tensor to_real_1d(const Tensor& self, OptInt length, int64_t dim, const Norm& norm, bool forward) {
  Tensor x = as_complex(self);
  const int64_t d = line_dim(x, dim), n = length.value_or(2 * (x.size(d) - 1));
  check_length(n);
  if (forward) x = conj(x);
  return op<"_fft_c2r">(resized(x, d, n / 2 + 1), Dims{d},
                        factor(norm, static_cast<double>(n), forward), n);
}

struct TransformDims {
  Dims dims, sizes;  // the dimensions to transform, and their sizes
  double count() const {
    double n = 1;
    for (int64_t s : sizes) n *= static_cast<double>(s);
    return n;
  }
};
// `halved`: x holds half of the last dimension (a Hermitian signal); the sizes are those of the
// full signal.
TransformDims transform_dims(const Tensor& x, const OptDims& s, const OptDims& dim, bool halved) {
  TransformDims result;
  if (dim) {
    for (int64_t d : *dim) result.dims.push_back(wrap_dim(d, x.dim()));
    uint64_t seen = 0;
    for (int64_t d : result.dims) {
      const uint64_t bit = dim_bit(d, x.dim());
      check(!(seen & bit), "FFT dims must be unique");
      seen |= bit;
    }
    check<IndexError>(result.dims.empty() || x.dim() > 0, "Dimension specified as ",
                      result.dims.empty() ? 0 : dim->back(), " but tensor has no dimensions");
  }
  if (s) {
    check(!dim || dim->size() == s->size(),
          "When given, dim and shape arguments must have the same length");
    const auto given = static_cast<int64_t>(s->size());
    check(given <= x.dim(), "Got shape with ", given, " values but input tensor only has ", x.dim(),
          " dimensions.");
    if (!dim) {
      for (int64_t d = x.dim() - given; d < x.dim(); ++d) result.dims.push_back(d);
    }
  } else if (!dim) {
    for (int64_t d = 0; d < x.dim(); ++d) result.dims.push_back(d);
  }
  for (size_t i = 0; i < result.dims.size(); ++i) {
    int64_t n = s ? (*s)[i] : -1;
    if (n == -1) {
      n = x.size(result.dims[i]);
      if (halved && i + 1 == result.dims.size()) n = 2 * (n - 1);
    }
    check_length(n);
    result.sizes.push_back(n);
  }
  return result;
}
Tensor resized(Tensor x, const TransformDims& result, bool halved) {
  for (size_t i = 0; i < result.dims.size(); ++i) {
    const bool half = halved && i + 1 == result.dims.size();
    x = resized(x, result.dims[i], half ? result.sizes[i] / 2 + 1 : result.sizes[i]);
  }
  return x;
}

Tensor complex_nd(const Tensor& self, const OptDims& s, const OptDims& dim, const Norm& norm,
                  bool forward) {
  Tensor x = as_inexact(self);
  const TransformDims result = transform_dims(x, s, dim, false);
  const double scale = factor(norm, result.count(), forward);
  if (result.dims.empty()) return clone(to(x, to_complex(x.dtype())));
  x = resized(x, result, false);
  if (is_complex(x.dtype())) return op<"_fft_c2c">(x, result.dims, scale, forward);
  const Tensor y = op<"_fft_r2c">(x, result.dims, scale, false);
  return forward ? y : conj(y);
}
Tensor real_nd(const char* what, const Tensor& self, const OptDims& s, const OptDims& dim,
               const Norm& norm, bool forward) {
  check(!is_complex(self.dtype()), what, " expects a real-valued input tensor, but got ",
        self.dtype());
  const Tensor x = as_inexact(self);
  const TransformDims result = transform_dims(x, s, dim, false);
  check(!result.dims.empty(), what, " must transform at least one axis");
  const Tensor y = op<"_fft_r2c">(resized(x, result, false), result.dims,
                                  factor(norm, result.count(), forward), true);
  return forward ? y : conj(y);
}
Tensor to_real_nd(const char* what, const Tensor& self, const OptDims& s, const OptDims& dim,
                  const Norm& norm, bool forward) {
  Tensor x = as_complex(self);
  const TransformDims result = transform_dims(x, s, dim, true);
  check(!result.dims.empty(), what, " must transform at least one axis");
  if (forward) x = conj(x);
  return op<"_fft_c2r">(resized(x, result, true), result.dims,
                        factor(norm, result.count(), forward), result.sizes.back());
}

// ---- the public functions ----

Tensor fft(const Tensor& x, OptInt n, int64_t dim, Norm norm) {
  return complex_1d(x, n, dim, norm, true);
}
Tensor ifft(const Tensor& x, OptInt n, int64_t dim, Norm norm) {
  return complex_1d(x, n, dim, norm, false);
}
Tensor rfft(const Tensor& x, OptInt n, int64_t dim, Norm norm) {
  return real_1d("rfft", x, n, dim, norm, true);
}
Tensor ihfft(const Tensor& x, OptInt n, int64_t dim, Norm norm) {
  return real_1d("ihfft", x, n, dim, norm, false);
}
Tensor irfft(const Tensor& x, OptInt n, int64_t dim, Norm norm) {
  return to_real_1d(x, n, dim, norm, false);
}
Tensor hfft(const Tensor& x, OptInt n, int64_t dim, Norm norm) {
  return to_real_1d(x, n, dim, norm, true);
}
Tensor fftn(const Tensor& x, OptDims s, OptDims dim, Norm norm) {
  return complex_nd(x, s, dim, norm, true);
}
Tensor ifftn(const Tensor& x, OptDims s, OptDims dim, Norm norm) {
  return complex_nd(x, s, dim, norm, false);
}
Tensor rfftn(const Tensor& x, OptDims s, OptDims dim, Norm norm) {
  return real_nd("rfftn", x, s, dim, norm, true);
}
Tensor ihfftn(const Tensor& x, OptDims s, OptDims dim, Norm norm) {
  return real_nd("ihfftn", x, s, dim, norm, false);
}
Tensor irfftn(const Tensor& x, OptDims s, OptDims dim, Norm norm) {
  return to_real_nd("irfftn", x, s, dim, norm, false);
}
Tensor hfftn(const Tensor& x, OptDims s, OptDims dim, Norm norm) {
  return to_real_nd("hfftn", x, s, dim, norm, true);
}

// fftshift and ifftshift: rolls each dimension by n // 2, rounded up for the inverse.
Tensor shifted(const Tensor& x, const OptDims& dim, bool back) {
  Dims dims, shifts;
  if (dim) dims = *dim;
  else
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  check(!dims.empty(), "`shifts` required");
  for (int64_t& d : dims) {
    d = wrap_dim(d, x.dim());
    shifts.push_back((x.size(d) + (back ? 1 : 0)) / 2);
  }
  return op<"roll">(x, shifts, dims);
}
Tensor fftshift(const Tensor& x, OptDims dim) { return shifted(x, dim, false); }
Tensor ifftshift(const Tensor& x, OptDims dim) { return shifted(x, dim, true); }

constexpr Traits kTransform{
    .forms = kFunction | kOut, .composite = true, .module = "fft", .out_dtype = OutDtype::SameKind};
constexpr Traits kWide = kTransform.with(kFloat32OnCpu);
constexpr Traits kShift{.forms = kFunction, .composite = true, .module = "fft"};

const Define kFftOps[] = {
    {"_fft_c2c(self: Tensor, dim: int[], scale: float, forward: bool) -> Tensor",
     "Fourier transform of a complex tensor along the dimensions `dim`, times `scale`.",
     kernel(c2c),
     {.backward = c2c_backward, .forms = 0, .vmap = vmap::along}},
    {"_fft_r2c(self: Tensor, dim: int[], scale: float, half: bool) -> Tensor",
     "Fourier transform of a real tensor; with `half`, the first half of the last of `dim` alone.",
     kernel(r2c),
     {.backward = r2c_backward, .forms = 0, .vmap = vmap::along}},
    {"_fft_c2r(self: Tensor, dim: int[], scale: float, n: int) -> Tensor",
     "Backward Fourier transform to a real tensor of size `n` along the last of `dim`, of which "
     "the "
     "input holds the first half.",
     kernel(c2r),
     {.backward = c2r_backward, .forms = 0, .vmap = vmap::along}},
    {"fft_fft(self: Tensor, n: int? = None, dim: int = -1, norm: str? = None) -> Tensor",
     "The discrete Fourier transform along `dim`, complex: `y[k]` is the sum over j of `x[j] "
     "exp(-2 pi i j k / n)`.\n\nThe input is cut off or filled with zeros to length `n`. "
     "`norm` says where the factor 1/n goes: 'backward' (the inverse has it), 'forward', or "
     "'ortho' (both have its square root).",
     kernel(fft), kWide},
    {"fft_ifft(self: Tensor, n: int? = None, dim: int = -1, norm: str? = None) -> Tensor",
     "The inverse of `fft`: `x[j]` is the mean over k of `y[k] exp(2 pi i j k / n)`.", kernel(ifft),
     kWide},
    {"fft_rfft(self: Tensor, n: int? = None, dim: int = -1, norm: str? = None) -> Tensor",
     "The first `n // 2 + 1` elements of the Fourier transform of a real input along `dim`; "
     "the others are their conjugates.",
     kernel(rfft), kWide},
    {"fft_irfft(self: Tensor, n: int? = None, dim: int = -1, norm: str? = None) -> Tensor",
     "The inverse of `rfft`: real, of length `n` (default `2 * (size - 1)`).", kernel(irfft),
     kWide},
    {"fft_hfft(self: Tensor, n: int? = None, dim: int = -1, norm: str? = None) -> Tensor",
     "The Fourier transform, real, of an input of which the first half is given: `x[n - j]` "
     "is the conjugate of `x[j]`. `n` is the length of the result, by default `2 * (size - "
     "1)`.",
     kernel(hfft), kWide},
    {"fft_ihfft(self: Tensor, n: int? = None, dim: int = -1, norm: str? = None) -> Tensor",
     "The inverse of `hfft`: the first `n // 2 + 1` elements of the inverse transform of a "
     "real input.",
     kernel(ihfft), kWide},
    {"fft_fftn(self: Tensor, s: int[1]? = None, dim: int[1]? = None, norm: str? = None) -> Tensor",
     "`fft` along each of the dimensions `dim` (default: all, or as many of the last as `s` "
     "has sizes), which become those of `s`.",
     kernel(fftn), kWide},
    {"fft_fft2(self: Tensor, s: int[1]? = None, dim: int[1]? = [-2, -1], norm: str? = None) -> "
     "Tensor",
     "`fftn` along two dimensions, the last ones by default.", kernel(fftn), kWide},
    {"fft_ifftn(self: Tensor, s: int[1]? = None, dim: int[1]? = None, norm: str? = None) -> Tensor",
     "`ifft` along each of the dimensions `dim` (default: all, or as many of the last as `s` "
     "has sizes).",
     kernel(ifftn), kWide},
    {"fft_ifft2(self: Tensor, s: int[1]? = None, dim: int[1]? = [-2, -1], norm: str? = None) -> "
     "Tensor",
     "`ifftn` along two dimensions, the last ones by default.", kernel(ifftn), kWide},
    {"fft_rfftn(self: Tensor, s: int[1]? = None, dim: int[1]? = None, norm: str? = None) -> Tensor",
     "`rfft` along the last of the dimensions `dim` (default: all, or as many of the last as "
     "`s` has sizes), then `fft` along the others.",
     kernel(rfftn), kWide},
    {"fft_rfft2(self: Tensor, s: int[1]? = None, dim: int[1]? = [-2, -1], norm: str? = None) -> "
     "Tensor",
     "`rfftn` along two dimensions, the last ones by default.", kernel(rfftn), kWide},
    {"fft_irfftn(self: Tensor, s: int[1]? = None, dim: int[1]? = None, norm: str? = None) -> "
     "Tensor",
     "The inverse of `rfftn`: real, with the sizes `s` along `dim`.", kernel(irfftn), kWide},
    {"fft_irfft2(self: Tensor, s: int[1]? = None, dim: int[1]? = [-2, -1], norm: str? = None) -> "
     "Tensor",
     "`irfftn` along two dimensions, the last ones by default.", kernel(irfftn), kWide},
    {"fft_hfftn(self: Tensor, s: int[1]? = None, dim: int[1]? = None, norm: str? = None) -> Tensor",
     "`fft` along all of `dim` but the last, then `hfft` along that.", kernel(hfftn), kTransform},
    {"fft_hfft2(self: Tensor, s: int[1]? = None, dim: int[1]? = [-2, -1], norm: str? = None) -> "
     "Tensor",
     "`hfftn` along two dimensions, the last ones by default.", kernel(hfftn), kTransform},
    {"fft_ihfftn(self: Tensor, s: int[1]? = None, dim: int[1]? = None, norm: str? = None) -> "
     "Tensor",
     "The inverse of `hfftn`: `ihfft` along the last of `dim`, then `ifft` along the others.",
     kernel(ihfftn), kTransform},
    {"fft_ihfft2(self: Tensor, s: int[1]? = None, dim: int[1]? = [-2, -1], norm: str? = None) -> "
     "Tensor",
     "`ihfftn` along two dimensions, the last ones by default.", kernel(ihfftn), kTransform},
    {"fft_fftshift(self: Tensor, dim: int[1]? = None) -> Tensor",
     "Rolls `dim` (default: all) so that the zero frequency comes to the middle.", kernel(fftshift),
     kShift},
    {"fft_ifftshift(self: Tensor, dim: int[1]? = None) -> Tensor", "Undoes `fftshift`.",
     kernel(ifftshift), kShift},
};

}  // namespace
}  // namespace taeda
