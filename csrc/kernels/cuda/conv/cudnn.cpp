#include "kernels/cuda/conv/cudnn.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "kernels/cuda/conv/cudnn_graph.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/libraries.h"
#include "kernels/cuda/runtime/plans.h"

namespace taeda::cuda {
namespace {

using dnn::Descriptor, dnn::Refused;

std::atomic<bool> is_used = true, tf32_allowed = true;

constexpr int64_t kMostWorkspace = int64_t{1} << 30;

// ---- what convolutions of one plan have in common ----

// All of it is compared, so there is no padding.
struct Key {
  int64_t device, pass, dtype, tf32, batch, groups, in_channels, out_channels, channels_last;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  int64_t x_aligned, w_aligned, y_aligned;

  bool operator==(const Key&) const = default;
};

Key key_of(const Convolution& c, int device) {
  const ConvShape& s = c.shape;
  Key key{device,
          static_cast<int64_t>(c.pass),
          static_cast<int64_t>(c.dtype),
          c.dtype == DType::Float32 && tf32_allowed,
          s.batch,
          s.groups,
          s.in_channels,
          s.out_channels,
          s.channels_last,
          {},
          {},
          {},
          {},
          {},
          {},
          alignment(c.x, 64),
          alignment(c.w, 64),
          alignment(c.y, 64)};
  std::ranges::copy(s.in, key.in);
  std::ranges::copy(s.kernel, key.kernel);
  std::ranges::copy(s.out, key.out);
  std::ranges::copy(s.stride, key.stride);
  std::ranges::copy(s.padding, key.padding);
  std::ranges::copy(s.dilation, key.dilation);
  return key;
}

std::string described(const Key& key) {
  constexpr std::string_view passes[] = {"forward", "input's gradient", "weight's gradient"};
  const auto list = [](const int64_t (&v)[3]) { return str(v[0], ",", v[1], ",", v[2]); };
  return str("cuDNN: ", passes[key.pass], ", ", name(static_cast<DType>(key.dtype)),
             key.tf32 ? " (TF32)" : "", ", ", key.batch, "x", key.in_channels, "->",
             key.out_channels, key.channels_last ? " channels_last" : "", ", groups ", key.groups,
             ", in ", list(key.in), ", kernel ", list(key.kernel), ", out ", list(key.out),
             ", stride ", list(key.stride), ", padding ", list(key.padding), ", dilation ",
             list(key.dilation), ": ");
}

// ---- the convolution as the library knows it ----

dnn::DataType data_type(int64_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::Float16: return dnn::kFloat16;
    case DType::BFloat16: return dnn::kBFloat16;
    case DType::Float64: return dnn::kFloat64;
    default: return dnn::kFloat32;
  }
}

// The third dimension is left out where it is one place that is read as it is.
int spatial_dims(const Key& k) {
  return k.in[0] == 1 && k.kernel[0] == 1 && k.out[0] == 1 && k.padding[0] == 0 ? 2 : 3;
}

Descriptor tensor(const Key& key, int64_t id, int64_t first, int64_t second,
                  const int64_t (&spatial)[3], int64_t aligned) {
  const int dims = spatial_dims(key) + 2;
  int64_t sizes[5] = {first, second}, strides[5];
  std::copy(spatial + 5 - dims, spatial + 3, sizes + 2);
  // From the innermost dimension on.
  int64_t step = 1;
  for (int i = 0; i < dims; ++i) {
    int d = dims - 1 - i;
    if (key.channels_last && d > 0) d = i == 0 ? 1 : d + 1;
    strides[d] = step;
    step *= sizes[d];
  }
  Descriptor t(dnn::kTensor);
  const dnn::DataType type = data_type(key.dtype);
  t.set(dnn::kTensorType, dnn::kDataType, 1, &type);
  t.set(dnn::kTensorSizes, dnn::kInt64, dims, sizes);
  t.set(dnn::kTensorStrides, dnn::kInt64, dims, strides);
  t.set(dnn::kTensorId, id);
  t.set(dnn::kTensorAlignment, aligned);
  t.finalize("a tensor");
  return t;
}

Descriptor window(const Key& key) {
  const int dims = spatial_dims(key), first = 3 - dims;
  Descriptor w(dnn::kConvolution);
  const dnn::DataType type =
      static_cast<DType>(key.dtype) == DType::Float64 ? dnn::kFloat64 : dnn::kFloat32;
  w.set(dnn::kComputeType, dnn::kDataType, 1, &type);
  w.set(dnn::kMode, dnn::kConvolutionMode, 1, &dnn::kCrossCorrelation);
  w.set(dnn::kSpatialDims, dims);
  w.set(dnn::kStrides, dnn::kInt64, dims, key.stride + first);
  w.set(dnn::kPaddingsBefore, dnn::kInt64, dims, key.padding + first);
  w.set(dnn::kPaddingsAfter, dnn::kInt64, dims, key.padding + first);
  w.set(dnn::kDilations, dnn::kInt64, dims, key.dilation + first);
  w.finalize("a convolution");
  return w;
}

constexpr int64_t kIds[] = {'x', 'w', 'y'};

struct Graph {
  Descriptor x, w, y, window, operation, graph;
};
Graph make_graph(dnn::Handle handle, const Key& key) {
  constexpr dnn::Kind kinds[] = {dnn::kForward, dnn::kGradInput, dnn::kGradWeight};
  constexpr dnn::Attribute firsts[] = {dnn::kForwardAlpha, dnn::kGradInputAlpha,
                                       dnn::kGradWeightAlpha};
  Graph g{tensor(key, kIds[0], key.batch, key.in_channels, key.in, key.x_aligned),
          tensor(key, kIds[1], key.out_channels, key.in_channels / key.groups, key.kernel,
                 key.w_aligned),
          tensor(key, kIds[2], key.batch, key.out_channels, key.out, key.y_aligned),
          window(key),
          Descriptor(kinds[key.pass]),
          Descriptor(dnn::kGraph)};
  const auto attribute = [&](int i) { return static_cast<dnn::Attribute>(firsts[key.pass] + i); };
  const double scales[] = {1, 0};  // alpha, beta
  const float narrow[] = {1, 0};
  for (int i = 0; i < 2; ++i) {
    if (static_cast<DType>(key.dtype) == DType::Float64)
      g.operation.set(attribute(i), dnn::kDouble, 1, &scales[i]);
    else g.operation.set(attribute(i), dnn::kFloat, 1, &narrow[i]);
  }
  g.operation.set(attribute(2), g.window);
  g.operation.set(attribute(3), g.w);
  g.operation.set(attribute(4), g.x);
  g.operation.set(attribute(5), g.y);
  g.operation.finalize("an operation");
  g.graph.set(dnn::kGraphHandle, handle);
  g.graph.set(dnn::kGraphOperations, g.operation);
  g.graph.finalize("a graph");
  return g;
}

// ---- the choice of an engine ----

bool is_acceptable(const std::vector<int>& notes, const Key& key) {
  const auto has = [&](dnn::Note note) { return std::ranges::find(notes, note) != notes.end(); };
  if (has(dnn::kNondeterministic)) return false;
  if (static_cast<DType>(key.dtype) != DType::Float32) return true;
  return !has(dnn::kConvertsDown) && (key.tf32 || !has(dnn::kTensorCores));
}

// The engines for one convolution in the order of cuDNN's liking, and the first of them that works.
class Choice {
 public:
  Choice(dnn::Handle handle, const Key& key) : handle_(handle), key_(key) {
    try {
      graph_ = make_graph(handle, key);
    } catch (const Refused& r) {
      report(r.why);
      asked_ = std::size(kHeuristics);
    }
  }

