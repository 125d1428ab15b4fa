// Convolution over one, two or three spatial dimensions, and its two gradients, on contiguous
// memory.
//
// x is (batch, in_channels, in...), w (out_channels, in_channels / groups, kernel...), y (batch,
// out_channels, out...). A transposed convolution is the same three kernels in other roles: its
// result is a gradient with respect to the input.
#pragma once

#include <cstdint>
#include <vector>

namespace taeda::cpu {

// Sizes, steps and taps along three dimensions; of fewer, the first ones are as they are here.
struct ConvWindow {
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {}, dilation[3] = {1, 1, 1};

  bool operator==(const ConvWindow&) const = default;
};
struct ConvShape : ConvWindow {
  int64_t batch, groups, in_channels, out_channels;

  bool operator==(const ConvShape&) const = default;
};

// T: float or double. `bias` may be null.
template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T> void conv_grad_input(const ConvShape& s, const T* gy, const T* w, T* gx);
template <class T> void conv_grad_weight(const ConvShape& s, const T* x, const T* gy, T* gw);

// T: the integers.
template <class T> void conv_forward_integer(const ConvShape& s, const T* x, const T* w, T* y);
template <class T> void conv_grad_input_integer(const ConvShape& s, const T* gy, const T* w, T* gx);

// ---- for benchmarks/tune.py ----

enum class ConvPass : uint8_t { forward, grad_input, grad_weight };

// An algorithm that can compute a float32 convolution, its estimated nanoseconds, and the amounts
// of work (ConvWork) that the estimate weighs by the rates of tuning.h.
struct ConvCandidate {
  const char* name;
  double cost;
  double work[4];
};
std::vector<ConvCandidate> conv_candidates(ConvPass pass, const ConvShape& s);

// Makes every convolution that this algorithm can compute use it; null: back to the estimates. Any
// algorithm gives a right result, so this is safe at any time. False if there is no such name.
bool force_conv_algorithm(const char* name);

}  // namespace taeda::cpu
