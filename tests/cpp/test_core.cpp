// Layout, promotion, schema, the door and the graph, without Python.
#include "autograd/backward.h"
#include "autograd/engine.h"
#include "autograd/meta.h"
#include "check.h"
#include "ops/core/schema.h"

namespace taeda::test {
namespace {

Dims viewed(DimsRef sizes, DimsRef strides, DimsRef to) {
  Dims out;
  expect(view_strides(sizes, strides, to, &out), "should be viewable");
  return out;
}

const Register layout[] = {
    {"contiguous strides",
     [] {
       expect_equal(contiguous_strides(Dims{2, 3, 4}), Dims{12, 4, 1});
       expect_equal(contiguous_strides(Dims{}), Dims{});
       expect_equal(contiguous_strides(Dims{2, 0, 3}), Dims{3, 3, 1});
     }},
    {"view strides",
     [] {
       expect_equal(viewed(Dims{2, 3, 4}, Dims{12, 4, 1}, Dims{6, 4}), Dims{4, 1});
       expect_equal(viewed(Dims{2, 3}, Dims{1, 2}, Dims{2, 3, 1}), Dims{1, 2, 2});
       expect_equal(viewed(Dims{}, Dims{}, Dims{1, 1}), Dims{1, 1});
       expect_equal(viewed(Dims{4, 1}, Dims{2, 9}, Dims{2, 2}), Dims{4, 2});
       Dims out;
       expect(!view_strides(Dims{2, 3}, Dims{1, 2}, Dims{6}, &out),
              "a transposed matrix has no flat view");
     }},
    {"infer size",
     [] {
       expect_equal(infer_size(Dims{2, -1}, 6), Dims{2, 3});
       expect_throws<Error>([] { infer_size(Dims{4, -1}, 6); });
       expect_throws<Error>([] { infer_size(Dims{-1, -1}, 6); });
       expect_throws<Error>([] { infer_size(Dims{0, -1}, 0); });
     }},
    {"broadcast",
     [] {
       expect_equal(broadcast_sizes(Dims{2, 1, 3}, Dims{4, 1}), Dims{2, 4, 3});
       expect_equal(broadcast_sizes(Dims{}, Dims{0}), Dims{0});
       expect_throws<Error>([] { broadcast_sizes(Dims{2}, Dims{3}); });
     }},
    {"dims grow past the inline buffer",
     [] {
       Dims d;
       for (int64_t i = 0; i < 20; ++i) d.push_back(i);
       Dims copy = d, moved = std::move(d);
       expect_equal(copy, moved);
       moved.erase(0);
       moved.insert(3, -7);
       expect_equal(moved[3], -7);
       expect_equal(moved.size(), size_t(20));
     }},
    {"sizes that overflow are refused",
     [] {
       expect_throws<Error>([] { empty(Dims{int64_t(1) << 40, int64_t(1) << 40}, {}); });
       expect_throws<Error>([] { empty(Dims{2, -1}, {}); });
       Tensor t = empty(Dims{4}, {});
       expect_throws<Error>([&] { make_view(t, Dims{5}, Dims{1}, 0); });
       expect_throws<Error>([&] { make_view(t, Dims{2}, Dims{INT64_MAX}, 0); });
     }},
};

const Register types[] = {
    {"promotion",
     [] {
       expect(promote(DType::UInt8, DType::Int8) == DType::Int16, "uint8 + int8");
       expect(promote(DType::Int64, DType::Float16) == DType::Float16, "int64 + float16");
       expect(promote(DType::Float16, DType::BFloat16) == DType::Float32, "float16 + bfloat16");
       expect(promote(DType::Complex64, DType::Float64) == DType::Complex128,
              "complex64 + float64");
     }},
    {"half rounding",
     [] {
       for (uint32_t bits = 0; bits < 0x10000; ++bits) {
         Half h;
         h.bits = static_cast<uint16_t>(bits);
         float f = h;
         if (f == f) expect(Half(f).bits == bits, "float16 survives float");
       }
       expect_equal(float(BFloat16(1.00390625f)), 1.0f);  // a tie goes to even
     }},
};

const Register schemas[] = {
    {"schema",
     [] {
       Op o = parse_schema(
           "f(self!: Tensor, dim: int[2]? = 3, *, p: float = 1e-5, s: str = 'a, b') -> (a: Tensor, "
           "b: Tensor)");
       expect_equal(o.name, "f");
       expect_equal(o.args.size(), size_t(4));
       expect_equal(o.mutated, 0);
       expect(o.args[1].optional && o.args[1].repeat == 2, "int[2]?");
       expect_equal(std::get<Dims>(o.args[1].fallback), Dims{3, 3});
       expect(o.args[3].keyword_only && std::get<std::string>(o.args[3].fallback) == "a, b",
              "quoted default");
       expect_equal(o.return_names.at(1), "b");
     }},
    {"malformed schemas are named",
     [] {
       expect_throws<Error>([] { parse_schema("f"); });
       expect_throws<Error>([] { parse_schema("f(x) -> Tensor"); });
       expect_throws<Error>([] { parse_schema("f(x: Tenser) -> Tensor"); });
     }},
};

const Register door[] = {
    {"an op called by name",
     [] {
       Tensor a = full(Dims{2, 3}, 2.0, {}), b = full(Dims{3}, 5.0, {});
       expect_equal((a * b + a).size(0), 2);
       expect_equal(sum(a * b, Dims{0, 1}).item().to_double(), 60.0);
       expect_throws<Error>([&] { op<"no_such_op">(a); });
     }},
    {"in-place changes are counted",
     [] {
       Tensor a = full(Dims{3}, 1.0, {});
       uint32_t before = a.version();
       op<"add_">(a, a);
       expect(a.version() == before + 1, "the version counter moves");
     }},
    {"numbers as bounds have a part in the derivative",
     [] {
       for (double at : {-1.0, 0.0, 1.0, 2.0}) {
         Tensor x = full(Dims{}, at, {});
         set_requires_grad(x, true);
         Tensor y = op<"clamp">(x, Scalar(0.0), Scalar(1.0));
         const Edge roots[] = {gradient_edge(y)}, inputs[] = {gradient_edge(x)};
         const Tensor ones[] = {full(Dims{}, 1.0, {})};
         Tensor g = run_grad(roots, ones, {}, inputs)[0];
         expect_equal(g.item().to_double(), at == 0.0 || at == 1.0 ? 1.0 : 0.0);
       }
     }},
};

}  // namespace
}  // namespace taeda::test
