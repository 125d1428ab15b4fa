// The devices, and what each thread does with them: its current device, and on each device its
// current stream.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cuda/runtime/driver.h"

namespace taeda::cuda {

class Allocator;
// Memory that is kept apart from other memory, for graphs and for who asks for it. 0: the common.
using PoolId = uint64_t;

// What kernels report without stopping: an index out of range, written to memory that the host
// reads after it has waited. The kernel goes on as if the index had been the nearest one in range.
struct Fault {
  int64_t found;  // not 0 where there was one
  int64_t index, size;
};

struct DeviceState {
  int index, handle;
  ContextHandle context;
  int multiprocessors, threads_per_multiprocessor;
  int capability;  // 90: sm_90
  Fault* fault;    // of pinned memory
  const std::unique_ptr<Allocator> its_allocator;
  Allocator& allocator;

  explicit DeviceState(int i);
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;
  ~DeviceState();
};

int device_count();  // 0 where there is no driver
// Error for an index that is out of range.
DeviceState& device(int index);
// The same, with its context current in this thread. Kernels and their memory are on the device
// that was used last.
DeviceState& use_device(int index);
DeviceState& used_device();

// While one lives, a device is used; afterwards the one before.
class OnDevice {
 public:
  explicit OnDevice(int index);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();

 private:
  int before_;
};

// The device that "cuda" without an index means in this thread.
int current_device();
void set_current_device(int index);
StreamHandle current_stream(int device);
void set_current_stream(int device, StreamHandle stream);
// Where this thread's memory on a device comes from.
PoolId current_pool(int device);
void set_current_pool(int device, PoolId pool);

// Lets kernels and copies on a device reach another one's memory directly, where the GPUs can.
void enable_peer_access(int device, int peer);

// Whether the work of the stream is recorded into a graph, instead of being done.
bool is_capturing(StreamHandle stream);
// While one lives, what this thread asks the driver for is no error of a graph that is recorded.
class BesideCapture {
 public:
  BesideCapture() { driver().exchange_capture_mode(&mode_); }
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;
  ~BesideCapture() { driver().exchange_capture_mode(&mode_); }

 private:
  int mode_ = kNoThread;
};

// Waits, and raises what kernels have reported.
void synchronize_stream(int device, StreamHandle stream);
void synchronize_device(int device);

// Memory on the used device and its current stream, for as long as this lives: what later kernels
// of the stream get is the same memory.
class Workspace {
 public:
  explicit Workspace(size_t nbytes);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  template <class T> T* as() const { return static_cast<T*>(data_); }

 private:
  DeviceState& state_;
  void* data_;
};

// Values that kernels have computed, after waiting for them; and host values for kernels.
void read_back(void* to, const void* from, size_t nbytes);
template <class T> T read_back(const T* from) {
  T value;
  read_back(&value, from, sizeof value);
  return value;
}
void send(void* to, const void* from, size_t nbytes);

}  // namespace taeda::cuda
