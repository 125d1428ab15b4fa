// GeneratorImpl: the random engine behind a Generator, with the lock that a fill holds.
#pragma once

#include <mutex>

#include "base/device.h"
#include "base/random.h"
#include "ops/core/value.h"

namespace taeda {

struct GeneratorImpl {
  Device device;  // whose kernels draw from it: the CPU, or a CUDA device
  std::mutex mutex;
  Engine engine;
};

Generator make_generator(Device device = {});

// The process-wide streams: the CPU's, and that of each CUDA device. Those of devices begin with
// the CPU's seed, and other devices draw from the CPU's.
Generator& default_generator(Device device = {});
// Those of devices that have been asked for.
std::vector<Generator> device_generators();
// Seeds all streams.
void seed_default_generators(uint64_t seed);

// The given generator, or the default one, for numbers that are drawn on a device. RuntimeError for
// a generator of another kind of device.
GeneratorImpl& resolve(const std::optional<Generator>& g, Device device);

// A generator for the CPU to draw in place of a device. The device's stream goes on by a step.
Generator host_generator(const std::optional<Generator>& g, Device device);

}  // namespace taeda
