// Reductions of rows, contiguous and strided, and of columns.
#include <algorithm>
#include <array>
#include <numeric>

#include "kernels.h"
#include "kernels/cpu/reduce/simd/reduce.h"
#include "kernels/functors/reduction.h"

namespace taeda::test {
namespace {

using namespace cpu::simd;
struct Finders {
  FindReduce sum, order;
};
#if defined(__x86_64__)
const Finders kV2{v2::find_reduce_sum, v2::find_reduce_order};
const Finders kV3{v3::find_reduce_sum, v3::find_reduce_order};
const Finders kV4{v4::find_reduce_sum, v4::find_reduce_order};
#else
const Finders kBase{base::find_reduce_sum, base::find_reduce_order};
#endif

struct Case {
  const char* name;
  ReduceOp op;
  double (*reference)(const Numbers& x);
};
const Case kCases[] = {
    {"sum", ReduceOp::Sum,
     [](const Numbers& x) { return std::accumulate(x.begin(), x.end(), 0.0); }},
    {"sum_squares", portable::sum_of<portable::SumSquares>,
     [](const Numbers& x) { return std::inner_product(x.begin(), x.end(), x.begin(), 0.0); }},
    {"sum_abs", portable::sum_of<portable::SumAbs>,
     [](const Numbers& x) {
       return std::accumulate(x.begin(), x.end(), 0.0,
                              [](double a, double v) { return a + std::abs(v); });
     }},
    {"max", ReduceOp::Max,
     [](const Numbers& x) {
       return std::accumulate(x.begin(), x.end(), -HUGE_VAL,
                              [](double a, double v) { return std::isnan(a) || a > v ? a : v; });
     }},
};

// Columns n / 5 wide, five of them one under the other; or one row of every stride-th element.
enum class Along { Row, StridedRow, Columns };

template <class T, class Acc>
Kernel reduction(const std::string& name, const ReduceKernel& k, const Case& c, Along along) {
  const bool columns = along == Along::Columns;
  const int64_t stride = along == Along::StridedRow ? 3 : 1;
  std::vector<int64_t> sizes = {1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 64, 65, 100, 255, 1000, 4099};
  if (columns) sizes.erase(sizes.begin(), sizes.begin() + 3);
  return Map<T, Acc>::kernel(
      name,
      [&k, columns, stride](const T* x, int64_t n, Acc* y) {
        k.init(y, columns ? n / 5 : 1);
        if (columns) k.cols(x, 5, n / 5, n / 5, 0, y);
        else k.rows(x, 1, 0, (n + stride - 1) / stride, stride, 0, false, y);
      },
      [c, columns, stride](const Numbers& x) {
        Numbers y, part;
        const auto width = static_cast<int64_t>(x.size()) / 5;
        for (int64_t i = 0; i < (columns ? width : 1); ++i) {
          part.clear();
          for (int64_t j = i; j < (columns ? 5 * width : std::ssize(x));
               j += columns ? width : stride)
            part.push_back(x[static_cast<size_t>(j)]);
          y.push_back(c.reference(part));
        }
        return y;
      },
      {.tolerance = 2e-5, .sizes = sizes});
}

template <class T, class Sum>
void add(std::vector<Kernel>& list, const std::string& of, const Finders& find, Element e) {
  const std::pair<Along, const char*> ways[] = {
      {Along::Row, ""}, {Along::StridedRow, " strided"}, {Along::Columns, " columns"}};
  for (const Case& c : kCases) {
    for (const auto& [along, way] : ways) {
      const bool order = c.op == ReduceOp::Max;
      const ReduceKernel& k = *(order ? find.order : find.sum)(c.op, e);
      const std::string name = c.name + std::string(way) + of;
      list.push_back(order ? reduction<T, T>(name, k, c, along)
                           : reduction<T, Sum>(name, k, c, along));
    }
  }
}

std::vector<Kernel> reductions() {
  std::vector<Kernel> list;
#if defined(__x86_64__)
  const Sets<Finders> sets = supported({&kV2, &kV3, &kV4});
#else
  const Sets<Finders> sets = supported({&kBase});
#endif
  for (const auto& [set, find] : sets) {
    add<float, double>(list, " float32 " + set, *find, Element::F32);
    add<double, double>(list, " float64 " + set, *find, Element::F64);
  }
  return list;
}

const RegisterFamily family("reduce", reductions);

}  // namespace
}  // namespace taeda::test
