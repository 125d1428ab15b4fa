// What torch/extension.h is to PyTorch: taeda and pybind11.
#pragma once

#include "pybind11.h"  // IWYU pragma: export
