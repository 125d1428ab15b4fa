// The allocator, the thread pool and the random engine, without tensors.
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "base/allocator.h"
#include "base/checksum.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "check.h"
#include "kernels/cpu/gemm/gemm.h"

namespace taeda::test {
namespace {

// Allocates and frees in a random order; every block carries a mark at both ends that must survive.
void stir(uint64_t seed) {
  struct Block {
    uint8_t* memory;
    size_t size;
    uint8_t mark;
  };
  Engine engine(seed);
  std::vector<Block> blocks;
  auto release = [&](size_t i) {
    const Block b = blocks[i];
    expect(b.memory[0] == b.mark && b.memory[b.size - 1] == b.mark, "a block was overwritten");
    cpu::deallocate(b.memory, b.size);
    blocks[i] = blocks.back();
    blocks.pop_back();
  };
  for (int i = 0; i < 3000; ++i) {
    if (blocks.size() > 100 || (!blocks.empty() && engine.random() % 2 == 0)) {
      release(engine.random() % blocks.size());
      continue;
    }
    const size_t size = 1 + engine.random() % (1u << (engine.random() % 22));
    auto* memory = static_cast<uint8_t*>(cpu::allocate(size));
    expect(reinterpret_cast<uintptr_t>(memory) % cpu::kAlignment == 0, "a block is not aligned");
    const auto mark = static_cast<uint8_t>(engine.random());
    memory[0] = memory[size - 1] = mark;
    blocks.push_back({memory, size, mark});
  }
  while (!blocks.empty()) release(0);
}

#if defined(__x86_64__)
// The parts of the registers that are in use, by XGETBV; 0 where the processor does not tell.
__attribute__((target("xsave"))) uint64_t registers_in_use() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(0xD, 1, &a, &b, &c, &d) && (a & 4) ? _xgetbv(1) : 0;
}
#endif

const Register checksum[] = {
#if defined(__x86_64__)
    {"crc32: SSE code is as fast after it",
     [] {
       const std::vector<uint8_t> data(4096);
       crc32(0, data.data(), data.size());
       expect_equal(registers_in_use() >> 2 & 1, uint64_t{0});  // the upper halves of AVX
     }},
#endif
    {"crc32: the check value of the standard",
     [] { expect_equal(crc32(0, "123456789", 9), 0xCBF43926u); }},
    {"crc32: every length and alignment, and in two parts",
     [] {
       Engine engine(3);
       std::vector<uint8_t> data(1200);
       for (uint8_t& b : data) b = static_cast<uint8_t>(engine.random());
       for (size_t begin = 0; begin < 3; ++begin) {
         for (size_t n = 0; begin + n <= data.size(); ++n) {
           const uint8_t* p = data.data() + begin;
           const uint32_t whole = crc32_portable(0, p, n);
           expect_equal(crc32(0, p, n), whole);
           const size_t cut = n / 3;
           const uint32_t head = crc32(0, p, cut), tail = crc32(0, p + cut, n - cut);
           expect_equal(crc32(head, p + cut, n - cut), whole);
           expect_equal(crc32_combine(head, tail, n - cut), whole);
         }
       }
     }},
};

const Register allocator[] = {
    {"allocator: blocks do not overlap", [] { stir(1); }},
    {"allocator: several threads",
     [] {
       const size_t before = cpu::memory_stats().allocated;
       std::vector<std::thread> threads;
       for (uint64_t i = 0; i < 4; ++i) threads.emplace_back(stir, i);
       for (std::thread& t : threads) t.join();
       expect_equal(cpu::memory_stats().allocated, before);
     }},
    {"allocator: a block freed by another thread",
     [] {
       void* p = cpu::allocate(1000);
       std::thread([p] { cpu::deallocate(p, 1000); }).join();
       stir(2);
     }},
    {"allocator: nothing for nothing",
     [] {
       expect(cpu::allocate(0) == nullptr, "0 bytes need no block");
       cpu::deallocate(nullptr, 0);
     }},
    {"allocator: what cannot be had throws",
     [] {
       expect_throws<OutOfMemory>([] { cpu::allocate(SIZE_MAX); });
       expect_throws<OutOfMemory>([] { cpu::allocate(size_t{1} << 55); });
     }},
    {"allocator: limit and cache",
     [] {
       cpu::empty_cache();
       const size_t held = cpu::memory_stats().reserved;
       cpu::set_limit(held + (size_t{8} << 20));
       expect_throws<OutOfMemory>([] { cpu::allocate(size_t{16} << 20); });
       for (size_t mb : {5, 6, 7}) {  // each fits only once the others have been given back
         void* p = cpu::allocate(mb << 20);
         cpu::deallocate(p, mb << 20);
       }
       cpu::set_limit(cpu::kNoLimit);
       cpu::empty_cache();
       expect(cpu::memory_stats().reserved <= held, "the cache was not emptied");
     }},
};

void fill_squares(std::vector<int64_t>& out) {
  parallel_for(static_cast<int64_t>(out.size()), 100, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[static_cast<size_t>(i)] = i * i;
  });
  for (size_t i = 0; i < out.size(); ++i) expect_equal(out[i], static_cast<int64_t>(i * i));
}

struct Threads {
  int before = get_num_threads();
  explicit Threads(int count) { set_num_threads(count); }
  ~Threads() { set_num_threads(before); }
};

