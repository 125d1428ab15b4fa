// Matrices beyond LAPACK's 32-bit sizes are refused before anything of them is read.
#include "check.h"
#include "kernels/cpu/linalg/lapack.h"

namespace taeda::test {
namespace {

namespace lapack = cpu::lapack;

double* const kNothing = nullptr;
int32_t* const kNoInfo = nullptr;

const Register sizes[] = {
    {"a side that 32 bits cannot hold is an error",
     [] {
       const int64_t huge = int64_t{1} << 31;
       const lapack::Shape tall{1, huge, 1};
       expect_throws<Error>([&] { lapack::lu_factor(tall, kNothing, kNoInfo, kNoInfo); });
       expect_throws<Error>([&] { lapack::qr_factor(tall, kNothing, kNothing); });
       expect_throws<Error>([&] { lapack::cholesky(1, huge, false, kNothing, kNoInfo); });
       const lapack::Triangle lower{true, false, false, cpu::Trans::No};
       expect_throws<Error>([&] { lapack::solve_triangular(tall, lower, kNothing, 0, kNothing); });
     }},
    {"work space that 32 bits cannot count is an error",
     [] {
       const lapack::Shape square{1, 40000, 40000};
       expect_throws<Error>([&] {
         lapack::svd(square, true, false, kNothing, kNothing, kNothing, kNothing, kNoInfo);
       });
       expect_throws<Error>(
           [&] { lapack::eigh(1, 40000, false, true, kNothing, kNothing, kNoInfo); });
       expect_throws<Error>([&] {
         lapack::least_squares(lapack::LeastSquares::SVD, square, 1, kNothing, kNothing, 0.0,
                               kNoInfo, kNothing, kNoInfo);
       });
     }},
};

}  // namespace
}  // namespace taeda::test
