"""Functions, classes and switches of the package that few programs ask for, beside PyTorch's."""

from __future__ import annotations

import pytest

import taeda
from tests.names.both import shown

SAME = """
isinstance(L.FloatStorage(2), L.FloatStorage), isinstance(L.FloatStorage(2), L.DoubleStorage)
L.FloatStorage([1, 2]).tolist(), L.FloatStorage(2).type(), L.FloatStorage.dtype
L.cuda.FloatStorage(2)
isinstance(L.ones(2).storage(), L.cuda.FloatStorage)
L.ones(2).storage_type(), L.ones(2, dtype=L.int64).storage_type()
L.empty(0).set_(L.ones(3).storage(), 1, (2,)), L.empty(0).set_(L.ones(3).storage())
L.empty(0).set_(L.DoubleStorage(2))
L.ones(2).set_(), L.ones(2).set_(L.arange(3.0))
L.ones(2, device="meta").untyped_storage().data_ptr(), L.ones(2, device="meta").storage().nbytes()
x = L.ones(2); x.const_data_ptr() == x.data_ptr()
L.quint8.itemsize, L.int1.is_signed, L.uint7.is_signed, L.bits16.itemsize, L.bit
L.float4_e2m1fn_x2.is_floating_point, L.complex32.is_complex, L.ones(2).dtype == L.qint8
L.quint8.is_signed
L.ones(2).is_xla, L.ones(2).is_ipu
L.ones(2).xpu()
L.ones(2).ipu()
L.ones(2).mtia()
L.sym_max(1, 2), L.sym_max(3, 2.5), L.sym_min(1, 2.5), L.sym_sum([1, 2]), L.sym_not(True)
L.sym_ite(True, 1, 2), L.sym_ite(False, 1, 2), L.sym_int(-2.5), L.sym_float(2)
L.sym_ite(True, 1, 2.5)
L.dequantize(L.ones(2, dtype=L.float64)), L.ones(2).dequantize()
L.jit.wait(L.jit.fork(lambda x: x + 1, 2)), L.wait(L.fork(lambda x: x + 1, 2))
L.jit.fork(lambda x: 1 / 0, 2)
L.set_deterministic_debug_mode("warn"); L.get_deterministic_debug_mode(), L.is_deterministic_algorithms_warn_only_enabled()
L.set_deterministic_debug_mode(2); L.get_deterministic_debug_mode(), L.are_deterministic_algorithms_enabled()
L.set_deterministic_debug_mode(0); L.get_deterministic_debug_mode(), L.are_deterministic_algorithms_enabled()
L.set_deterministic_debug_mode("x")
L.set_deterministic_debug_mode(5)
L.set_deterministic_debug_mode(1.5)
L.OutOfMemoryError is L.cuda.OutOfMemoryError, L.OutOfMemoryError.__mro__[1], L.AcceleratorError.__mro__[1]
L.cond(L.tensor(True), L.sin, L.cos, (L.ones(2),)), L.cond(False, L.sin, L.cos, (L.ones(2),))
L.cond(L.ones(2), L.sin, L.cos, (L.ones(2),))
L.manual_seed(0); L.conv_tbc(L.randn(5, 2, 3), L.randn(3, 3, 4), L.randn(4), 1)
L.smm(L.eye(2).to_sparse(), L.arange(4.0).reshape(2, 2)).coalesce().values()
L.hspmm(L.eye(3).to_sparse(), L.arange(6.0).reshape(3, 2)).coalesce().values()
L.sspaddmm(L.eye(2).to_sparse(), L.eye(2).to_sparse(), L.arange(4.0).reshape(2, 2), beta=3, alpha=2).to_dense()
s = L.eye(2).to_sparse(); s.smm(L.ones(2, 1)).coalesce().values(), s.sspaddmm(s, L.ones(2, 2), beta=2).to_dense()
c = L.eye(2).to_sparse_csr(); L.values_copy(c), L.crow_indices_copy(c), L.col_indices_copy(c)
L.lu(L.arange(4.0).view(2, 2)), L.lu(L.ones(2, 3, 3), get_infos=True).info, L.lu(L.eye(2), get_infos=True).LU, L.zeros(2, 2).lu(True, True)[2]
o = L.empty(0), L.empty(0, dtype=L.int32); L.lu(L.arange(4.0).view(2, 2), out=o), o
L.lu(L.eye(2), out=(L.empty(0),))
L.legacy_contiguous_format is L.contiguous_format, L.functional.lu(L.eye(2))
L.native_channel_shuffle(L.arange(8.0).reshape(1, 4, 2), 2)
L.batch_norm_update_stats(L.arange(12.0).reshape(2, 3, 2), L.zeros(3), L.ones(3), 0.1)
m, v = L.zeros(3), L.ones(3); L.batch_norm_update_stats(L.arange(12.0).reshape(2, 3, 2), m, v, 0.1); m, v
L.manual_seed(0); L.fake_quantize_per_tensor_affine(L.randn(50) * 3, 0.1, 3, -8, 7)
L.fake_quantize_per_tensor_affine(L.tensor([0.26, -1, 9.0]), L.tensor(0.5), L.tensor(1, dtype=L.int32), 0, 7)
L.manual_seed(0); L.fake_quantize_per_channel_affine(L.randn(4, 5) * 3, L.rand(5), L.zeros(5, dtype=L.int32), 1, -8, 7)
L.fake_quantize_per_channel_affine(L.ones(4, 5), L.rand(4), L.zeros(4, dtype=L.int32), 1, -8, 7)
x = L.tensor([0.26, -1, 9.0], requires_grad=True); L.fake_quantize_per_tensor_affine(x, 0.5, 1, 0, 7).sum().backward(); x.grad
m = L.nn.Linear(2, 2); p = m.weight; F = L.__future__; F.set_overwrite_module_params_on_conversion(True); m.double(); F.set_overwrite_module_params_on_conversion(False); m.weight is p, m.weight.dtype
m = L.nn.Linear(2, 2); p = m.weight; F = L.__future__; F.set_swap_module_params_on_conversion(True); m.double(); F.set_swap_module_params_on_conversion(False); m.weight is p, p.dtype, type(p), p.requires_grad
m = L.nn.Linear(1, 1); p = m.weight; F = L.__future__; F.set_swap_module_params_on_conversion(True); m.load_state_dict({k: v.fill_(3) for k, v in m.state_dict().items()}); F.set_swap_module_params_on_conversion(False); m.weight is p, p, m.bias
m = L.nn.Linear(2, 2); p = m.weight; m(L.ones(1, 2)).sum().backward(); F = L.__future__; F.set_swap_module_params_on_conversion(True); m.double(); F.set_swap_module_params_on_conversion(False); m.weight is p, p.grad
x, y = L.ones(2), L.zeros(3); y.foo = 1; L.utils.swap_tensors(x, y); x, y, x.foo, hasattr(y, "foo")
x, y = L.ones(2, 2, requires_grad=True), L.zeros(3); x.sum().backward(); L.utils.swap_tensors(x, y); x, y, y.grad, x.grad
L.embedding_bag(L.eye(4), L.tensor([0, 1, 2]), L.tensor([0, 2]), False, 1)
L.embedding_bag(L.arange(8.0).reshape(4, 2), L.tensor([0, 1, 2, 3, 1]), L.tensor([0, 2, 2]), False, 2)
L.embedding_bag(L.arange(8.0).reshape(4, 2), L.tensor([0, 1, 2, 3, 1]), L.tensor([0, 2, 2]), False, 2, False, None, False, 1)
L.embedding_bag(L.arange(8.0).reshape(4, 2), L.tensor([0, 1, 2, 3, 1]), L.tensor([0, 2, 5]), mode=1, include_last_offset=True)[0]
L.embedding_bag(L.arange(8.0).reshape(4, 2), L.tensor([0, 1, 2]), L.tensor([0, 2]), per_sample_weights=L.arange(3.0))[0]
L.embedding_bag(L.eye(4), L.tensor([0, 1, 2]), L.tensor([0, 2]), False, 5)
"""


