#include "kernels/cuda/conv/cudnn_graph.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "kernels/cuda/runtime/libraries.h"

namespace taeda::cuda::dnn {

const Library* library() {
  static const auto found = bind_library<Library>("libcudnn.so.9", [](Library& l, auto find) {
    find(l.create, "cudnnCreate");
    find(l.destroy, "cudnnDestroy");
    find(l.set_stream, "cudnnSetStream");
    find(l.version, "cudnnGetVersion");
    find(l.status_name, "cudnnGetErrorString");
    find(l.last_error, "cudnnGetLastErrorString");
    find(l.make, "cudnnBackendCreateDescriptor");
    find(l.drop, "cudnnBackendDestroyDescriptor");
    find(l.set, "cudnnBackendSetAttribute");
    find(l.get, "cudnnBackendGetAttribute");
    find(l.finalize, "cudnnBackendFinalize");
    find(l.execute, "cudnnBackendExecute");
  });
  return found ? &*found : nullptr;
}

void succeed(int status, const char* what) {
  if (status == 0) [[likely]]
    return;
  char detail[512] = {};
  library()->last_error(detail, sizeof detail);
  throw Refused{str(what, ": status ", status, ", ", library()->status_name(status), " ", detail)};
}

Descriptor::Descriptor(Kind kind) {
  Raw raw = nullptr;
  succeed(library()->make(kind, &raw), "making a descriptor");
  owned_.reset(raw);
}

void Descriptor::set(Attribute which, Type type, int64_t count, const void* values) {
  const int status = library()->set(get(), which, type, count, values);
  if (status != 0) [[unlikely]]
    succeed(status, str("setting attribute ", int{which}).c_str());
}

void Descriptor::finalize(const char* what) { succeed(library()->finalize(get()), what); }

int64_t Descriptor::get_int64(Attribute which) const {
  int64_t value = 0, count = 0;
  succeed(library()->get(get(), which, kInt64, 1, &count, &value), "asking for a number");
  return value;
}

std::vector<int> Descriptor::get_notes() const {
  int64_t count = 0;
  std::vector<int> notes(32);
  const auto room = static_cast<int64_t>(notes.size());
  succeed(library()->get(get(), kEngineNotes, kNumericalNote, room, &count, notes.data()),
          "asking for an engine's notes");
  notes.resize(static_cast<size_t>(std::min(count, room)));
  return notes;
}

int64_t Descriptor::count_descriptors(Attribute which) const {
  int64_t count = 0;
  succeed(library()->get(get(), which, kDescriptor, 0, &count, nullptr), "counting descriptors");
  return count;
}

std::vector<Descriptor> Descriptor::get_descriptors(Attribute which, Kind kind,
                                                    int64_t most) const {
  std::vector<Descriptor> all;
  std::vector<Raw> raw;
  for (int64_t i = 0; i < most; ++i) {
    all.emplace_back(kind);
    raw.push_back(all.back().get());
  }
  int64_t count = 0;
  succeed(library()->get(get(), which, kDescriptor, most, &count, raw.data()),
          "asking for descriptors");
  all.resize(static_cast<size_t>(std::min(count, most)));
  return all;
}

Handle handle_of(int device) {
  struct Destroy {
    void operator()(Handle h) const { library()->destroy(h); }
  };
  static thread_local std::unordered_map<int, std::unique_ptr<OpaqueHandle, Destroy>> handles;
  auto& owned = handles[device];
  if (!owned) {
    Handle handle = nullptr;
    succeed(library()->create(&handle), "starting cuDNN");
    owned.reset(handle);
  }
  return owned.get();
}

}  // namespace taeda::cuda::dnn
