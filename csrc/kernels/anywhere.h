// What the host computes and devices do, too: nvcc compiles such a function for both.
#pragma once

#ifdef __CUDACC__
#define TAEDA_ANYWHERE __host__ __device__
#else
#define TAEDA_ANYWHERE
#endif
