#include "kernels/cuda/random/recorded.h"

#include <map>
#include <mutex>

#include "kernels/cuda/launch.h"

namespace taeda::cuda {
namespace {

struct Recording {
  const uint64_t* place;
  uint64_t drawn = 0;
};
struct Recordings {
  std::mutex mutex;
  std::map<std::pair<int, const Engine*>, Recording> all;
};
Recordings& recordings() {
  static Recordings& one = *new Recordings;
  return one;
}

__global__ void write_place_kernel(uint64_t* place, uint64_t seed, uint64_t offset) {
  place[0] = seed;
  place[1] = offset;
}

}  // namespace

void begin_recorded_draws(int device, const Engine* engine, const uint64_t* place) {
  Recordings& r = recordings();
  const std::lock_guard lock(r.mutex);
  check(r.all.emplace(std::pair(device, engine), Recording{place}).second,
        "cuda: two graphs cannot be recorded at a time that draw from one generator");
}

uint64_t end_recorded_draws(int device, const Engine* engine) {
  Recordings& r = recordings();
  const std::lock_guard lock(r.mutex);
  const auto found = r.all.find({device, engine});
  if (found == r.all.end()) return 0;
  const uint64_t drawn = found->second.drawn;
  r.all.erase(found);
  return drawn;
}

RecordedDraws record_draws(const Engine& engine, uint64_t words) {
  Recordings& r = recordings();
  const std::lock_guard lock(r.mutex);
  const auto found = r.all.find({used_device().index, &engine});
  check(found != r.all.end(),
        "cuda: a graph draws from the device's default generator and from those that "
        "CUDAGraph.register_generator_state() was given before, and this is another one");
  Recording& recording = found->second;
  const RecordedDraws draws{recording.place, recording.drawn};
  recording.drawn += (words + 3) / 4 * 4;  // as Engine::take()
  return draws;
}

void write_place(uint64_t* place, uint64_t seed, uint64_t offset) {
  launch(write_place_kernel, 1, 1, 0, place, seed, offset);
}

}  // namespace taeda::cuda
