#include "ops/random/generator.h"

#include <array>

namespace taeda {
namespace {

// Of CUDA devices, as far as they have been asked for.
struct DeviceStreams {
  std::mutex mutex;
  std::array<Generator, 128> all;
};
DeviceStreams& device_streams() {
  static DeviceStreams& streams = *new DeviceStreams;
  return streams;
}

void reseed(GeneratorImpl& g, uint64_t seed) {
  const std::lock_guard lock(g.mutex);
  g.engine.seed(seed);
}

}  // namespace

Generator make_generator(Device device) {
  const auto impl = std::make_shared<GeneratorImpl>();
  impl->device = with_index(device);
  return {impl};
}

Generator& default_generator(Device device) {
  static Generator cpu = make_generator();
  if (device.type != DeviceType::CUDA) return cpu;
  device = with_index(device);
  DeviceStreams& streams = device_streams();
  const std::lock_guard lock(streams.mutex);
  Generator& g = streams.all[static_cast<size_t>(device.index)];
  if (!g.impl) {
    g = make_generator(device);
    g.impl->engine.seed(cpu.impl->engine.initial_seed());
  }
  return g;
}

std::vector<Generator> device_generators() {
  DeviceStreams& streams = device_streams();
  const std::lock_guard lock(streams.mutex);
  std::vector<Generator> made;
  for (const Generator& g : streams.all) {
    if (g.impl) made.push_back(g);
  }
  return made;
}

void seed_default_generators(uint64_t seed) {
  reseed(*default_generator().impl, seed);
  for (const Generator& g : device_generators()) reseed(*g.impl, seed);
}

GeneratorImpl& resolve(const std::optional<Generator>& g, Device device) {
  if (!g || !g->impl) return *default_generator(device).impl;
  const DeviceType expected = device.type == DeviceType::CUDA ? DeviceType::CUDA : DeviceType::CPU;
  check(g->impl->device.type == expected, "Expected a '", device_type_name(expected),
        "' device type for generator but found '", device_type_name(g->impl->device.type), "'");
  return *g->impl;
}

Generator host_generator(const std::optional<Generator>& g, Device device) {
  GeneratorImpl& from = resolve(g, device);
  if (from.device.type == DeviceType::CPU) return g ? *g : default_generator();
  Generator on_host = make_generator();
  const std::lock_guard lock(from.mutex);
  constexpr uint64_t odd = 0x9e3779b97f4a7c15;  // so that neighbouring places have other seeds
  on_host.impl->engine.seed(from.engine.initial_seed() + (from.engine.take(4) / 4 + 1) * odd);
  return on_host;
}

}  // namespace taeda
