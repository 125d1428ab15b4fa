#include "python/extension_values.h"

#include <algorithm>
#include <functional>

namespace taeda::py {

static_assert(static_cast<int>(DType::Bool) == abi::kBool &&
              static_cast<int>(DType::Int64) == abi::kInt64 &&
              static_cast<int>(DType::Float16) == abi::kFloat16 &&
              static_cast<int>(DType::Complex128) == abi::kComplex128);
static_assert(static_cast<int>(DeviceType::CPU) == abi::kCPU &&
              static_cast<int>(DeviceType::CUDA) == abi::kCUDA &&
              static_cast<int>(DeviceType::Meta) == abi::kMeta);

DType dtype_from(int64_t d) {
  check<ValueError>(d >= 0 && d < kNumDTypes, "an extension gave an unknown dtype, ", d);
  return static_cast<DType>(d);
}
Device device_from(int64_t type, int64_t index) {
  check<ValueError>(type >= 0 && type <= abi::kMeta && index >= -1 && index < 128,
                    "an extension gave an unknown device");
  Device d{static_cast<DeviceType>(type), static_cast<int8_t>(index)};
  require_available(d);
  return d;
}

abi::Value number(const Scalar& s) {
  abi::Value a{};
  if (s.is_complex() || s.is_float()) {
    const cdouble v = s.to<cdouble>();
    a.kind = s.is_complex() ? abi::kComplex : abi::kFloat;
    a.number[0] = v.real(), a.number[1] = v.imag();
  } else {
    a.kind = s.is_bool() ? abi::kTrue : abi::kInt;
    a.integer = s.to_int();
  }
  return a;
}

const abi::Value* AbiValues::show(std::span<const Value> values) {
  for (const Value& v : values) shown_.push_back(one(v));
  return shown_.data();
}

abi::Value AbiValues::one(const Value& v) {
  abi::Value a{};
  if (auto* t = std::get_if<Tensor>(&v)) {
    a.kind = t->defined() ? abi::kTensor : abi::kNone;
    a.tensor = handle(*t);
  } else if (auto* list = std::get_if<TensorList>(&v)) {
    auto& handles = lists_.emplace_back();
    for (const Tensor& t : *list) handles.push_back(handle(t));
    a.kind = abi::kTensors;
    a.count = static_cast<int64_t>(handles.size());
    a.tensors = handles.data();
  } else if (auto* s = std::get_if<Scalar>(&v)) {
    a = number(*s);
  } else if (auto* i = std::get_if<int64_t>(&v)) {
    a = number(Scalar(*i));
  } else if (auto* d = std::get_if<double>(&v)) {
    a = number(Scalar(*d));
  } else if (auto* b = std::get_if<bool>(&v)) {
    a = number(Scalar(*b));
  } else if (auto* dims = std::get_if<Dims>(&v)) {
    a.kind = abi::kInts;
    a.count = static_cast<int64_t>(dims->size());
    a.integers = dims->data();
  } else if (auto* floats = std::get_if<std::vector<double>>(&v)) {
    a.kind = abi::kFloats;
    a.count = static_cast<int64_t>(floats->size());
    a.floats = floats->data();
  } else if (auto* text = std::get_if<std::string>(&v)) {
    a.kind = abi::kText;
    a.count = static_cast<int64_t>(text->size());
    a.text = text->data();
  } else if (auto* dtype = std::get_if<DType>(&v)) {
    a.kind = abi::kDType;
    a.integer = static_cast<int64_t>(*dtype);
  } else if (auto* device = std::get_if<Device>(&v)) {
    a.kind = abi::kDevice;
    a.integer = static_cast<int64_t>(device->type);
    a.count = device->index;
  }
  return a;
}

Scalar scalar_from(const abi::Value& a) {
  if (a.kind == abi::kTrue) return Scalar(a.integer != 0);
  if (a.kind == abi::kInt) return Scalar(a.integer);
  if (a.kind == abi::kFloat) return Scalar(a.number[0]);
  return Scalar(cdouble(a.number[0], a.number[1]));
}

TensorList list_from(const abi::Value& a) {
  TensorList list;
  for (int64_t i = 0; i < a.count; ++i) list.push_back(tensor(a.tensors[i]));
  return list;
}

// Converts an extension's value for an argument of an op. False if its kind does not match.
bool from_abi(const abi::Value& a, const Arg& arg, Value* v) {
  if (a.kind == abi::kNone) {
    *v = {};
    return arg.optional;
  }
  switch (arg.kind) {
    case ArgKind::Tensor:
      if (a.kind == abi::kTensor) *v = tensor(a.tensor);
      else if (is_number(a.kind)) *v = Tensor(scalar_from(a));
      else return false;
      return true;
    case ArgKind::TensorList: {
      if (a.kind != abi::kTensors) return false;
      TensorList list = list_from(a);
      const bool whole = std::all_of(list.begin(), list.end(), std::mem_fn(&Tensor::defined));
      *v = std::move(list);
      return whole || arg.allows_none_items;
    }
    case ArgKind::Scalar:
      if (is_number(a.kind)) *v = scalar_from(a);
      return is_number(a.kind);
    case ArgKind::Int:
      if (a.kind == abi::kInt) *v = a.integer;
      return a.kind == abi::kInt;
    case ArgKind::Float:
      if (a.kind != abi::kFloat && a.kind != abi::kInt) return false;
      *v = scalar_from(a).to_double();
      return true;
    case ArgKind::Bool:
      if (a.kind == abi::kTrue) *v = a.integer != 0;
      return a.kind == abi::kTrue;
    case ArgKind::Str:
      if (a.kind == abi::kText) *v = std::string(a.text, static_cast<size_t>(a.count));
      return a.kind == abi::kText;
    case ArgKind::Ints:
      if (a.kind == abi::kInts) *v = Dims(DimsRef(a.integers, static_cast<size_t>(a.count)));
      else if (a.kind == abi::kInt)
        *v = Dims(static_cast<size_t>(std::max(arg.repeat, 1)), a.integer);
      else return false;
      return true;
    case ArgKind::Floats:
      if (a.kind == abi::kFloats) *v = std::vector<double>(a.floats, a.floats + a.count);
      return a.kind == abi::kFloats;
    case ArgKind::DType:
      if (a.kind == abi::kDType) *v = dtype_from(a.integer);
      return a.kind == abi::kDType;
    case ArgKind::Device:
      if (a.kind == abi::kDevice) *v = device_from(a.integer, a.count);
      return a.kind == abi::kDevice;
    default: return false;  // generators and memory formats have no ABI type
  }
}

bool suits(const Arg& arg, int32_t kind) {
  switch (arg.kind) {
    case ArgKind::Tensor: return kind == abi::kTensor;
    case ArgKind::TensorList: return kind == abi::kTensors;
    case ArgKind::Scalar: return kind == abi::kNumber;
    case ArgKind::Int: return kind == abi::kInt || kind == abi::kNumber;
    case ArgKind::Float: return kind == abi::kFloat || kind == abi::kNumber;
    case ArgKind::Bool: return kind == abi::kTrue || kind == abi::kNumber;
    case ArgKind::Str: return kind == abi::kText;
    case ArgKind::Ints: return kind == abi::kInts;
    case ArgKind::Floats: return kind == abi::kFloats;
    case ArgKind::DType: return kind == abi::kDType;
    case ArgKind::Device: return kind == abi::kDevice;
    default: return false;
  }
}

}  // namespace taeda::py
