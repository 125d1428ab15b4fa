// NCCL, where NVIDIA's package nvidia-nccl-cu13 is installed: what
// python/taeda/distributed/_nccl.py calls, by ctypes. Operations are begun on a stream and go on
// beside the host.
#include <string>

#include "kernels/cuda/runtime/api.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/libraries.h"

namespace taeda::cuda {
namespace {

// ---- the library: what is used of nccl.h (version 2) ----
constexpr const char* kLibrary = "libnccl.so.2";

using Communicator = struct OpaqueCommunicator*;
enum NcclResult : int { kWell = 0, kInProgress = 7 };
struct Id {
  char bytes[128];
};

struct Library {
  int (*version)(int*);
  int (*make_id)(Id*);
  int (*init)(Communicator*, int size, Id, int rank);
  int (*destroy)(Communicator), (*abort)(Communicator);
  int (*async_error)(Communicator, int* result);
  const char* (*error_text)(int result);
  const char* (*last_error)(Communicator);
  int (*group_start)(), (*group_end)();
  int (*all_reduce)(const void* from, void* to, size_t count, int type, int op, Communicator,
                    StreamHandle);
  int (*broadcast)(const void* from, void* to, size_t count, int type, int root, Communicator,
                   StreamHandle);
  int (*reduce)(const void* from, void* to, size_t count, int type, int op, int root, Communicator,
                StreamHandle);
  int (*all_gather)(const void* from, void* to, size_t sent, int type, Communicator, StreamHandle);
  int (*reduce_scatter)(const void* from, void* to, size_t received, int type, int op, Communicator,
                        StreamHandle);
  int (*send)(const void* from, size_t count, int type, int peer, Communicator, StreamHandle);
  int (*receive)(void* to, size_t count, int type, int peer, Communicator, StreamHandle);
};

// Null where it is not installed.
const Library* found_library() {
  static const auto found = bind_library<Library>(kLibrary, [](Library& l, auto find) {
    find(l.version, "ncclGetVersion");
    find(l.make_id, "ncclGetUniqueId");
    find(l.init, "ncclCommInitRank");
    find(l.destroy, "ncclCommDestroy");
    find(l.abort, "ncclCommAbort");
    find(l.async_error, "ncclCommGetAsyncError");
    find(l.error_text, "ncclGetErrorString");
    find(l.last_error, "ncclGetLastError");
    find(l.group_start, "ncclGroupStart");
    find(l.group_end, "ncclGroupEnd");
    find(l.all_reduce, "ncclAllReduce");
    find(l.broadcast, "ncclBroadcast");
    find(l.reduce, "ncclReduce");
    find(l.all_gather, "ncclAllGather");
    find(l.reduce_scatter, "ncclReduceScatter");
    find(l.send, "ncclSend");
    find(l.receive, "ncclRecv");
  });
  return found ? &*found : nullptr;
}

const Library& library() {
  const Library* found = found_library();
  check(found, "nccl: ", kLibrary, " is not installed");
  return *found;
}

// What the library says of a result, and of what led to it.
std::string text_of(int result, Communicator communicator) {
  std::string text = library().error_text(result);
  const char* details = library().last_error(communicator);
  if (details && *details) text += std::string(": ") + details;
  return text;
}

void succeed_nccl(int result, const char* what, Communicator communicator = nullptr) {
  check(result == kWell || result == kInProgress, "nccl: ", what,
        " failed: ", result == kWell ? "" : text_of(result, communicator));
}

}  // namespace
}  // namespace taeda::cuda

using namespace taeda::cuda;

#pragma GCC visibility push(default)
extern "C" {

// Such as 22703; 0 where it is not installed.
int taeda_cuda_nccl_version() {
  int version = 0;
  const Library* l = found_library();
  return l && l->version(&version) == kWell ? version : 0;
}

// ---- communicators: one for each process of a group ----
// `id`: 128 bytes that one process makes and all have.
int taeda_cuda_nccl_make_id(char* id) {
  return guarded(
      [=] { succeed_nccl(library().make_id(reinterpret_cast<Id*>(id)), "making an id"); });
}
int taeda_cuda_nccl_init(int index, int size, const char* id, int rank, Communicator* made) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().init(made, size, *reinterpret_cast<const Id*>(id), rank),
                 "making a communicator");
  });
}
int taeda_cuda_nccl_destroy(int index, Communicator communicator) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().destroy(communicator), "destroying a communicator");
  });
}
// Ends what is under way, in any state that it is in.
int taeda_cuda_nccl_abort(int index, Communicator communicator) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().abort(communicator), "aborting a communicator");
  });
}
// What has gone wrong beside the host, as text of at most `room` bytes; empty where all is well.
int taeda_cuda_nccl_what_failed(Communicator communicator, char* text, size_t room) {
  return guarded([=] {
    int result = kWell;
    succeed_nccl(library().async_error(communicator, &result), "asking about a communicator");
    const bool well = result == kWell || result == kInProgress;
    copy_text(well ? std::string() : text_of(result, communicator), text, room);
  });
}

// ---- operations; those between group_start and group_end begin together ----
int taeda_cuda_nccl_group_start() {
  return guarded([] { succeed_nccl(library().group_start(), "beginning a group"); });
}
int taeda_cuda_nccl_group_end() {
  return guarded([] { succeed_nccl(library().group_end(), "a group of operations"); });
}
int taeda_cuda_nccl_all_reduce(int index, const void* from, void* to, size_t count, int type,
                               int op, Communicator c, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().all_reduce(from, to, count, type, op, c, stream), "all_reduce", c);
  });
}
int taeda_cuda_nccl_broadcast(int index, const void* from, void* to, size_t count, int type,
                              int root, Communicator c, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().broadcast(from, to, count, type, root, c, stream), "broadcast", c);
  });
}
int taeda_cuda_nccl_reduce(int index, const void* from, void* to, size_t count, int type, int op,
                           int root, Communicator c, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().reduce(from, to, count, type, op, root, c, stream), "reduce", c);
  });
}
int taeda_cuda_nccl_all_gather(int index, const void* from, void* to, size_t sent, int type,
                               Communicator c, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().all_gather(from, to, sent, type, c, stream), "all_gather", c);
  });
}
int taeda_cuda_nccl_reduce_scatter(int index, const void* from, void* to, size_t received, int type,
                                   int op, Communicator c, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().reduce_scatter(from, to, received, type, op, c, stream),
                 "reduce_scatter", c);
  });
}
int taeda_cuda_nccl_send(int index, const void* from, size_t count, int type, int peer,
                         Communicator c, StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().send(from, count, type, peer, c, stream), "send", c);
  });
}
int taeda_cuda_nccl_receive(int index, void* to, size_t count, int type, int peer, Communicator c,
                            StreamHandle stream) {
  return guarded([=] {
    use_device(index);
    succeed_nccl(library().receive(to, count, type, peer, c, stream), "receive", c);
  });
}

}  // extern "C"
#pragma GCC visibility pop
