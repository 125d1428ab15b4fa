#include "base/cpu_features.h"
#include "kernels/cpu/conv/algorithm.h"

namespace taeda::cpu {
namespace {

// Each printed by `TAEDA_CPU=... python -m benchmarks.tune`, on an AMD EPYC.
constexpr ConvTuning kV2 = {
    .im2col = {{0.237, 0.0874, 0.0944, 125}, {0.248, 0.29, 1.34, 464}, {0.209, 0.161, 0.542, 797}},
    .nhwc = {{0.214, 0.00773, 0.484, 20.3},
             {0.208, 0.224, 1.11, 17.1},
             {0.248, 0.131, 0.826, 10.9}},
    .winograd = {{0.257, 0.342, 0.214, 0}, {0.243, 0.398, 0.27, 0}, {0.297, 0.426, 0.515, 0}},
    .depthwise = {{0.0182, 0.313, 3.29, 2.41},
                  {0.0227, 0.408, 2.55, 6.66},
                  {0.197, 0.163, 5.24, 14.4}},
};
constexpr ConvTuning kV3 = {
    .im2col = {{0.158, 0.145, 0.0804, 50.4}, {0.163, 0.182, 0.513, 428}, {0.161, 0.153, 0.0353, 0}},
    .nhwc = {{0.143, 0.0199, 0.446, 30.5},
             {0.141, 0.099, 0.724, 24.3},
             {0.141, 0.239, 0.367, 14.7}},
    .winograd = {{0.199, 0.136, 0.148, 0}, {0.188, 0.16, 0.149, 0}, {0.229, 0.109, 0.291, 0}},
    .depthwise = {{0.0227, 0.147, 1.23, 36.9},
                  {0.0286, 0.227, 1.17, 25.4},
                  {0.202, 0.0843, 1.9, 40.5}},
};
constexpr ConvTuning kV4 = {
    .im2col = {{0.293, 0.147, 0, 0}, {0.301, 0.176, 0.233, 0}, {0.272, 0.13, 0.151, 0}},
    .nhwc = {{0.286, 0.0811, 0.274, 29.8},
             {0.285, 0.0951, 0.407, 27.5},
             {0.297, 0.165, 0.332, 23.6}},
    .winograd = {{0.355, 0.104, 0.144, 0}, {0.336, 0.128, 0.189, 0}, {0.375, 0.103, 0.299, 0}},
    .depthwise = {{0.0426, 0.105, 1.56, 37.6},
                  {0.0648, 0.185, 1.01, 33.4},
                  {0.267, 0.0655, 0, 60.2}},
};

}  // namespace

const ConvTuning& conv_tuning() {
  switch (cpu_level()) {
    case CpuLevel::v4: return kV4;
    case CpuLevel::v3: return kV3;
    default: return kV2;  // other architectures, too: their registers have 16 bytes as well
  }
}

}  // namespace taeda::cpu
