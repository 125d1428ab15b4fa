// libcudnn.so.9 for tests: graphs of one convolution, computed by definition on the stub of the
// driver. What is set with a wrong type or left out is refused.
//
// Of four engines, the first two are not to be chosen for float32: one converts operands down, one
// depends on timing. The third rounds operands of float32 to TF32, needs a workspace, and cannot
// compute float64. The last, a fallback, can do everything but dilations of more than 3, for which
// there is none.
#include <dlfcn.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/half.h"

namespace {

enum { kSuccess = 0, kBadParameter = 2000, kBadType = 2010, kNotSupported = 3000 };
enum { kConvolution = 1, kHeuristic = 4, kPlan = 5, kForward = 10, kWeight = 11, kInput = 12 };
enum { kTf32Engine = 2, kFallbackEngine = 3 };
constexpr int kDecisionTree = 3, kForwardAlpha = 700;
const std::vector<int> kNotes[] = {{0, 1}, {0, 4}, {0}, {}};

struct Descriptor;
using Part = std::shared_ptr<const Descriptor>;
struct Descriptor {
  int kind = 0;
  bool final = false;
  std::map<int, std::vector<int64_t>> numbers;
  std::map<int, double> scales;
  std::map<int, std::vector<Part>> parts;
  std::map<int, std::vector<void*>> pointers;

  int64_t number(int which) const { return numbers.at(which).at(0); }
  const Descriptor& part(int which) const { return *parts.at(which).at(0); }
};

// The type that an attribute has.
int type_of(int attribute) {
  static const std::map<int, int> types{{100, 1},  {101, 7},  {102, 3},  {103, 3},  {104, 3},
                                        {105, 3},  {106, 3},  {200, 8},  {201, 15}, {202, 15},
                                        {300, 15}, {400, 0},  {401, 15}, {402, 3},  {800, 0},
                                        {801, 15}, {900, 3},  {901, 1},  {902, 3},  {903, 3},
                                        {906, 3},  {1000, 3}, {1001, 6}, {1003, 6}, {1303, 11}};
  if (attribute >= kForwardAlpha && attribute < 718)
    return (attribute - kForwardAlpha) % 6 < 2 ? -1 : 15;
  const auto found = types.find(attribute);
  return found == types.end() ? -2 : found->second;
}

// ---- the convolution ----
struct Operand {
  int64_t type, id;
  std::vector<int64_t> sizes, strides;
  char* data = nullptr;

