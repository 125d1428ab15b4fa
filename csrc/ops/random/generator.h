// GeneratorImpl: the random engine behind a Generator, with the lock that a fill holds.
#pragma once

#include <mutex>

#include "base/random.h"
#include "ops/core/value.h"

namespace taeda {

struct GeneratorImpl {
  std::mutex mutex;
  Engine engine;
};

Generator make_generator();
Generator& default_generator();  // the process-wide CPU stream
// The given generator, or the default one.
inline GeneratorImpl& resolve(const std::optional<Generator>& g) {
  return g && g->impl ? *g->impl : *default_generator().impl;
}

}  // namespace taeda
