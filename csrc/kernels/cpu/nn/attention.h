// softmax(scale q k^T + mask) v and its gradients, a block of queries at a time: the scores of all
// queries are never in memory together.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// One of several matrices (batches and heads): where it begins, and how far its rows are apart. The
// elements of a row lie one after the other.
template <class T> struct Matrices {
  T* data;
  const int64_t* starts;  // for each matrix
  int64_t row;
  T* operator[](int64_t i) const { return data + starts[i]; }
};

struct AttentionShape {
  int64_t batch, queries, keys, size, value_size;
  double scale;
  bool causal;  // query i sees the keys up to i
};

// Added to the scores; step 0 repeats a row or an element. Null data: no mask.
template <class T> struct AttentionMask {
  const T* data = nullptr;
  const int64_t* starts = nullptr;
  int64_t row = 0, column = 0;
};

template <class T> struct Attention {
  static void attention(const AttentionShape& s, Matrices<const T> q, Matrices<const T> k,
                        Matrices<const T> v, const AttentionMask<T>& mask, Matrices<T> out);

  // g: the gradient of the result. dq, dk and dv start as zeros.
  static void attention_backward(const AttentionShape& s, Matrices<const T> g, Matrices<const T> q,
                                 Matrices<const T> k, Matrices<const T> v,
                                 const AttentionMask<T>& mask, Matrices<T> dq, Matrices<T> dk,
                                 Matrices<T> dv);
};

}  // namespace taeda::cpu
