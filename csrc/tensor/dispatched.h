// Tensors with kDispatch: their Python class answers in place of kernels. Here for what is no op.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace taeda {

// Set by csrc/python.
struct DispatchedAnswers {
  Tensor (*alias)(const Tensor& t) = nullptr;
  // The only element; nothing where the class is not asked.
  std::optional<Scalar> (*item)(const Tensor& t) = nullptr;
};
extern DispatchedAnswers dispatched;

inline constexpr const char* kPlaceholderText =
    "this tensor has no memory: it is a placeholder, made by _make_wrapper_subclass(), and only "
    "the __torch_dispatch__ of its class knows its values";

}  // namespace taeda