@pytest.mark.parametrize("text", SAME.strip().splitlines())
def test_as_in_pytorch(text):
    torch = pytest.importorskip("torch")
    assert shown(taeda, text) == shown(torch, text)


def test_parts_of_batch_norm_make_a_whole():
    taeda.manual_seed(0)
    x, g = taeda.randn(6, 3, 4, dtype=taeda.float64), taeda.randn(6, 3, 4, dtype=taeda.float64)
    weight, bias = (taeda.rand(3, dtype=taeda.float64, requires_grad=True) for _ in range(2))
    running = taeda.zeros(3, dtype=taeda.float64), taeda.ones(3, dtype=taeda.float64)
    x.requires_grad_()
    y = taeda.nn.functional.batch_norm(x, *running, weight, bias, True, 0.1, 1e-5)
    y.backward(g)
    # Two processes with 2 and 4 examples.
    shares, gradients = x.detach().split([2, 4]), g.split([2, 4])
    stats = [taeda.batch_norm_stats(share, 1e-5) for share in shares]
    mean, invstd = (taeda.stack(part) for part in zip(*stats, strict=True))
    counts = taeda.tensor([8.0, 16.0], dtype=taeda.float64)
    moved = taeda.zeros(3, dtype=taeda.float64), taeda.ones(3, dtype=taeda.float64)
    mean, invstd = taeda.batch_norm_gather_stats_with_counts(
        shares[0], mean, invstd, *moved, 0.1, 1e-5, counts
    )
    close = taeda.testing.assert_close
    close(moved, running)
    with taeda.no_grad():
        parts = [taeda.batch_norm_elemt(s, weight, bias, mean, invstd, 1e-5) for s in shares]
        close(taeda.cat(parts), y)
        sums = [
            taeda.batch_norm_backward_reduce(d, s, mean, invstd, weight, True, True, True)
            for s, d in zip(shares, gradients, strict=True)
        ]
        dy, dy_xmu, weight_grad, bias_grad = (sum(part) for part in zip(*sums, strict=True))
        close(weight_grad, weight.grad)
        close(bias_grad, bias.grad)
        back = [
            taeda.batch_norm_backward_elemt(d, s, mean, invstd, weight, dy, dy_xmu, counts)
            for s, d in zip(shares, gradients, strict=True)
        ]
        close(taeda.cat(back), x.grad)
    halves = x.detach().split(3)
    mean, invstd = (
        taeda.stack(part)
        for part in zip(*(taeda.batch_norm_stats(h, 1e-5) for h in halves), strict=True)
    )
    joined = taeda.batch_norm_gather_stats(x, mean, invstd, None, None, 0.1, 1e-5, 12)
    close(joined, taeda.batch_norm_stats(x.detach(), 1e-5))


