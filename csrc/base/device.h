// Where a tensor lives: cpu, meta (shapes without data), cuda where its library is installed, or a
// device that a library adds (privateuse1, under a name of its own). The other types exist only so
// that programs can name and compare them; no build has tensors there.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace taeda {

enum class DeviceType : uint8_t { CPU, CUDA, Meta, MPS, XPU, HPU, XLA, MTIA, PrivateUse1 };
inline constexpr int kNumDeviceTypes = 9;

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: none given
  bool operator==(const Device&) const = default;
};

Device parse_device(std::string_view text);  // "cpu", "cuda:1"; RuntimeError otherwise
std::string to_string(Device d);
std::ostream& operator<<(std::ostream& s, Device d);
std::string_view device_type_name(DeviceType t);
// The name of PrivateUse1, "privateuseone" until it is set. Lower-case letters, digits and `_`;
// ValueError otherwise, or where another type has it.
void set_private_device_name(std::string_view name);
// The types of device that every build has, which have no index.
inline bool is_built_in(Device d) {
  return d.type == DeviceType::CPU || d.type == DeviceType::Meta;
}
// Throws where tensors cannot be made on `d` in this build.
void require_registered(Device d);
inline void require_available(Device d) {
  if (!is_built_in(d)) require_registered(d);
}
// The device that tensors get: with the index of the current one where none is named, but for cpu
// and meta.
Device with_current_index(Device d);
inline Device with_index(Device d) {
  return d.index < 0 && !is_built_in(d) ? with_current_index(d) : d;
}

}  // namespace taeda
