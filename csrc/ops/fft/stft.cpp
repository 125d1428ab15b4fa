// Short-time Fourier transforms of windows of a signal, and their inverse.
#include <cmath>

#include "base/warn.h"
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

using OptInt = std::optional<int64_t>;
using OptBool = std::optional<bool>;

// The window with zeros on both sides, n elements long; ones where none is given.
Tensor padded_window(const Tensor& window, int64_t length, int64_t n, Options o) {
  const Tensor w = window.defined() ? window : full(Dims{length}, Scalar(1), o);
  if (length == n) return w;
  const int64_t left = (n - length) / 2;
  return op<"constant_pad_nd">(w, Dims{left, n - length - left}, Scalar(0));
}
void check_window(const char* what, const Tensor& window, int64_t length) {
  check(!window.defined() || (window.dim() == 1 && window.size(0) == length), what,
        "(): window must have one dimension of size win_length = ", length, ", got ",
        window.defined() ? to_string(window.sizes()).text() : "");
}
bool is_complex_tensor(const Tensor& t) { return t.defined() && is_complex(t.dtype()); }

void warn_of_window(const Tensor& window) {
  static WarnOnce without(
      "A window was not provided. A rectangular window will be applied, which is known to cause "
      "spectral leakage. Other windows such as the Hann window or the Hamming window should be "
      "preferred.");
  if (!window.defined()) without();
}

Tensor stft_op(const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
               const Tensor& window, bool center, const std::string& pad_mode, bool normalized,
               OptBool onesided, OptBool return_complex, OptBool align_to_window) {
  const int64_t hop = hop_length.value_or(n_fft / 4), length = win_length.value_or(n_fft);
  const bool complex_in = is_complex(self.dtype()) || is_complex_tensor(window);
  check(return_complex.has_value() || complex_in,
        "stft(): return_complex must be given for a real input");
  check(is_inexact(self.dtype()), "stft(): input must be floating point or complex, got ",
        self.dtype());
  check(self.dim() == 1 || self.dim() == 2, "stft(): input must have 1 or 2 dimensions, got ",
        self.dim());
  check(!center || !align_to_window, "stft(): align_to_window goes with center=False alone");
  const bool half = onesided.value_or(!complex_in);
  check(!half || !complex_in, "stft(): onesided=True needs a real input and a real window");

  Tensor x = self.dim() == 1 ? unsqueeze(self, 0) : self;
  if (center) {
    const int64_t side = n_fft / 2;
    x = squeeze(op<"pad">(unsqueeze(x, 0), Dims{side, side}, pad_mode), 0);
  }
  const int64_t size = x.size(1);
  check(n_fft > 0 && n_fft <= size, "stft(): n_fft must be in [1, ", size,
        "], the size of the (padded) input, got ", n_fft);
  check(hop > 0, "stft(): hop_length must be positive, got ", hop);
  check(length > 0 && length <= n_fft, "stft(): win_length must be in [1, n_fft = ", n_fft,
        "], got ", length);
  check_window("stft", window, length);
  warn_of_window(window);
  if (align_to_window.value_or(false) && length < n_fft) {
    const int64_t left = (n_fft - length) / 2;
    x = op<"constant_pad_nd">(x, Dims{left, n_fft - length - left}, Scalar(0));
  }
  Tensor frames = op<"unfold">(x, -1, n_fft, hop);
  if (window.defined() || length < n_fft) {
    frames = frames * padded_window(window, length, n_fft, {to_real(self.dtype()), self.device()});
  }
  const double scale = normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1.0;
  Tensor y = is_complex(frames.dtype()) ? op<"_fft_c2c">(frames, Dims{2}, scale, true)
                                        : op<"_fft_r2c">(frames, Dims{2}, scale, half);
  y = transpose(y, 1, 2);
  if (self.dim() == 1) y = squeeze(y, 0);
  return return_complex.value_or(true) ? y : op<"view_as_real">(y);
}

// Pads x with zeros at the end if it is shorter than `size`.
Tensor extended(const Tensor& x, int64_t size) {
  if (x.size(1) >= size) return x;
  return op<"constant_pad_nd">(x, Dims{0, size - x.size(1)}, Scalar(0));
}