def test_files_behind_storages(tmp_path):
    path = tmp_path / "numbers.bin"
    x = taeda.from_file(str(path), shared=True, size=3)
    assert x.untyped_storage().filename == str(path)
    y = taeda.from_file(str(path), shared=False, size=3)
    assert y.untyped_storage().filename is None is taeda.ones(2).untyped_storage().filename
    assert taeda.ones(2).share_memory_().untyped_storage().filename is None
    assert taeda.FloatStorage.from_file(str(path), False, 2).size() == 2


def test_what_cannot_be_swapped():
    x = taeda.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Mul"):
        taeda.utils.swap_tensors(taeda.ones(2), x * 2)
    with pytest.raises(RuntimeError, match="Parameter"):
        taeda.utils.swap_tensors(taeda.nn.Parameter(taeda.ones(2)), taeda.ones(2))


def test_copies_of_indices():
    s = taeda.eye(2).to_sparse()
    taeda.indices_copy(s).add_(5), taeda.values_copy(s).add_(5)
    assert s.indices().tolist() == [[0, 1], [0, 1]] and s.values().tolist() == [1, 1]


def test_denormals_are_kept():
    assert taeda.set_flush_denormal(True) is False
    with pytest.raises(TypeError):
        taeda.set_flush_denormal(1)


UNSIGNED = """
L.manual_seed(0); L.randint(0, 100, (4,), dtype=L.uint16), L.randint(3, 2**32, (4,), dtype=L.uint32)
L.manual_seed(0); L.randint(2**63 - 1, (4,), dtype=L.uint64), L.randint_like(L.ones(3, dtype=L.uint16), 7)
L.randint(-1, 100, (4,), dtype=L.uint16)
L.randint(0, 2**17, (4,), dtype=L.uint16)
L.manual_seed(0); L.testing.make_tensor((4,), dtype=L.uint16, device="cpu")
L.manual_seed(0); L.testing.make_tensor((4,), dtype=L.uint32, device="cpu", low=3, high=2000000)
L.manual_seed(0); L.testing.make_tensor((4,), dtype=L.uint64, device="cpu")
L.empty(4, dtype=L.uint16).random_()
"""


@pytest.mark.parametrize("text", UNSIGNED.strip().splitlines())
def test_unsigned_integers(text):
    torch = pytest.importorskip("torch")
    assert shown(taeda, text) == shown(torch, text)
