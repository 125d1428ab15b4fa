// Inference mode: tensors made in it carry the flag kInference, and no version counter is kept for
// them. In-place changes to them are refused outside it.
#pragma once

#include "base/tls.h"

namespace taeda {

inline constexpr const char* kInferenceChange =
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone "
    "to get a normal tensor before doing inplace update.";

TAEDA_FAST_TLS extern thread_local constinit bool making_inference_tensors;

}  // namespace taeda
