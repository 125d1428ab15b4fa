// Multithreaded file reading and checksums for taeda.serialization.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <vector>

#include "base/checksum.h"
#include "base/thread_pool.h"
#include "python/module.h"
#include "python/objects.h"

namespace taeda::py {
namespace {

constexpr int64_t kPiece = 2 << 20;  // bytes that a thread takes at a time
constexpr size_t kStep = 128 << 10;  // bytes read per step: still in cache for their checksum

class Bytes {
 public:
  Bytes(PyObject* o, int flags) { must(PyObject_GetBuffer(o, &view_, flags)); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&view_); }
  uint8_t* data() const { return static_cast<uint8_t*>(view_.buf); }
  int64_t size() const { return view_.len; }

 private:
  Py_buffer view_{};
};

// The checksum of [0, n), combined from piece(begin, end) for each part.
template <class F> uint32_t combined(int64_t n, F piece) {
  const int64_t size = chunk_size(n, kPiece);
  std::vector<uint32_t> parts(static_cast<size_t>((n + size - 1) / size));
  parallel_for(n, size, [&](int64_t begin, int64_t end) {
    parts[static_cast<size_t>(begin / size)] = piece(begin, end);
  });
  uint32_t crc = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * size;
    crc = crc32_combine(crc, parts[i], static_cast<uint64_t>(std::min(size, n - begin)));
  }
  return crc;
}

// Reads [begin, end) of the range of a file that starts at `offset`, in steps.
uint32_t read_piece(int fd, int64_t offset, uint8_t* to, int64_t begin, int64_t end) {
  uint32_t crc = 0;
  for (int64_t at = begin; at < end;) {
    const size_t wanted = std::min(kStep, static_cast<size_t>(end - at));
    const ssize_t count = pread(fd, to + at, wanted, offset + at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category());
    check(count > 0, "load: the file became shorter while it was read");
    crc = crc32(crc, to + at, static_cast<size_t>(count));
    at += count;
  }
  return crc;
}

// Huge pages are usually fastest. But on virtual machines whose host commits memory lazily, the
// first touch of a huge page can cost fifty times more than usual, far more than reading the file
// into it; small pages, which reuse committed memory, are then better. The time to touch one page
// decides for the rest of the process.
void choose_page_size(uint8_t* p, int64_t n) {
#if defined(MADV_NOHUGEPAGE)
  static std::atomic<bool> costly = false;
  constexpr uintptr_t huge = 2 << 20;
  unsigned char resident = 1;
  const auto start = reinterpret_cast<uintptr_t>(p) & ~uintptr_t{4095};
  if (n < static_cast<int64_t>(2 * huge) || mincore(reinterpret_cast<void*>(start), 1, &resident) ||
      (resident & 1))
    return;
  if (!costly) {
    const auto before = std::chrono::steady_clock::now();
    *const_cast<volatile uint8_t*>(p) = 0;
    costly = std::chrono::steady_clock::now() - before > std::chrono::milliseconds(1);
  }
  if (costly) madvise(reinterpret_cast<void*>(start), static_cast<size_t>(n), MADV_NOHUGEPAGE);
#endif
}

PyObject* read_file_range(PyObject*, PyObject* args) {
  int fd;
  long long offset;
  PyObject* target;
  if (!PyArg_ParseTuple(args, "iLO:_read_file_range", &fd, &offset, &target)) return nullptr;
  return guarded([&] {
    Bytes to(target, PyBUF_WRITABLE);
    uint32_t crc = 0;
    int error = 0;
    {
      ReleaseGil release;
      choose_page_size(to.data(), to.size());
      try {
        crc = combined(to.size(), [&](int64_t begin, int64_t end) {
          return read_piece(fd, offset, to.data(), begin, end);
        });
      } catch (const std::system_error& e) {
        error = e.code().value();
      }
    }
    if (error) {
      errno = error;
      PyErr_SetFromErrno(PyExc_OSError);
      throw PythonError();
    }
    return PyLong_FromUnsignedLong(crc);
  });
}

PyObject* checksum(PyObject*, PyObject* data) {
  return guarded([&] {
    Bytes bytes(data, PyBUF_SIMPLE);
    uint32_t crc;
    {
      ReleaseGil release(bytes.size() > kPiece);
      crc = combined(bytes.size(), [&](int64_t begin, int64_t end) {
        return crc32(0, bytes.data() + begin, static_cast<size_t>(end - begin));
      });
    }
    return PyLong_FromUnsignedLong(crc);
  });
}

PyObject* combine(PyObject*, PyObject* args) {
  unsigned int a, b;
  unsigned long long size;
  if (!PyArg_ParseTuple(args, "IIK:_crc32_combine", &a, &b, &size)) return nullptr;
  return PyLong_FromUnsignedLong(crc32_combine(a, b, size));
}

PyMethodDef functions[] = {
    {"_read_file_range", read_file_range, METH_VARARGS,
     "_read_file_range(fd, offset, buffer) -> int\n\n"
     "Fill a buffer from a file and return the CRC-32 of what was read."},
    {"_crc32", checksum, METH_O, "_crc32(data) -> int\n\nThe CRC-32 of a buffer."},
    {"_crc32_combine", combine, METH_VARARGS,
     "_crc32_combine(a, b, size) -> int\n\n"
     "The CRC-32 of two buffers, one after the other, from theirs and the second one's size."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void init_files(PyObject* module) { must(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::py
