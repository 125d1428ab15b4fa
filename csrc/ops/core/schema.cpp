#include "ops/core/schema.h"

#include <array>
#include <charconv>

namespace taeda {
namespace {

constexpr int kMostRepeats = 64;  // as many as a tensor has dimensions

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at commas outside brackets and quotes.
std::vector<std::string_view> split_list(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(trim(s.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (auto last = trim(s.substr(start)); !last.empty()) parts.push_back(last);
  return parts;
}

template <class T> T parse_number(std::string_view s, std::string_view schema) {
  T v{};
  const char* const last = std::to_address(s.end());
  auto [end, ec] = std::from_chars(std::to_address(s.begin()), last, v);
  check(ec == std::errc() && end == last, "schema '", schema, "': '", s, "' is no number");
  return v;
}

void parse_type(std::string_view t, Arg& a, std::string_view schema) {
  if (t.ends_with('?')) {
    a.optional = true;
    t.remove_suffix(1);
  }
  if (t.starts_with("int[") && t.ends_with(']')) {
    a.kind = ArgKind::Ints;
    t.remove_prefix(4);
    t.remove_suffix(1);
    if (!t.empty()) a.repeat = parse_number<int>(t, schema);
    check(a.repeat >= 0 && a.repeat <= kMostRepeats, "schema '", schema, "': int[", t,
          "] has more than ", kMostRepeats, " elements");
    return;
  }
  if (t == "Tensor?[]") a.allows_none_items = true;
  struct Name {
    std::string_view text;
    ArgKind kind;
  };
  static constexpr std::array<Name, 13> names{{{"Tensor", ArgKind::Tensor},
                                               {"Tensor[]", ArgKind::TensorList},
                                               {"Tensor?[]", ArgKind::TensorList},
                                               {"Scalar", ArgKind::Scalar},
                                               {"int", ArgKind::Int},
                                               {"float", ArgKind::Float},
                                               {"bool", ArgKind::Bool},
                                               {"str", ArgKind::Str},
                                               {"float[]", ArgKind::Floats},
                                               {"dtype", ArgKind::DType},
                                               {"device", ArgKind::Device},
                                               {"Generator", ArgKind::Generator},
                                               {"memory_format", ArgKind::MemoryFormat}}};
  for (const Name& n : names) {
    if (n.text == t) {
      a.kind = n.kind;
      return;
    }
  }
  fail("schema '", schema, "': unknown type '", t, "'");
}

Scalar parse_scalar(std::string_view t, std::string_view schema) {
  if (t == "True" || t == "False") return Scalar(t == "True");
  if (t.find_first_of(".e") != t.npos || t == "inf" || t == "-inf")
    return Scalar(parse_number<double>(t, schema));
  return Scalar(parse_number<int64_t>(t, schema));
}

Value parse_default(std::string_view t, const Arg& a, std::string_view schema) {
  if (t == "None") return {};
  switch (a.kind) {
    case ArgKind::Scalar: return parse_scalar(t, schema);
    case ArgKind::Tensor: return Tensor(parse_scalar(t, schema));
    case ArgKind::Int: return parse_number<int64_t>(t, schema);
    case ArgKind::Float: return parse_number<double>(t, schema);
    case ArgKind::Bool:
      check(t == "True" || t == "False", "schema '", schema, "': '", t, "' is no bool");
      return t == "True";
    case ArgKind::Str:
      check(t.size() >= 2 && (t[0] == '\'' || t[0] == '"') && t.back() == t[0], "schema '", schema,
            "': '", t, "' is no string in quotes");
      return std::string(t.substr(1, t.size() - 2));
    case ArgKind::Ints: {
      if (!t.starts_with('['))
        return Dims(static_cast<size_t>(std::max(a.repeat, 1)), parse_number<int64_t>(t, schema));
      check(t.ends_with(']'), "schema '", schema, "': '", t, "' is no list");
      Dims d;
      for (auto p : split_list(t.substr(1, t.size() - 2)))
        d.push_back(parse_number<int64_t>(p, schema));
      return d;
    }
    case ArgKind::TensorList: return TensorList{};
    case ArgKind::MemoryFormat:
      return t == "preserve_format" ? MemoryFormat::Preserve : MemoryFormat::Contiguous;
    default: fail("schema '", schema, "': no default '", t, "' for this type");
  }
}

void parse_returns(std::string_view t, Op& op) {
  op.return_type = t;
  if (t == "None" || t == "") {
    op.returns = 0;
  } else if (t == "Tensor[]") {
    op.returns = -1;
  } else if (t.starts_with('(')) {
    check(t.ends_with(')'), "schema '", op.signature, "' lacks ')' of its results");
    auto parts = split_list(t.substr(1, t.size() - 2));
    op.returns = static_cast<int>(parts.size());
    for (auto p : parts) {
      if (auto colon = p.find(':'); colon != p.npos)
        op.return_names.emplace_back(trim(p.substr(0, colon)));
    }
  } else {
    op.returns = t.starts_with("Tensor") ? 1 : 0;  // bool, int, ...: no tensors
  }
}

}  // namespace

Op parse_schema(std::string_view text) {
  auto open = text.find('('), arrow = text.rfind("->");
  check(open != text.npos && arrow != text.npos, "schema '", text, "' lacks '(' or '->'");
  auto close = text.rfind(')', arrow);
  check(close != text.npos && open < close, "schema '", text, "' lacks ')'");
  Op op;
  op.name = trim(text.substr(0, open));
  op.signature = text;
  bool keyword_only = false;
  for (std::string_view part : split_list(text.substr(open + 1, close - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    Arg a;
    a.keyword_only = keyword_only;
    auto colon = part.find(':'), equals = part.find('=');
    check(colon < equals, "schema '", text, "': '", part, "' has no type");
    std::string_view arg_name = trim(part.substr(0, colon));
    if (arg_name.ends_with('!')) {
      a.mutated = true;
      arg_name.remove_suffix(1);
      op.mutated = static_cast<int>(op.args.size());
    }
    a.name = arg_name;
    parse_type(trim(part.substr(colon + 1, equals == part.npos ? part.npos : equals - colon - 1)),
               a, text);
    if (equals != part.npos) {
      a.has_default = true;
      a.fallback = parse_default(trim(part.substr(equals + 1)), a, text);
    }
    op.args.push_back(std::move(a));
  }
  parse_returns(trim(text.substr(arrow + 2)), op);
  return op;
}

}  // namespace taeda
