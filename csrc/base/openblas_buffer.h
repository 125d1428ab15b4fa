// OpenBLAS ends the process where it finds no memory for a buffer. It takes one for each thread
// that is in a call, and keeps it for later ones.
#pragma once

namespace taeda {

// Held around calls of OpenBLAS. Throws OutOfMemory where there is no memory for its first buffer;
// where there is none for another, waits until another thread's call has ended.
class OpenblasBuffer {
 public:
  OpenblasBuffer();
  OpenblasBuffer(const OpenblasBuffer&) = delete;
  OpenblasBuffer& operator=(const OpenblasBuffer&) = delete;
  ~OpenblasBuffer();
};

}  // namespace taeda
