// Several threads at once: op calls, the graph, the allocator and the pool. For ThreadSanitizer.
#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "base/allocator.h"
#include "base/thread_pool.h"
#include "check.h"
#include "ops/core/tensor_ops.h"

namespace taeda::test {
namespace {

// Runs f(i) in `count` threads; what one of them throws is thrown here.
template <class F> void in_threads(int count, F&& f) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        f(i);
      } catch (...) {
        thrown[static_cast<size_t>(i)] = std::current_exception();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& e : thrown) {
    if (e) std::rethrow_exception(e);
  }
}

double total(const Tensor& t) {
  Dims dims;
  for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  return sum(t, dims).item().to_double();
}

Tensor leaf(Dims sizes, double value) {
  Tensor t = full(sizes, value, {});
  set_requires_grad(t, true);
  return t;
}

void backward_of(const Tensor& loss) {
  const Edge root = gradient_edge(loss);
  const Tensor one = full(Dims{}, 1.0, {});
  run_backward({&root, 1}, {&one, 1}, {});
}

const Register threads[] = {
    {"threads: ops on tensors of their own and on shared ones",
     [] {
       const Tensor shared = full(Dims{200, 200}, 2.0, {});
       in_threads(4, [&](int i) {
         const Tensor own = full(Dims{200, 200}, static_cast<double>(i), {});
         for (int k = 0; k < 20; ++k) {
           expect_equal(total(shared * own + shared), 40000.0 * (2 * i + 2));
           const Tensor product = op<"matmul">(shared, own);
           expect_equal(product.sizes()[0], 200);
           op<"add_">(own, full(Dims{}, 1.0, {}));
           op<"sub_">(own, full(Dims{}, 1.0, {}));
         }
       });
     }},
    {"threads: graphs of their own",
     [] {
       in_threads(4, [](int i) {
         for (int k = 0; k < 20; ++k) {
           Tensor x = leaf(Dims{30, 30}, i + 1.0);
           backward_of(sum(x * x * x, Dims{0, 1}));
           expect_equal(total(grad_of(x)), 900.0 * 3 * (i + 1) * (i + 1));
         }
       });
     }},
    {"threads: gradients of one leaf add up",
     [] {
       Tensor x = leaf(Dims{100}, 2.0);
       in_threads(4, [&](int) {
         for (int k = 0; k < 25; ++k) backward_of(sum(x * x, Dims{0}));
       });
       expect_equal(total(grad_of(x)), 100.0 * 100 * 4);
     }},
    {"threads: graphs that share their beginning",
     [] {
       Tensor x = leaf(Dims{50}, 1.0), w = leaf(Dims{50}, 3.0);
       in_threads(4, [&](int) {
         for (int k = 0; k < 25; ++k) {
           Tensor y = x * w;
           backward_of(sum(y + y, Dims{0}));
         }
       });
       expect_equal(total(grad_of(x)), 50.0 * 6 * 100);
       expect_equal(total(grad_of(w)), 50.0 * 2 * 100);
     }},
    {"threads: tensors and graphs that another thread lets go",
     [] {
       constexpr int kCount = 200;
       std::array<Tensor, kCount> made;
       Tensor x = leaf(Dims{20}, 1.0);
       std::atomic<int> ready{0};
       std::thread maker([&] {
         for (int i = 0; i < kCount; ++i) {
           made[static_cast<size_t>(i)] = (x * x + x) * x;
           ready.store(i + 1, std::memory_order_release);
         }
       });
       for (int i = 0; i < kCount; ++i) {
         while (ready.load(std::memory_order_acquire) <= i) std::this_thread::yield();
         made[static_cast<size_t>(i)] = {};
       }
       maker.join();
     }},
    {"threads: blocks handed around",
     [] {
       constexpr size_t kSlots = 64;
       std::array<std::atomic<void*>, kSlots> slots{};
       auto size_of = [](size_t slot) { return (slot + 1) * 1500; };  // small and large blocks
       in_threads(4, [&](int i) {
         for (size_t k = 0; k < 2000; ++k) {
           const size_t slot = (k * 7 + static_cast<size_t>(i) * 13) % kSlots;
           auto* block = static_cast<char*>(cpu::allocate(size_of(slot)));
           block[0] = block[size_of(slot) - 1] = 1;
           cpu::deallocate(slots[slot].exchange(block), size_of(slot));
           if (k % 500 == 0) cpu::empty_cache();
           if (k % 100 == 0) cpu::memory_stats();
         }
       });
       for (size_t s = 0; s < kSlots; ++s) cpu::deallocate(slots[s].load(), size_of(s));
     }},
    {"threads: the pool while its size changes",
     [] {
       const int before = get_num_threads();
       std::atomic<bool> done{false};
       std::thread changer([&] {
         for (int n = 1; !done; n = n % 4 + 1) {
           set_num_threads(n);
           std::this_thread::yield();
         }
       });
       in_threads(3, [](int) {
         for (int k = 0; k < 100; ++k) {
           std::atomic<int64_t> seen{0};
           parallel_for(10000, 100, [&](int64_t begin, int64_t end) { seen += end - begin; });
           expect_equal(seen.load(), 10000);
         }
       });
       done = true;
       changer.join();
       set_num_threads(before);
     }},
    {"threads: chunks that take very different times",
     [] {
       const int before = get_num_threads();
       for (int threads = 1; threads <= 4; ++threads) {
         set_num_threads(threads);
         std::vector<std::atomic<int>> runs(97);
         for (int turn = 0; turn < 50; ++turn) {
           parallel_for(97, 1, [&](int64_t begin, int64_t) {
             volatile int64_t work = begin % 31 == turn % 31 ? 20000 : 1;
             while (work > 0) work = work - 1;
             ++runs[static_cast<size_t>(begin)];
           });
         }
         for (const auto& count : runs) expect_equal(count.load(), 50);
       }
       set_num_threads(before);
     }},
    {"threads: items that wait for those before them",
     [] {
       const int before = get_num_threads();
       for (int threads = 1; threads <= 4; ++threads) {
         set_num_threads(threads);
         for (int64_t bad : {int64_t{-1}, int64_t{0}, int64_t{7}, int64_t{199}}) {
           std::atomic<int64_t> passed{0};
           bool failed = false;
           try {
             parallel_ordered(200, [&](int64_t item, int64_t) {
               while (passed != item) std::this_thread::yield();
               ++passed;
               if (item == bad) throw std::runtime_error("item");
             });
           } catch (const std::runtime_error&) {
             failed = true;
           }
           expect_equal(failed, bad >= 0);
           expect_equal(passed.load() > bad, true);
           if (!failed) expect_equal(passed.load(), int64_t{200});
         }
       }
       set_num_threads(before);
     }},
    {"threads: the first call of an op by name",
     [] {
       in_threads(4, [](int) { expect_equal(total(op<"exp2">(full(Dims{8}, 3.0, {}))), 64.0); });
     }},
};

}  // namespace
}  // namespace taeda::test
