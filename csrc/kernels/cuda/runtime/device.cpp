#include "kernels/cuda/runtime/device.h"

#include <array>
#include <atomic>

#include "kernels/cuda/runtime/allocator.h"
#include "kernels/cuda/runtime/sync_debug.h"

namespace taeda::cuda {
namespace {

constexpr int kMostDevices = 64;

struct ThreadState {
  int current = 0;
  int used = -1;  // whose context is current
  std::array<StreamHandle, kMostDevices> streams{};
  std::array<PoolId, kMostDevices> pools{};
};
thread_local ThreadState thread;

int attribute(int handle, Attribute what) {
  int value = 0;
  succeed(driver().device_attribute(&value, what, handle), "asking for a device's attribute");
  return value;
}

void raise_fault(Fault& fault) {
  if (!fault.found) return;
  const Fault f = fault;
  fault = {};
  fail<IndexError>("cuda: an operation before this one was given the index ", f.index,
                   ", which is out of bounds for size ", f.size);
}

}  // namespace

DeviceState::DeviceState(int i)
    : index(i),
      its_allocator(std::make_unique<Allocator>(i)),
      allocator(*its_allocator) {
  const Driver& d = driver();
  succeed(d.device_get(&handle, i), "opening a device");
  succeed(d.retain_context(&context, handle), "opening a device");
  succeed(d.set_context(context), "opening a device");
  multiprocessors = attribute(handle, kMultiprocessors);
  threads_per_multiprocessor = attribute(handle, kMostThreadsPerMultiprocessor);
  capability = 10 * attribute(handle, kCapabilityMajor) + attribute(handle, kCapabilityMinor);
  constexpr unsigned portable_and_mapped = 3;
  void* memory;
  succeed(d.allocate_host(&memory, sizeof(Fault), portable_and_mapped), "opening a device");
  fault = new (memory) Fault{};
}
DeviceState::~DeviceState() = default;

int device_count() {
  if (!why_no_driver().empty()) return 0;
  int n = 0;
  succeed(driver().device_count(&n), "counting devices");
  return n < kMostDevices ? n : kMostDevices;
}

DeviceState& device(int index) {
  // Opened once, and never closed: tensors die later than static objects.
  static std::array<std::atomic<DeviceState*>, kMostDevices> opened{};
  static std::mutex mutex;
  check(index >= 0 && index < kMostDevices, "cuda: there is no device ", index);
  auto& place = opened[static_cast<size_t>(index)];
  if (DeviceState* found = place.load(std::memory_order_acquire)) [[likely]]
    return *found;
  const std::lock_guard lock(mutex);
  if (!place) {
    driver();
    const int count = device_count();
    check(index < count, "cuda: there is no device ", index, ", but ", count, " in all");
    thread.used = -1;
    place = std::make_unique<DeviceState>(index).release();
  }
  return *place;
}

DeviceState& use_device(int index) {
  DeviceState& state = device(index);
  const Driver& d = driver();
  if (thread.used != index) {
    succeed(d.set_context(state.context), "choosing a device");
    thread.used = index;
  }
  return state;
}

OnDevice::OnDevice(int index) : before_(thread.used) { use_device(index); }
OnDevice::~OnDevice() {
  if (before_ == thread.used) return;
  if (before_ < 0) thread.used = -1;
  else if (driver().set_context(device(before_).context) == kSuccess) thread.used = before_;
}

DeviceState& used_device() { return use_device(thread.used < 0 ? thread.current : thread.used); }

int current_device() { return thread.current; }
void set_current_device(int index) {
  use_device(index);
  thread.current = index;
}

StreamHandle current_stream(int index) { return thread.streams[static_cast<size_t>(index)]; }
void set_current_stream(int index, StreamHandle stream) {
  device(index);
  thread.streams[static_cast<size_t>(index)] = stream;
}

PoolId current_pool(int index) { return thread.pools[static_cast<size_t>(index)]; }
void set_current_pool(int index, PoolId pool) {
  device(index);
  thread.pools[static_cast<size_t>(index)] = pool;
}

void enable_peer_access(int index, int peer) {
  static std::array<std::atomic<bool>, kMostDevices * kMostDevices> tried{};
  if (index == peer || tried[static_cast<size_t>(index * kMostDevices + peer)].exchange(true))
    return;
  const Driver& d = driver();
  int can = 0;
  succeed(d.can_access_peer(&can, device(index).handle, device(peer).handle),
          "asking about peer access");
  if (!can) return;  // copies go by way of the host
  const OnDevice here(index);
  const int result = d.enable_peer_access(device(peer).context, 0);
  if (result != kPeerAccessAlreadyEnabled) succeed(result, "enabling peer access");
  device(peer).allocator.allow(index);  // what is mapped to addresses is shared one by one
}

bool is_capturing(StreamHandle stream) {
  int status = 0;
  succeed(driver().is_capturing(stream, &status), "asking about a stream");
  return status != 0;
}

void synchronize_stream(int index, StreamHandle stream) {
  DeviceState& state = use_device(index);
  succeed(driver().synchronize_stream(stream), "waiting for a stream");
  raise_fault(*state.fault);
}

void synchronize_device(int index) {
  DeviceState& state = use_device(index);
  succeed(driver().synchronize_context(), "waiting for a device");
  raise_fault(*state.fault);
}

Workspace::Workspace(size_t nbytes)
    : state_(used_device()),
      data_(state_.allocator.allocate(nbytes, current_stream(state_.index))) {}

Workspace::~Workspace() { state_.allocator.deallocate(data_); }

void read_back(void* to, const void* from, size_t nbytes) {
  report_wait();
  const int index = used_device().index;
  const StreamHandle stream = current_stream(index);
  succeed(driver().copy(reinterpret_cast<DevicePointer>(to), reinterpret_cast<DevicePointer>(from),
                        nbytes, stream),
          "copying to the host");
  synchronize_stream(index, stream);
}

void send(void* to, const void* from, size_t nbytes) {
  report_wait();
  const StreamHandle stream = current_stream(used_device().index);
  succeed(driver().copy(reinterpret_cast<DevicePointer>(to), reinterpret_cast<DevicePointer>(from),
                        nbytes, stream),
          "copying from the host");
  succeed(driver().synchronize_stream(stream), "copying from the host");
}

}  // namespace taeda::cuda