  bool run(const Convolution& c) {
    while (plan_ || find_plan()) {
      try {
        execute(c);
        return true;
      } catch (const Refused& r) {
        report(r.why);
      } catch (const DeviceOutOfMemory& e) {
        report(e.what());
      }
      plan_ = {};
    }
    return false;
  }

 private:
  static constexpr dnn::Heuristic kHeuristics[] = {dnn::kByDecisionTree, dnn::kFallback};

  void report(const std::string& what) const {
    if (reports_libraries()) report_library(described(key_) + what);
  }

  // The candidates of the next heuristic; false after the last one.
  bool ask() {
    if (asked_ == std::size(kHeuristics)) return false;
    const dnn::Heuristic wanted = kHeuristics[asked_++];
    candidates_.clear();
    next_ = 0;
    try {
      Descriptor heuristic(dnn::kHeuristic);
      heuristic.set(dnn::kHeuristicGraph, graph_.graph);
      heuristic.set(dnn::kHeuristicKind, dnn::kHeuristicMode, 1, &wanted);
      heuristic.finalize("a heuristic");
      const int64_t count = heuristic.count_descriptors(dnn::kHeuristicResults);
      if (count > 0)
        candidates_ = heuristic.get_descriptors(dnn::kHeuristicResults, dnn::kConfig, count);
    } catch (const Refused& r) {
      report(r.why);
    }
    return true;
  }

