// The profiler's layer, which records when each operation begins and ends. It is installed only in
// threads in which a profiler runs.
#pragma once

#include <functional>

#include "ops/core/op.h"

namespace taeda {

struct ProfileEvent {
  std::string name;
  int64_t begin = 0, end = 0;  // nanoseconds of a monotonic clock
  int64_t parent = -1;         // index of the enclosing event; -1: none
  int64_t memory = 0;          // bytes held at the end less those at the beginning
  bool user = false;           // a range named by the program
  std::vector<Dims> shapes;    // of the arguments that are tensors
  Dims result;                 // the shape of the first result, where shapes are recorded
};

// Who is told of each range when it begins and ends, instead of getting a record of all.
struct RangeWatch {
  std::function<void(const ProfileEvent&)> begin;
  std::function<void()> end;
};

// Begins to record the operations of the calling thread. Error where it is recording already.
void profile_start(bool shapes, bool memory, RangeWatch watch = {});
// Ends it, and returns what was recorded, in the order of the beginnings.
std::vector<ProfileEvent> profile_stop();

// Begins a named range around operations. Returns -1 if nothing is being recorded; ending that
// range does nothing.
int64_t profile_enter(std::string name);
void profile_exit(int64_t range);

}  // namespace taeda
