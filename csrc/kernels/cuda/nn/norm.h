// The parts of the table of norms.
#pragma once

#include "kernels/cuda/common/vector.h"
#include "kernels/norm.h"

namespace taeda::cuda {

template <class S>
void normalize_rows(const RowNormShape& s, const S* x, const Number<S>* weight,
                    const Number<S>* bias, S* y, Number<S>* mean, Number<S>* rstd);
template <class S>
void row_gradients(const RowNormShape& s, const S* g, const S* x, const Number<S>* mean,
                   const Number<S>* rstd, const Number<S>* weight, S* gx);

// A batch of `samples`, each of (channels, spatial), contiguous.
struct ChannelShape {
  int64_t samples, channels, spatial;
};

// What elements of a channel are normalised by: element i of `mean` and `rstd`, with i = sample *
// sample_step + channel / channels_each.
template <class T> struct ChannelStats {
  const T* mean;
  const T* rstd;
  int64_t sample_step, channels_each;

  __device__ int64_t at(int64_t sample, int64_t channel) const {
    return sample * sample_step + (channels_each == 1 ? channel : channel / channels_each);
  }
};

// Mean and biased variance of each channel.
template <class S>
void channel_moments(const ChannelShape& s, double eps, const S* x, Number<S>* mean, Number<S>* var,
                     Number<S>* invstd);
// Of each channel the sums of g * (x - mean) * rstd and of g; either may be null.
template <class S>
void channel_gradients(const ChannelShape& s, const ChannelStats<Number<S>>& stats, const S* g,
                       const S* x, Number<S>* gw, Number<S>* gb);

}  // namespace taeda::cuda