  explicit Operand(const Descriptor& t)
      : type(t.number(901)),
        id(t.number(906)),
        sizes(t.numbers.at(902)),
        strides(t.numbers.at(903)) {}
  char* at(const std::vector<int64_t>& index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    return data + offset * (type == 1 ? 8 : type == 0 ? 4 : 2);
  }
  double get(const std::vector<int64_t>& index, bool tf32) const {
    const char* p = at(index);
    if (type == 1) return *reinterpret_cast<const double*>(p);
    if (type == 2) return *reinterpret_cast<const taeda::Half*>(p);
    if (type == 9) return *reinterpret_cast<const taeda::BFloat16*>(p);
    const auto v = *reinterpret_cast<const float*>(p);
    return tf32 ? std::bit_cast<float>(std::bit_cast<uint32_t>(v) & 0xffffe000) : v;
  }
  void set(const std::vector<int64_t>& index, double v) const {
    char* p = at(index);
    if (type == 1) *reinterpret_cast<double*>(p) = v;
    else if (type == 0) *reinterpret_cast<float*>(p) = static_cast<float>(v);
    else if (type == 2) *reinterpret_cast<taeda::Half*>(p) = static_cast<float>(v);
    else *reinterpret_cast<taeda::BFloat16*>(p) = static_cast<float>(v);
  }
  void add(const std::vector<int64_t>& index, double v) const { set(index, get(index, false) + v); }
};

// f(index) for all indices within sizes.
template <class F> void each(const std::vector<int64_t>& sizes, F f) {
  std::vector<int64_t> index(sizes.size());
  for (;;) {
    f(index);
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

struct Work {
  Operand x, w, y;
  std::vector<int64_t> stride, padding, dilation;
  int kind;
  bool tf32;

  // w's taps that read x for y, by the definition of a convolution.
  void run() const {
    Operand to = kind == kForward ? y : kind == kInput ? x : w;
    each(to.sizes, [&](const auto& i) { to.set(i, 0); });
    const int64_t group_out = w.sizes[0] * w.sizes[1] / x.sizes[1];
    each(y.sizes, [&](const auto& out) {
      std::vector<int64_t> taps = w.sizes;
      taps[0] = 1;
      each(taps, [&](const auto& tap) {
        std::vector<int64_t> in = out, from = tap;
        from[0] = out[1];
        in[1] = out[1] / group_out * w.sizes[1] + tap[1];
        for (size_t d = 0; d < stride.size(); ++d) {
          in[d + 2] = out[d + 2] * stride[d] - padding[d] + tap[d + 2] * dilation[d];
          if (in[d + 2] < 0 || in[d + 2] >= x.sizes[d + 2]) return;
        }
        if (kind == kForward) y.add(out, x.get(in, tf32) * w.get(from, tf32));
        if (kind == kInput) x.add(in, y.get(out, tf32) * w.get(from, tf32));
        if (kind == kWeight) w.add(from, x.get(in, tf32) * y.get(out, tf32));
      });
    });
  }
};

int first_attribute(int kind) {
  return kForwardAlpha + (kind == kForward ? 0 : kind == kInput ? 6 : 12);
}

Work work_of(const Descriptor& operation, bool tf32) {
  const int first = first_attribute(operation.kind);
  const Descriptor& c = operation.part(first + 2);
  return {Operand(operation.part(first + 4)),
          Operand(operation.part(first + 3)),
          Operand(operation.part(first + 5)),
          c.numbers.at(103),
          c.numbers.at(105),
          c.numbers.at(102),
          operation.kind,
          tf32};
}

bool is_consistent(const Descriptor& operation) {
  const Work w = work_of(operation, false);
  const int first = first_attribute(operation.kind);
  const bool doubles = w.x.type == 1;
  if (operation.scales.at(first) != 1 || operation.scales.at(first + 1) != 0) return false;
  if (operation.part(first + 2).number(100) != (doubles ? 1 : 0)) return false;
  for (size_t d = 0; d < w.stride.size(); ++d) {
    const int64_t room = w.x.sizes[d + 2] + 2 * w.padding[d];
    const int64_t out = (room - (w.w.sizes[d + 2] - 1) * w.dilation[d] - 1) / w.stride[d] + 1;
    if (w.y.sizes[d + 2] != out) return false;
  }
  return w.x.sizes[0] == w.y.sizes[0] && w.w.sizes[0] == w.y.sizes[1];
}

const Descriptor& operation_of(const Descriptor& config) {
  return config.part(300).part(1300).part(801);
}

int finalize(Descriptor& d) {
  if (d.kind == kForward || d.kind == kWeight || d.kind == kInput)
    return is_consistent(d) ? kSuccess : kBadParameter;
  if (d.kind == kPlan) {
    const int64_t engine = d.part(401).part(300).number(1301);
    const Work w = work_of(operation_of(d.part(401)), false);
    if (engine == kTf32Engine && w.x.type == 1) return kNotSupported;
    for (const int64_t v : w.dilation)
      if (v > 3) return kNotSupported;
    d.numbers[402] = {engine == kTf32Engine ? 1000 : 0};
  }
  return kSuccess;
}

std::vector<Descriptor> results_of(const Descriptor& heuristic) {
  std::vector<Descriptor> all;
  const bool best = heuristic.number(200) == kDecisionTree;
  for (int64_t i = best ? 0 : kFallbackEngine; i < (best ? kFallbackEngine : 4); ++i) {
    Descriptor engine, config;
    engine.kind = 2;
    engine.numbers[1301] = {i};
    engine.numbers[1303].assign(kNotes[i].begin(), kNotes[i].end());
    engine.parts[1300] = heuristic.parts.at(201);
    config.kind = 3;
    config.parts[300] = {std::make_shared<Descriptor>(engine)};
    all.push_back(config);
  }
  return all;
}

struct Handle {
  void* stream = nullptr;
};
void* driver(const char* name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name); }

}  // namespace

#define STUB(name, ...) extern "C" int name(__VA_ARGS__)

STUB(cudnnCreate, Handle** h) {
  *h = new Handle;
  return kSuccess;
}
STUB(cudnnDestroy, Handle* h) {
  delete h;
  return kSuccess;
}
STUB(cudnnSetStream, Handle* h, void* stream) {
  h->stream = stream;
  return kSuccess;
}
extern "C" size_t cudnnGetVersion() { return 90000; }
extern "C" const char* cudnnGetErrorString(int) { return "an error of the stub"; }
extern "C" void cudnnGetLastErrorString(char* to, size_t room) { std::memset(to, 0, room); }

STUB(cudnnBackendCreateDescriptor, int kind, Descriptor** d) {
  *d = new Descriptor;
  (*d)->kind = kind;
  return kSuccess;
}
STUB(cudnnBackendDestroyDescriptor, Descriptor* d) {
  delete d;
  return kSuccess;
}
STUB(cudnnBackendSetAttribute, Descriptor* d, int which, int type, int64_t n, const void* from) {
  if (const int right = type_of(which); right != type && !(right == -1 && (type == 4 || type == 5)))
    return kBadType;
  const auto all = [&]<class T>(T) {
    return std::vector<T>(static_cast<const T*>(from), static_cast<const T*>(from) + n);
  };
  if (type == 3) d->numbers[which] = all(int64_t{});
  else if (type == 4) d->scales[which] = all(float{}).at(0);
  else if (type == 5) d->scales[which] = all(double{}).at(0);
  else if (type == 6 || type == 0) d->pointers[which] = all(static_cast<void*>(nullptr));
  else if (type == 15) {
    d->parts[which].clear();
    for (const Descriptor* part : all(static_cast<Descriptor*>(nullptr))) {
      if (!part->final && part->kind != 3) return kBadParameter;
      d->parts[which].push_back(std::make_shared<Descriptor>(*part));
    }
  } else {
    const std::vector<int> values = all(int{});
    d->numbers[which].assign(values.begin(), values.end());
  }
  return kSuccess;
}
STUB(cudnnBackendGetAttribute, const Descriptor* d, int which, int type, int64_t room, int64_t* n,
     void* to) {
  if (type_of(which) != type) return kBadType;
  if (type == 15) {
    std::vector<Descriptor> all;
    if (d->kind == kHeuristic) all = results_of(*d);
    else
      for (const Part& part : d->parts.at(which)) all.push_back(*part);
    *n = static_cast<int64_t>(all.size());
    for (int64_t i = 0; i < *n && i < room; ++i)
      *static_cast<Descriptor**>(to)[i] = all[static_cast<size_t>(i)];
    return kSuccess;
  }
  const std::vector<int64_t>& all = d->numbers.at(which);
  *n = static_cast<int64_t>(all.size());
  for (int64_t i = 0; i < *n && i < room; ++i) {
    const int64_t v = all[static_cast<size_t>(i)];
    if (type == 3) static_cast<int64_t*>(to)[i] = v;
    else static_cast<int*>(to)[i] = static_cast<int>(v);
  }
  return kSuccess;
}
STUB(cudnnBackendFinalize, Descriptor* d) {
  const int status = finalize(*d);
  d->final = status == kSuccess;
  return status;
}
STUB(cudnnBackendExecute, Handle* h, const Descriptor* plan, const Descriptor* arguments) {
  const bool tf32 = plan->part(401).part(300).number(1301) == kTf32Engine;
  auto* work = new Work(work_of(operation_of(plan->part(401)), tf32));
  for (Operand* o : {&work->x, &work->w, &work->y}) {
    const auto& ids = arguments->numbers.at(1000);
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == o->id) o->data = static_cast<char*>(arguments->pointers.at(1001)[i]);
  }
  if (tf32 && !arguments->pointers.at(1003).at(0)) return kBadParameter;
  const auto run = [](void* data) {
    const std::unique_ptr<Work> owned(static_cast<Work*>(data));
    owned->run();
  };
  using Start = int (*)(void*, void (*)(void*), void*);
  return reinterpret_cast<Start>(driver("cuLaunchHostFunc"))(h->stream, run, work);
}
