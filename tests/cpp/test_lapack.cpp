// Matrices beyond LAPACK's 32-bit sizes are refused before anything of them is read.
#include "check.h"
#include "kernels/linalg.h"

namespace taeda::test {
namespace {

double* const kNothing = nullptr;
int32_t* const kNoInfo = nullptr;

const Register sizes[] = {
    {"a side that 32 bits cannot hold is an error",
     [] {
       const int64_t huge = int64_t{1} << 31;
       const MatrixBatch tall{1, huge, 1};
       expect_throws<Error>(
           [&] { SolveKernels<double>::cpu.lu_factor(tall, kNothing, kNoInfo, kNoInfo); });
       expect_throws<Error>([&] { QrKernels<double>::cpu.factor(tall, kNothing, kNothing); });
       expect_throws<Error>(
           [&] { SolveKernels<double>::cpu.cholesky(1, huge, false, kNothing, kNoInfo); });
       const TriangularSystem lower{true, false, false, Trans::No};
       expect_throws<Error>(
           [&] { SolveKernels<double>::cpu.triangular(tall, lower, kNothing, 0, kNothing); });
     }},
    {"work space that 32 bits cannot count is an error",
     [] {
       const MatrixBatch square{1, 40000, 40000};
       expect_throws<Error>([&] {
         EigenKernels<double>::cpu.svd(square, true, false, kNothing, kNothing, kNothing, kNothing,
                                       kNoInfo);
       });
       expect_throws<Error>([&] {
         HermitianKernels<double>::cpu.eigh(1, 40000, false, true, kNothing, kNothing, kNoInfo);
       });
       expect_throws<Error>([&] {
         LeastSquaresKernels<double>::cpu.solve(LeastSquares::SVD, square, 1, kNothing, kNothing,
                                                0.0, kNoInfo, kNothing, kNoInfo);
       });
     }},
};

}  // namespace
}  // namespace taeda::test
