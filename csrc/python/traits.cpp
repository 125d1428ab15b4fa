#include "python/traits.h"

#include <algorithm>

#include "python/objects.h"

namespace taeda::py {
namespace {

constexpr const char* kPrecisions[] = {nullptr, "lower", "float32", "widest"};
constexpr const char* kNumbers[] = {nullptr, "anywhere", "one_tensor", "after_self"};
constexpr const char* kFlops[] = {
    nullptr,           "product",   "added_product",      "convolution", "transposed_convolution",
    "filter_gradient", "attention", "attention_gradient", "recurrence",  "recurrence_gradient"};
constexpr const char* kVmapForms[] = {nullptr,      "elementwise", "loss",    "direct",
                                      "new",        "reduction",   "along",   "strictly_along",
                                      "leading",    "folded",      "random",  "loop",
                                      "one_by_one", "dynamic",     "as_it_is"};
static_assert(std::size(kPrecisions) == size_t(Precision::Widest) + 1);
static_assert(std::size(kNumbers) == size_t(Numbers::AfterSelf) + 1);
static_assert(std::size(kFlops) == size_t(Flops::RecurrenceGradient) + 1);
static_assert(std::size(kVmapForms) == size_t(Vmap::AsItIs) + 1);

PyObject* text(const char* s) {
  return s ? must(PyUnicode_InternFromString(s)) : Py_NewRef(Py_None);
}
PyObject* truth(bool b) { return Py_NewRef(b ? Py_True : Py_None); }

PyObject* precision(const Op& op, AutocastRule::Where device) {
  return text(kPrecisions[size_t(op.traits.autocast.on(device))]);
}

PyObject* vmap_rule(const Op& op) {
  const Vmap& rule = op.traits.vmap;
  if (rule.form == Vmap::Unset) Py_RETURN_NONE;
  const auto end = std::find(std::begin(rule.ranks), std::end(rule.ranks), -1);
  PyRef parts = take(PyTuple_New(1 + (end - rule.ranks)));
  PyTuple_SET_ITEM(parts.get(), 0, text(kVmapForms[rule.form]));
  for (Py_ssize_t i = 0; i < end - rule.ranks; ++i)
    PyTuple_SET_ITEM(parts.get(), i + 1, must(PyLong_FromLong(rule.ranks[i])));
  return parts.release();
}

struct Named {
  const char* name;
  PyObject* (*get)(const Op&);  // None where the op does not have it
};
constexpr Named kTraits[] = {
    {"composite", [](const Op& op) { return truth(op.traits.composite); }},
    {"elementwise", [](const Op& op) { return truth(op.traits.elementwise); }},
    {"view", [](const Op& op) { return truth(op.traits.view); }},
    {"inplace", [](const Op& op) { return truth(op.inplace_form); }},
    {"keeps_zero", [](const Op& op) { return truth(op.traits.keeps_zero); }},
    {"foreach", [](const Op& op) { return truth(op.traits.forms & kForeach); }},
    {"autocast", [](const Op& op) { return precision(op, AutocastRule::Cpu); }},
    {"autocast_on_cuda", [](const Op& op) { return precision(op, AutocastRule::Cuda); }},
    {"numbers", [](const Op& op) { return text(kNumbers[size_t(op.traits.numbers)]); }},
    {"flops", [](const Op& op) { return text(kFlops[size_t(op.traits.flops)]); }},
    {"vmap", vmap_rule},
};

// _op_traits(trait): the names of the ops that have it, and its value at their first overload that
// has.
PyObject* op_traits(PyObject*, PyObject* asked) {
  return guarded([&] {
    check<TypeError>(PyUnicode_Check(asked), "_op_traits(): expected the name of a trait, got ",
                     type_name(asked));
    const auto* trait = std::find_if(std::begin(kTraits), std::end(kTraits), [&](const Named& t) {
      return PyUnicode_CompareWithASCIIString(asked, t.name) == 0;
    });
    check<ValueError>(trait != std::end(kTraits), "_op_traits(): there is no trait '",
                      to_string(asked), "'");
    PyRef found = take(PyDict_New());
    for (const std::string& name : op_names()) {
      for (const Op* op : overloads(name)) {
        PyRef value = take(trait->get(*op));
        if (value.get() == Py_None) continue;
        must(PyDict_SetItemString(found.get(), name.c_str(), value.get()));
        break;
      }
    }
    return found.release();
  });
}

PyMethodDef functions[] = {{"_op_traits", op_traits, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* traits_dict(const Op& op) {
  PyRef all = take(PyDict_New());
  for (const Named& trait : kTraits) {
    PyRef value = take(trait.get(op));
    must(PyDict_SetItemString(all.get(), trait.name, value.get()));
  }
  return all.release();
}

void init_traits(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
