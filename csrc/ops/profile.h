// What a profiler sees: a layer behind the door that notes when each operation begins and ends.
// While no profiler runs in a thread, the layer is not there.
#pragma once

#include "ops/op.h"

namespace taeda {

struct ProfileEvent {
  std::string name;
  int64_t begin = 0, end = 0;  // nanoseconds of a clock that never goes back
  int64_t parent = -1;         // the event within which it began; -1: none
  int64_t memory = 0;          // bytes held at the end less those at the beginning
  bool user = false;           // a range that the program named
  std::vector<Dims> shapes;    // of the arguments that are tensors
  Dims result;                 // the shape of the first result, where shapes are recorded
};

// Begins to record the operations of the calling thread. Error where it is recording already.
void profile_start(bool shapes, bool memory);
// Ends it, and returns what was recorded, in the order of the beginnings.
std::vector<ProfileEvent> profile_stop();

// A range with a name, around operations. Begun where nothing is recorded, it is -1 and its end
// does nothing.
int64_t profile_enter(std::string name);
void profile_exit(int64_t range);

}  // namespace taeda