const Register pool[] = {
    {"pool: every item once",
     [] {
       Threads threads(4);
       std::vector<int64_t> out(100'000);
       for (int i = 0; i < 20; ++i) fill_squares(out);
     }},
    {"pool: chunks follow from the size",
     [] {
       std::vector<std::array<int64_t, 2>> seen[2];
       for (int k = 0; k < 2; ++k) {
         Threads threads(k == 0 ? 1 : 3);
         seen[k].resize(200);
         parallel_for(10'007, 64, [&, k](int64_t begin, int64_t end) {
           seen[k][static_cast<size_t>(begin / 64)] = {begin, end};
         });
       }
       expect(seen[0] == seen[1], "the number of threads changed the chunks");
     }},
    {"pool: nested calls run inline",
     [] {
       Threads threads(2);
       parallel_for(8, 1, [](int64_t, int64_t) {
         const auto self = std::this_thread::get_id();
         parallel_for(8, 1, [self](int64_t, int64_t) {
           expect(in_parallel_region() && std::this_thread::get_id() == self,
                  "a nested call left its thread");
         });
       });
       expect(!in_parallel_region(), "the region has ended");
     }},
    {"pool: exceptions arrive",
     [] {
       Threads threads(2);
       expect_throws<ValueError>([] {
         parallel_for(1000, 1,
                      [](int64_t begin, int64_t) { check<ValueError>(begin != 500, "stop"); });
       });
     }},
    {"pool: several callers",
     [] {
       Threads threads(2);
       std::vector<std::thread> callers;
       for (int i = 0; i < 3; ++i) {
         callers.emplace_back([] {
           std::vector<int64_t> out(20'000);
           for (int k = 0; k < 20; ++k) fill_squares(out);
         });
       }
       for (std::thread& t : callers) t.join();
     }},
    {"pool: works in a forked child",
     [] {
       Threads threads(2);
       std::vector<int64_t> out(50'000);
       fill_squares(out);
       const pid_t child = fork();
       if (child == 0) {
         fill_squares(out);
         stir(3);
         _exit(0);
       }
       int status = -1;
       waitpid(child, &status, 0);
       expect_equal(status, 0);
       fill_squares(out);
     }},
};

const Register engine[] = {
    {"engine: the reference sequence of mt19937",
     [] {
       Engine e(5489);
       expect_equal(e.random(), 3499211612u);
       for (int i = 1; i < 9999; ++i) e.random();
       expect_equal(e.random(), 4123659995u);  // the 10000th, as the C++ standard gives it
     }},
    {"engine: single and bulk draws agree",
     [] {
       Engine a(7), b(7);
       alignas(64) static uint32_t room[Engine::raw_room(1997)];
       for (int64_t count : {3, 0, 620, 1, 624, 1997, 5}) {
         const uint32_t* words = a.raw(room, count);
         for (int64_t i = 0; i < count; ++i) expect_equal(Engine::temper(words[i]), b.random());
       }
     }},
    {"engine: a state can be saved and restored",
     [] {
       Engine a(11), b(12);
       std::array<uint8_t, Engine::kStateBytes> state;
       for (int draws : {0, 1, 623, 624, 625}) {
         a.seed(11);
         for (int i = 0; i < draws; ++i) a.random();
         const double before = a.normal();  // leaves one kept for the next call
         a.get_state(state.data());
         expect(b.set_state(state.data(), state.size()), "a good state was refused");
         expect(std::isfinite(before) && a.normal() == b.normal(), "the kept normal was lost");
         for (int i = 0; i < 1000; ++i) expect_equal(a.random(), b.random());
       }
       expect(!b.set_state(state.data(), 100), "a short state was accepted");
       std::array<uint8_t, Engine::kStateBytes> zeros{};
       expect(!b.set_state(zeros.data(), zeros.size()), "zeros are no state");
     }},
};

const Register products[] = {
    {"gemm: the same bits for any number of threads",
     [] {
       Engine e(1);
       auto filled = [&](int64_t n) {
         std::vector<float> v(static_cast<size_t>(n));
         for (float& x : v) x = static_cast<float>(e.uniform()) - 0.5f;
         return v;
       };
       const std::array<int64_t, 3> shapes[] = {{300, 200, 400}, {20, 30, 20000}, {1, 3000, 700}};
       for (const auto& [m, n, k] : shapes) {
         const auto a = filled(m * k), b = filled(k * n);
         std::vector<float> c[2];
         for (int i = 0; i < 2; ++i) {
           Threads threads(i == 0 ? 1 : 3);
           c[i].assign(static_cast<size_t>(m * n), NAN);
           cpu::gemm<float>(m, n, k, 1, {a.data(), k}, {b.data(), n}, 0, c[i].data(), n);
         }
         expect(std::memcmp(c[0].data(), c[1].data(), c[0].size() * sizeof(float)) == 0,
                "the bits differ");
       }
     }},
    {"gemm: an empty inner dimension gives zeros",
     [] {
       float c[4] = {NAN, NAN, NAN, NAN};
       cpu::gemm<float>(2, 2, 0, 1, {c, 1}, {c, 2}, 0, c, 2);
       for (float v : c) expect_equal(v, 0.0f);
     }},
};

}  // namespace
}  // namespace taeda::test
