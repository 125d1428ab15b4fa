// GeneratorImpl: what a Generator refers to, an engine and the lock that a fill holds.
#pragma once

#include <mutex>

#include "base/random.h"
#include "ops/value.h"

namespace taeda {

struct GeneratorImpl {
  std::mutex mutex;
  Engine engine;
};

Generator make_generator();
Generator& default_generator();  // the process-wide CPU stream
// The one that was given, or the default.
inline GeneratorImpl& resolve(const std::optional<Generator>& g) {
  return g && g->impl ? *g->impl : *default_generator().impl;
}

}  // namespace taeda
