// Fills of contiguous memory with random numbers, drawn in memory order from one Engine.
//
// For one seed they give the numbers that PyTorch's CPU generator gives, bit for bit;
// docs/random-streams.md has the rules.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace taeda::cpu {

// T: float, double, Half, BFloat16. Uniform on [from, to).
template <class T> void fill_uniform(Engine& engine, T* out, int64_t n, double from, double to);

// T: float, double, Half, BFloat16. In blocks of 16 from 16 elements on; call it once for a whole
// tensor.
template <class T> void fill_normal(Engine& engine, T* out, int64_t n, double mean, double std);

// The same distribution, but one by one whatever n is: what a tensor that is not contiguous gets.
template <class T>
void fill_normal_serial(Engine& engine, T* out, int64_t n, double mean, double std);

// T: float, double, Half, BFloat16 (and for geometric also the integers).
template <class T> void fill_exponential(Engine& engine, T* out, int64_t n, double rate);
template <class T> void fill_cauchy(Engine& engine, T* out, int64_t n, double median, double sigma);
template <class T> void fill_log_normal(Engine& engine, T* out, int64_t n, double mean, double std);
template <class T> void fill_geometric(Engine& engine, T* out, int64_t n, double p);

// T: any real dtype. 1 with probability p, else 0.
template <class T> void fill_bernoulli(Engine& engine, T* out, int64_t n, double p);
// keep: ones with probability p; y = x * (keep ? scale : 0), while they are drawn.
void dropout(Engine& engine, int64_t n, double p, const float* x, double scale, bool* keep,
             float* y);
// Dropout: y = x * (keep ? scale : 0). T: float or double.
template <class T> void scale_kept(int64_t n, const T* x, const bool* keep, double scale, T* y);
// One probability an element, P: float or double (Half and BFloat16 are widened first).
template <class T, class P> void fill_bernoulli(Engine& engine, T* out, const P* p, int64_t n);

// T: any real dtype. base + (a draw modulo range); range = 0 stands for 2^64.
template <class T> void fill_range(Engine& engine, T* out, int64_t n, uint64_t range, int64_t base);
// T: any real dtype. All that random_() without bounds gives: 0 .. the largest value (or integer
// held exactly).
template <class T> void fill_random(Engine& engine, T* out, int64_t n);

// T: float, double. Poisson counts with the given rates.
template <class T> void fill_poisson(Engine& engine, T* out, const T* rates, int64_t n);

// A random order of 0 .. n-1.
void fill_permutation(Engine& engine, int64_t* out, int64_t n);

// `samples` indices per row of `weights` (rows x categories), with replacement. T: float, double.
template <class T>
void fill_multinomial(Engine& engine, int64_t* out, const T* weights, int64_t rows,
                      int64_t categories, int64_t samples);

}  // namespace taeda::cpu
