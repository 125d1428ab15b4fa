// The exceptions of the core. Each becomes the Python exception that PyTorch raises in the same
// case.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace taeda {

struct Error : std::runtime_error {  // RuntimeError
  using std::runtime_error::runtime_error;
};
struct TypeError : Error {
  using Error::Error;
};
struct ValueError : Error {
  using Error::Error;
};
struct IndexError : Error {
  using Error::Error;
};
struct NotImplemented : Error {  // NotImplementedError
  using Error::Error;
};
struct OutOfMemory : Error {  // MemoryError
  using Error::Error;
};
struct DeviceOutOfMemory : OutOfMemory {  // taeda.OutOfMemoryError
  using OutOfMemory::OutOfMemory;
};
// A Python exception that is already set and propagates through C++; only csrc/python throws and
// catches it.
struct PythonError : Error {
  PythonError() : Error("a Python exception is set") {}
};

template <class... A> std::string str(const A&... a) {
  std::ostringstream s;
  (s << ... << a);
  return std::move(s).str();
}

template <class E = Error, class... A>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const A&... a) {
  throw E(str(a...));
}

// check(cond, "sum(): ...", x) throws RuntimeError with its arguments concatenated;
// check<IndexError>(...) throws another type.
template <class E = Error, class... A> inline void check(bool ok, const A&... a) {
  if (!ok) [[unlikely]]
    fail<E>(a...);
}

}  // namespace taeda