  bool find_plan() {
    do {
      while (next_ < candidates_.size()) {
        try {
          if (try_candidate(candidates_[next_++])) return true;
        } catch (const Refused& r) {
          report(r.why);
        }
      }
    } while (ask());
    report("no engine, so that taeda's own kernel computes it");
    return false;
  }

  bool try_candidate(const Descriptor& config) {
    const std::vector<Descriptor> engine =
        config.get_descriptors(dnn::kConfigEngine, dnn::kEngine, 1);
    if (engine.empty() || !is_acceptable(engine[0].get_notes(), key_)) {
      report("a candidate is not exact enough, or depends on timing");
      return false;
    }
    Descriptor plan(dnn::kPlan);
    plan.set(dnn::kPlanHandle, handle_);
    plan.set(dnn::kPlanConfig, config);
    plan.finalize("a plan");
    workspace_ = plan.get_int64(dnn::kPlanWorkspace);
    if (workspace_ > kMostWorkspace) {
      report(str("a candidate needs a workspace of ", workspace_, " bytes"));
      return false;
    }
    plan_ = std::move(plan);
    report(str("candidate ", next_, " of ", candidates_.size(), " of heuristic ", asked_,
               ", workspace ", workspace_));
    return true;
  }

  void execute(const Convolution& c) {
    std::optional<Workspace> workspace;
    if (workspace_ > 0) workspace.emplace(static_cast<size_t>(workspace_));
    const void* const scratch = workspace ? workspace->as<void>() : nullptr;
    const void* const pointers[] = {c.x, c.w, c.y};
    Descriptor arguments(dnn::kArguments);
    arguments.set(dnn::kArgumentIds, dnn::kInt64, 3, kIds);
    arguments.set(dnn::kArgumentPointers, dnn::kPointer, 3, pointers);
    arguments.set(dnn::kArgumentWorkspace, dnn::kPointer, 1, &scratch);
    arguments.finalize("arguments");
    dnn::succeed(dnn::library()->execute(handle_, plan_.get(), arguments.get()), "a convolution");
  }

  dnn::Handle handle_;
  Key key_;
  Graph graph_;
  size_t asked_ = 0, next_ = 0;  // of the heuristics, and of the candidates of the last one
  std::vector<Descriptor> candidates_;
  Descriptor plan_;
  int64_t workspace_ = 0;
};

// This thread's handle is made first, so that it is destroyed last.
Choice& choice_for(dnn::Handle handle, const Key& key) {
  constexpr size_t most = 1024;
  static thread_local std::unordered_map<Key, Choice, KeyHash> choices;
  auto known = choices.find(key);
  if (known == choices.end()) {
    if (choices.size() >= most) choices.clear();
    known = choices.try_emplace(key, handle, key).first;
  }
  return known->second;
}

// Indices of larger tensors are more than some engines' integers hold.
bool is_too_large(const ConvShape& s) {
  const auto volume = [](const int64_t (&v)[3]) { return v[0] * v[1] * v[2]; };
  return std::max({s.batch * s.in_channels * volume(s.in), s.batch * s.out_channels * volume(s.out),
                   s.out_channels * (s.in_channels / s.groups) * volume(s.kernel)}) > INT32_MAX;
}

}  // namespace

void use_cudnn(bool used) { is_used = used; }
void allow_conv_tf32(bool allowed) { tf32_allowed = allowed; }
size_t cudnn_version() { return dnn::library() ? dnn::library()->version() : 0; }

bool convolve_by_cudnn(const Convolution& c) {
  if (!is_used || is_too_large(c.shape) || !dnn::library()) return false;
  const int device = used_device().index;
  try {
    const dnn::Handle handle = dnn::handle_of(device);
    dnn::succeed(dnn::library()->set_stream(handle, current_stream(device)), "setting the stream");
    return choice_for(handle, key_of(c, device)).run(c);
  } catch (const Refused& r) {
    report_library("cuDNN: " + r.why);
    return false;
  }
}

}  // namespace taeda::cuda
