// Random numbers in graphs: kernels read from the device's memory where they begin, and each replay
// writes that, so that it goes on where the stream of numbers is then.
#pragma once

#include <cstdint>

namespace taeda {
class Engine;
}

namespace taeda::cuda {

// From now on, what is recorded on the device may draw from `engine`; `place` is two numbers in the
// device's memory. Error where another graph that is being recorded does.
void begin_recorded_draws(int device, const Engine* engine, const uint64_t* place);
// How many words were drawn since.
uint64_t end_recorded_draws(int device, const Engine* engine);

struct RecordedDraws {
  const uint64_t* place;
  uint64_t offset;  // of this draw in the graph's
};
// Takes words in the graph that is being recorded on the used device. Error unless
// begin_recorded_draws() was called.
RecordedDraws record_draws(const Engine& engine, uint64_t words);

// What a replay begins with, on the current stream of the used device.
void write_place(uint64_t* place, uint64_t seed, uint64_t offset);

}  // namespace taeda::cuda
