// The tables of kernels that ops call (kernels/kernels.h).
#pragma once

// Defines the CPU's table of the kernels K, a template, for float and double.
#define TAEDA_FLOAT_KERNELS(K, ...)                        \
  namespace taeda {                                        \
  template <class T> const K<T> K<T>::cpu = {__VA_ARGS__}; \
  template struct K<float>;                                \
  template struct K<double>;                               \
  }
