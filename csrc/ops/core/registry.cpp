// The table of all ops. Filled while the library loads; afterwards only extensions add to it.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "ops/core/device_fallback.h"
#include "ops/core/op.h"
#include "ops/core/schema.h"

namespace taeda {

const Tensor kNoTensor;

namespace {

struct Registry {
  std::deque<Op> ops;  // a deque: addresses are stable
  std::unordered_map<std::string, std::vector<const Op*>> by_name;
};

Registry& registry() {
  static Registry r;
  return r;
}

// "log_softmax" and "namespace::log_softmax" -> "LogSoftmaxBackward0"
std::string backward_name(std::string_view op) {
  if (size_t colons = op.rfind("::"); colons != op.npos) op.remove_prefix(colons + 2);
  std::string s;
  bool upper = true;
  for (char c : op) {
    if (c == '_') {
      upper = true;
    } else {
      s += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
      upper = false;
    }
  }
  return s + "Backward0";
}

const Op& add(Op op) {
  auto& r = registry();
  r.ops.push_back(std::move(op));
  const Op& stored = r.ops.back();
  r.by_name[stored.name].push_back(&stored);
  return stored;
}

Op inplace_form(const Op& functional) {
  Op op = functional;
  op.name += "_";
  op.signature = op.name + op.signature.substr(functional.name.size());
  op.inplace_form = true;
  op.mutated = 0;
  op.args[0].mutated = true;
  // In-place forms are methods if the functional form is, and functions where it says so.
  op.traits.forms &= ~(kOut | kInplace | (op.traits.forms & kInplaceFunction ? 0u : kFunction));
  op.returns = 1;
  op.return_type = "Tensor";
  return op;
}

// Whether a device but no tensor among the arguments says where results are.
bool makes_tensors_anywhere(const Op& op) {
  const auto is = [&op](std::initializer_list<ArgKind> kinds) {
    return std::any_of(op.args.begin(), op.args.end(), [&](const Arg& a) {
      return std::find(kinds.begin(), kinds.end(), a.kind) != kinds.end();
    });
  };
  return is({ArgKind::Device}) && !is({ArgKind::Tensor, ArgKind::TensorList});
}

}  // namespace

const Op& define(const char* schema, const char* doc, Kernel kernel, Traits traits,
                 const void* user) {
  Op op = parse_schema(schema);
  op.doc = doc;
  op.kernel = kernel;
  op.traits = traits;
  op.user = user;
  op.backward_name = backward_name(op.name);
  if (makes_tensors_anywhere(op)) {
    op.factory = kernel;
    op.kernel.run = [](Kernel::Fn, Call& c) { return make_on_device(c); };
  }
  const Op& functional = add(std::move(op));
  if (traits.forms & kInplace) add(inplace_form(functional));
  return functional;
}

const std::vector<const Op*>& overloads(std::string_view name) {
  static const std::vector<const Op*> none;
  auto& names = registry().by_name;
  auto it = names.find(std::string(name));
  return it == names.end() ? none : it->second;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const auto& [name, ops] : registry().by_name) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

const Op& find_op(std::string_view name, size_t nargs) {
  // Among overloads: the first with as many arguments, else the first whose remaining arguments
  // have defaults.
  const auto& candidates = overloads(name);
  for (const Op* o : candidates) {
    if (o->args.size() == nargs) return *o;
  }
  for (const Op* o : candidates) {
    if (o->args.size() > nargs && o->args[nargs].has_default) return *o;
  }
  fail("no op '", name, "' takes ", nargs, " arguments");
}

}  // namespace taeda
