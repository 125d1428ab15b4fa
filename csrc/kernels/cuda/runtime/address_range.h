// A range of a device's addresses, to which memory is given and taken from bit by bit: it grows
// where it is, so that what is next to each other stays one segment.
#pragma once

#include <memory>
#include <span>

#include "kernels/cuda/runtime/driver.h"

namespace taeda::cuda {

class AddressRange {
 public:
  // `size` bytes of addresses without memory, which comes in granules of `granule` bytes.
  AddressRange(int device, size_t size, size_t granule);
  ~AddressRange();  // nothing is mapped any more
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  char* begin() const { return reinterpret_cast<char*>(begin_); }
  size_t size() const { return size_; }
  size_t granule() const { return granule_; }

  // Whole granules. `readers` are other devices that may use the memory, too. False where the
  // device is out of memory; nothing is mapped then.
  bool map(char* at, size_t size, std::span<const int> readers);
  void unmap(char* at, size_t size);
  void allow(char* at, size_t size, int device);

 private:
  int map_granules(DevicePointer at, size_t size, size_t* mapped);

  int device_;
  size_t size_, granule_;
  DevicePointer begin_ = 0;
};

}  // namespace taeda::cuda
