// A test is a function registered by name; EXPECT-style checks throw with the place where they
// failed.
#pragma once

#include <cstdio>
#include <source_location>
#include <string>
#include <vector>

#include "base/error.h"

namespace taeda::test {

struct Test {
  const char* name;
  void (*run)();
};
inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}
struct Register {
  Register(const char* name, void (*run)()) { tests().push_back({name, run}); }
};

inline void expect(bool ok, const std::string& what,
                   std::source_location at = std::source_location::current()) {
  if (!ok) fail(at.file_name(), ":", at.line(), ": ", what);
}
template <class A, class B>
void expect_equal(const A& a, const B& b,
                  std::source_location at = std::source_location::current()) {
  if (!(a == b)) fail(at.file_name(), ":", at.line(), ": ", a, " != ", b);
}
template <class E, class F>
void expect_throws(F&& f, std::source_location at = std::source_location::current()) {
  try {
    f();
  } catch (const E&) {
    return;
  }
  fail(at.file_name(), ":", at.line(), ": nothing of the expected type was thrown");
}

}  // namespace taeda::test
