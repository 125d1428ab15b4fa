// What is used of cuDNN 9 (cudnn_graph.h): descriptors, which are made of attributes, and of which
// a graph of operations and the plans that compute it consist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/runtime/driver.h"

namespace taeda::cuda::dnn {

// A call that has failed, which makes another way be taken.
struct Refused {
  std::string why;
};

using Handle = struct OpaqueHandle*;
using Raw = void*;  // a descriptor

enum Kind : int {
  kConvolution = 1,
  kEngine = 2,
  kConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kForward = 10,
  kGradWeight = 11,
  kGradInput = 12,
  kGraph = 15,
  kArguments = 16,
  kTensor = 17
};
enum Type : int {
  kHandle = 0,
  kDataType = 1,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNumericalNote = 11,
  kDescriptor = 15
};
enum Attribute : int {
  kComputeType = 100,
  kMode = 101,
  kDilations = 102,
  kStrides = 103,
  kPaddingsAfter = 104,
  kPaddingsBefore = 105,
  kSpatialDims = 106,
  kHeuristicKind = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kForwardAlpha = 700,  // then beta, the convolution, w, x, y, each one more
  kGradInputAlpha = 706,
  kGradWeightAlpha = 712,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorSizes = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kArgumentIds = 1000,
  kArgumentPointers = 1001,
  kArgumentWorkspace = 1003,
  kEngineNotes = 1303
};
enum DataType : int { kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kBFloat16 = 9 };
enum Heuristic : int { kFallback = 2, kByDecisionTree = 3 };
enum Note : int { kTensorCores = 0, kConvertsDown = 1, kNondeterministic = 4 };
constexpr int kCrossCorrelation = 1;

struct Library {
  int (*create)(Handle*);
  int (*destroy)(Handle);
  int (*set_stream)(Handle, StreamHandle);
  size_t (*version)();
  const char* (*status_name)(int);
  void (*last_error)(char*, size_t);
  int (*make)(Kind, Raw*);
  int (*drop)(Raw);
  int (*set)(Raw, Attribute, Type, int64_t count, const void*);
  int (*get)(Raw, Attribute, Type, int64_t room, int64_t* count, void*);
  int (*finalize)(Raw);
  int (*execute)(Handle, Raw plan, Raw arguments);
};

// Null where it is not installed.
const Library* library();

// Refused, with cuDNN's own words, unless the status is that of success.
void succeed(int status, const char* what);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(Kind kind);

  void set(Attribute which, Type type, int64_t count, const void* values);
  void set(Attribute which, int64_t value) { set(which, kInt64, 1, &value); }
  void set(Attribute which, const Descriptor& value) {
    const Raw raw = value.get();
    set(which, kDescriptor, 1, &raw);
  }
  void set(Attribute which, Handle value) { set(which, kHandle, 1, &value); }
  void finalize(const char* what);

  int64_t get_int64(Attribute which) const;
  std::vector<int> get_notes() const;
  // The descriptors that the attribute holds, at most `most`.
  std::vector<Descriptor> get_descriptors(Attribute which, Kind kind, int64_t most) const;
  int64_t count_descriptors(Attribute which) const;

  Raw get() const { return owned_.get(); }
  explicit operator bool() const { return owned_ != nullptr; }

 private:
  struct Drop {
    void operator()(Raw raw) const { library()->drop(raw); }
  };
  std::unique_ptr<void, Drop> owned_;
};

// Of this thread, on the used device, which is `device`.
Handle handle_of(int device);

}  // namespace taeda::cuda::dnn
