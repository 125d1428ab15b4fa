// The algorithms that compute a convolution, and the interface by which one is chosen.
//
// Each estimates its work from the shape; the rates of tuning.h, measured for each instruction
// set, turn work into time; the chooser (conv.cpp) takes the algorithm with the shortest time.
#pragma once

#include "kernels/cpu/conv/conv.h"

namespace taeda::cpu {

// What an algorithm does for a shape.
struct ConvWork {
  double fma = 0;     // multiply-adds of one register, those with padding included
  double moved = 0;   // elements of activations copied to or from a layout of its own
  double packed = 0;  // elements of weights copied to or from a layout of its own
  double calls = 0;   // of inner kernels, planes or tiles: what each costs besides
};

template <class T> struct ConvAlgorithm {
  const char* name;
  bool (*supports)(const ConvShape& s);
  ConvWork (*work)(const ConvShape& s);
  // From x and w to y, from gy and w to gx, or from x and gy to gw. bias: of the forward pass, or
  // null. False where the result is of no use: Winograd's transforms spread an infinity or NaN to
  // outputs that do not read it.
  bool (*run)(const ConvShape& s, const T* a, const T* b, const T* bias, T* result);
};

// The three passes of an algorithm. Those that T has not are without `supports`.
template <class T> struct ConvAlgorithms {
  ConvAlgorithm<T> passes[3];
};

extern const ConvAlgorithms<float> im2col_f32, nhwc_f32, winograd_f32, depthwise_f32,
    depthwise_nhwc_f32;
extern const ConvAlgorithms<double> im2col_f64, nhwc_f64, depthwise_f64, depthwise_nhwc_f64;

}  // namespace taeda::cpu
