#include <algorithm>
#include <atomic>
#include <charconv>

#include "base/device.h"
#include "base/device_runtime.h"
#include "base/dims.h"
#include "base/dtype.h"
#include "base/unavailable.h"
#include "base/warn.h"

namespace taeda {

std::atomic<void (*)(const char*)> warning_handler = nullptr;
std::atomic<bool> warn_always = false;

const DTypeInfo kDTypeInfo[kNumDTypes] = {
    {"bool", "Bool", 1, false, false, false},
    {"uint8", "Byte", 1, false, false, false},
    {"int8", "Char", 1, false, false, true},
    {"int16", "Short", 2, false, false, true},
    {"int32", "Int", 4, false, false, true},
    {"int64", "Long", 8, false, false, true},
    {"float16", "Half", 2, true, false, true},
    {"bfloat16", "BFloat16", 2, true, false, true},
    {"float32", "Float", 4, true, false, true},
    {"float64", "Double", 8, true, false, true},
    {"complex64", "ComplexFloat", 8, false, true, true},
    {"complex128", "ComplexDouble", 16, false, true, true},
    {"complex32", "ComplexHalf", 4, false, true, true},
    {"uint16", "UInt16", 2, false, false, false},
    {"uint32", "UInt32", 4, false, false, false},
    {"uint64", "UInt64", 8, false, false, false},
    {"float8_e5m2", "Float8_e5m2", 1, true, false, true},
    {"float8_e4m3fn", "Float8_e4m3fn", 1, true, false, true},
    {"float8_e5m2fnuz", "Float8_e5m2fnuz", 1, true, false, true},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz", 1, true, false, true},
    {"float8_e8m0fnu", "Float8_e8m0fnu", 1, true, false, false},
};

DType to_real(DType d) {
  if (d == DType::Complex32) return DType::Float16;
  if (d == DType::Complex64) return DType::Float32;
  if (d == DType::Complex128) return DType::Float64;
  return d;
}

DType to_complex(DType d) {
  if (d == DType::Float16 || d == DType::Complex32) return DType::Complex32;
  if (d == DType::Float64 || d == DType::Complex128) return DType::Complex128;
  return DType::Complex64;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (std::max(a, b) > DType::Complex32) {
    check(!is_float8(a) && !is_float8(b),
          "Promotion for Float8 Types is not supported, attempted to promote ", a, " and ", b);
    if (is_floating(a)) return a;
    check(is_floating(b),
          "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", a,
          " and ", b);
    return b;
  }
  if (a > b) std::swap(a, b);
  if (b == DType::Complex32) {
    if (is_integral(a) || a == DType::Float16) return b;
    b = std::max(a, DType::Complex64);
  }
  if (is_complex(b)) {
    return b == DType::Complex64 && a == DType::Float64 ? DType::Complex128 : b;
  }
  if (is_floating(b)) {
    return b == DType::BFloat16 && a == DType::Float16 ? DType::Float32 : b;
  }
  // Integers: uint8 with a signed type needs the next wider signed type.
  if (a == DType::UInt8) return b == DType::Int8 ? DType::Int16 : b;
  return b;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to)) return false;
  return from == DType::Bool || to != DType::Bool;
}

std::ostream& operator<<(std::ostream& s, DType d) { return s << info(d).scalar; }

namespace {
std::atomic<DType> g_default_dtype{DType::Float32};
}
DType default_dtype() { return g_default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType d) {
  check<TypeError>(is_floating(d) && !is_storage_only(d),
                   "set_default_dtype(): only floating-point types are supported as the "
                   "default type, got ",
                   info(d).name);
  g_default_dtype.store(d, std::memory_order_relaxed);
}

void unsupported_dtype(const char* what, DType d) {
  fail<NotImplemented>("\"", what, "\" not implemented for '", d, "'");
}

std::string DimsText::text() const {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) s += (i ? ", " : "") + std::to_string(dims[i]);
  return s + "]";
}
std::ostream& operator<<(std::ostream& s, DimsText d) { return s << d.text(); }

namespace {
// Names are never freed: views of them are handed out.
std::atomic<const std::string*> private_device_name = new std::string("privateuseone");
}  // namespace

std::string_view device_type_name(DeviceType t) {
  static constexpr std::string_view names[] = {"cpu", "cuda", "meta", "mps",
                                               "xpu", "hpu",  "xla",  "mtia"};
  if (t == DeviceType::PrivateUse1) return *private_device_name.load(std::memory_order_acquire);
  return names[static_cast<size_t>(t)];
}

void set_private_device_name(std::string_view name) {
  check<ValueError>(
      !name.empty() &&
          name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos,
      "a device's name consists of lower-case letters, digits and '_', got '", name, "'");
  for (int t = 0; t < static_cast<int>(DeviceType::PrivateUse1); ++t)
    check<ValueError>(name != device_type_name(static_cast<DeviceType>(t)), "a device named '",
                      name, "' exists already");
  private_device_name = new std::string(name);
}

std::string to_string(Device d) {
  std::string s(device_type_name(d.type));
  return d.index >= 0 ? s + ":" + std::to_string(d.index) : s;
}
std::ostream& operator<<(std::ostream& s, Device d) { return s << to_string(d); }

Device parse_device(std::string_view text) {
  std::string_view type = text.substr(0, text.find(':'));
  Device d;
  int known = 0;
  while (known < kNumDeviceTypes && device_type_name(static_cast<DeviceType>(known)) != type)
    ++known;
  check(known < kNumDeviceTypes,
        "device(): Expected one of cpu, cuda, meta, mps, xpu, hpu, xla, mtia device type at start "
        "of device string: ",
        text);
  d.type = static_cast<DeviceType>(known);
  if (type.size() < text.size()) {
    std::string_view digits = text.substr(type.size() + 1);
    int value = -1;
    auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    bool leading_zero = digits.size() > 1 && digits[0] == '0';
    check(ec == std::errc() && end == digits.data() + digits.size() && value >= 0 && value < 128 &&
              !leading_zero,
          "device(): Invalid device string: '", text, "'");
    d.index = static_cast<int8_t>(value);
  }
  return d;
}

Device with_current_index(Device d) {
  const DeviceRuntime* runtime = device_runtime(d.type);
  d.index = static_cast<int8_t>(runtime && runtime->current ? runtime->current() : 0);
  return d;
}

void require_registered(Device d) {
  if (d.type == DeviceType::CUDA && !device_runtime(d.type)) {
    if (const auto load = cuda_loader.load()) load();
  }
  if (const DeviceRuntime* runtime = device_runtime(d.type)) {
    const int count = runtime->count();
    check(d.index < count || count == 0, "device '", d, "' was asked for, but there are ", count,
          " devices of its kind");
    return;  // of no devices, the runtime knows why
  }
  std::string kind(device_type_name(d.type));
  for (char& c : kind) c = 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const std::string message =
      "device '" + to_string(d) + "' was asked for, but this build of taeda has no " + kind +
      " support" + (d.type == DeviceType::CUDA ? " without the package taeda-cuda" : "") +
      "; use device='cpu'";
  if (d.type == DeviceType::MPS || d.type == DeviceType::HPU || d.type == DeviceType::XLA)
    fail(message);
  fail<Unavailable>(message);
}

}  // namespace taeda
