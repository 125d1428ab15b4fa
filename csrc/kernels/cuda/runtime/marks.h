// Marks in streams, by which memory that was freed knows when their work is done with it.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "kernels/cuda/runtime/driver.h"

namespace taeda::cuda {

using StreamPlace = std::pair<int, StreamHandle>;  // a device, and one of its streams

// The ends of some streams at the time when this was made. A stream that is being recorded into a
// graph is marked as soon as it is not.
class Marks {
 public:
  explicit Marks(std::set<StreamPlace> streams);
  Marks(Marks&& from) noexcept = default;
  Marks& operator=(Marks&& from) noexcept = default;

  bool passed();
  bool wait();  // false where a stream is still being recorded

 private:
  struct Mark {
    int device;
    EventHandle event;
  };
  void place();

  std::set<StreamPlace> to_place_;
  std::vector<Mark> placed_;
};

}  // namespace taeda::cuda