Tensor istft_op(const Tensor& self, int64_t n_fft, OptInt hop_length, OptInt win_length,
                const Tensor& window, bool center, bool normalized, OptBool onesided, OptInt length,
                bool return_complex) {
  const int64_t hop = hop_length.value_or(n_fft / 4), win = win_length.value_or(n_fft);
  check(is_complex(self.dtype()),
        "istft(): input must be complex, as stft gives it with "
        "return_complex=True, got ",
        self.dtype());
  check(self.numel() > 0, "istft(): input must not be empty, got ", to_string(self.sizes()));
  check<IndexError>(self.dim() >= 2, "istft(): input must have 2 or 3 dimensions, got ",
                    self.dim());
  check(self.dim() <= 3, "istft(): input must have 2 or 3 dimensions, got ", self.dim());
  const int64_t rows = self.size(-2), count = self.size(-1);
  const bool half = onesided.value_or(rows != n_fft);
  check(rows == (half ? n_fft / 2 + 1 : n_fft), "istft(): expected ", half ? n_fft / 2 + 1 : n_fft,
        " frequencies for n_fft=", n_fft, " and onesided=", half ? "True" : "False", ", got ",
        rows);
  check(hop > 0 && hop <= win, "istft(): hop_length must be in [1, win_length = ", win, "], got ",
        hop);
  check(win > 0 && win <= n_fft, "istft(): win_length must be in [1, n_fft = ", n_fft, "], got ",
        win);
  check_window("istft", window, win);
  warn_of_window(window);
  check(!half || !(return_complex || is_complex_tensor(window)),
        "istft(): onesided=True needs a real result and a real window");
  check(return_complex || !is_complex_tensor(window),
        "istft(): a complex window needs return_complex=True");

  Tensor frames = transpose(self.dim() == 2 ? unsqueeze(self, 0) : self, 1, 2);
  const auto n = static_cast<double>(n_fft);
  const double scale = normalized ? 1 / std::sqrt(n) : 1 / n;
  // The first half of its frequencies determines a real signal; the rest of a full spectrum is
  // ignored.
  if (return_complex) frames = op<"_fft_c2c">(frames, Dims{2}, scale, false);
  else frames = op<"_fft_c2r">(narrow(frames, 2, 0, n_fft / 2 + 1), Dims{2}, scale, n_fft);
  const Tensor w = padded_window(window, win, n_fft, {to_real(self.dtype()), self.device()});
  const int64_t whole = n_fft + hop * (count - 1), batch = frames.size(0);
  const Tensor sum = op<"_unfold_backward">(frames * w, Dims{batch, whole}, 1, n_fft, hop);
  const Tensor overlap =
      op<"_unfold_backward">(expand(w * w, Dims{1, count, n_fft}), Dims{1, whole}, 1, n_fft, hop);

  const int64_t start = center ? n_fft / 2 : 0;
  const int64_t end = std::min(whole, length ? start + *length : whole - (center ? n_fft / 2 : 0));
  check(end > start, "istft(): nothing is left of ", whole, " samples, from ", start, " to ", end);
  const Tensor weight = narrow(overlap, 1, start, end - start);
  if (!weight.is_meta()) {
    GradMode off(false);
    const double least = op<"min">(op<"abs">(weight)).item().to_double();
    check(least > 1e-11,
          "istft(): the windows leave samples without weight: the smallest sum of "
          "overlapping squares is ",
          least);
  }
  Tensor y = narrow(sum, 1, start, end - start) / weight;
  if (length) y = extended(y, *length);
  return self.dim() == 2 ? squeeze(y, 0) : y;
}

const Define kStftOps[] = {
    {"stft(input: Tensor, n_fft: int, hop_length: int? = None, win_length: int? = None, window: "
     "Tensor? = None, center: bool = True, pad_mode: str = 'reflect', normalized: bool = False, "
     "onesided: bool? = None, return_complex: bool? = None, align_to_window: bool? = None) -> "
     "Tensor",
     "Short-time Fourier transform: windows of `n_fft` samples, every `hop_length` (default `n_fft "
     "// "
     "4`), times `window` (default ones, `win_length` long and filled with zeros to `n_fft`), "
     "transformed.\n\n"
     "A signal (samples) or (batch, samples) gives (..., frequencies, windows): `n_fft // 2 + 1` "
     "frequencies where `onesided` (default for real input), else `n_fft`. `center` puts the "
     "middle of "
     "the first window on the first sample, padding the signal by `pad_mode`. `normalized` divides "
     "by "
     "the square root of `n_fft`. `return_complex` must be given for real input; where it is "
     "False, the "
     "last dimension holds real and imaginary parts.",
     kernel(stft_op),
     {.composite = true, .autocast = kFloat32OnCpu}},
    {"istft(input: Tensor, n_fft: int, hop_length: int? = None, win_length: int? = None, window: "
     "Tensor? = None, center: bool = True, normalized: bool = False, onesided: bool? = None, "
     "length: "
     "int? = None, return_complex: bool = False) -> Tensor",
     "The inverse of `stft` with the same arguments: every window goes back to its position, times "
     "`window`, and their sum is divided by the sum of the squared windows (Griffin and Lim, "
     "1984).\n\n"
     "RuntimeError where that is zero for some sample. `length` cuts the result or fills it with "
     "zeros.",
     kernel(istft_op),
     {.composite = true}},
};

}  // namespace
}  // namespace taeda
