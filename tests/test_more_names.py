"""Functions at the top level that come from `nn.functional`, rarer methods, and other devices' modules."""

from __future__ import annotations

import platform
from typing import Any

import pytest

import taeda

torch = pytest.importorskip("torch")


def pair(x: torch.Tensor) -> tuple[Any, Any]:
    return taeda.from_dlpack(x.clone()), x


def same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(torch.from_dlpack(ours), theirs)


torch.manual_seed(0)
A, B, Y = torch.rand(4, 3), torch.rand(4, 3), torch.tensor([1.0, -1, 1, -1])
CALLS: dict[str, tuple[Any, ...]] = {
    "affine_grid_generator": (torch.rand(1, 2, 3), [1, 1, 2, 2], False),
    "bilinear": (A, B, torch.rand(2, 3, 3), torch.rand(2)),
    "binary_cross_entropy_with_logits": (A, B),
    "channel_shuffle": (torch.rand(1, 4, 2), 2),
    "cosine_embedding_loss": (A, B, Y),
    "cosine_similarity": (A, B),
    "ctc_loss": (A.log_softmax(1).unsqueeze(1), torch.tensor([[1, 2]]), [4], [2]),
    "frobenius_norm": (A, [0, 1]),
    "grid_sampler": (torch.rand(1, 1, 3, 3), torch.rand(1, 2, 2, 2), 0, 1, True),
    "hinge_embedding_loss": (A[:, 0], Y),
    "instance_norm": (torch.rand(2, 3, 4), None, None, None, None, True, 0.1, 1e-5, False),
    "kl_div": (A.log(), B, 2),
    "margin_ranking_loss": (A[:, 0], B[:, 0], Y, 0.2),
    "norm_except_dim": (A, 2, 1),
    "pairwise_distance": (A, B),
    "pdist": (A,),
    "pixel_shuffle": (torch.rand(1, 4, 2, 2), 2),
    "pixel_unshuffle": (torch.rand(1, 1, 4, 4), 2),
    "poisson_nll_loss": (A, B, True, False, 1e-8, 1),
    "rrelu": (A - 0.5,),
    "triplet_margin_loss": (A, B, A.flip(0)),
    "vander": (A[:, 0], 3, True),
    "adjoint": (A,),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    def translated(v: Any) -> Any:
        return pair(v)[0] if isinstance(v, torch.Tensor) else v

    ours = getattr(taeda, name)(*map(translated, CALLS[name]))
    same(ours.contiguous(), getattr(torch, name)(*CALLS[name]).contiguous())


def test_wrong_numbers_for_words() -> None:
    x = taeda.ones(2)
    with pytest.raises(ValueError, match="reduction must be 0, 1 or 2"):
        taeda.kl_div(x, x, 5)
    with pytest.raises(RuntimeError, match="one dimension"):
        taeda.vander(x.reshape(1, 2))
    with pytest.raises(RuntimeError, match="1 dimension"):
        x.adjoint()


@pytest.mark.parametrize(("shape", "wrap"), [((3, 3), False), ((7, 3), True), ((7, 3), False)])
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool) -> None:
    for transposed in (False, True):
        ours, theirs = pair(torch.zeros(shape))
        if transposed:
            ours, theirs = ours.t(), theirs.t()
        assert ours.fill_diagonal_(5, wrap=wrap) is ours
        same(ours, theirs.fill_diagonal_(5, wrap=wrap))


def test_fill_diagonal_of_cubes_and_errors() -> None:
    ours, theirs = pair(torch.zeros(3, 3, 3))
    same(ours.fill_diagonal_(2), theirs.fill_diagonal_(2))
    x = taeda.ones(3, 3, requires_grad=True)
    (x * 1).fill_diagonal_(0).sum().backward()
    assert x.grad is not None and taeda.equal(x.grad, 1 - taeda.eye(3))
    for wrong in (taeda.zeros(2), taeda.zeros(2, 2, 3)):
        with pytest.raises(RuntimeError, match="fill_diagonal_"):
            wrong.fill_diagonal_(1)


def test_methods() -> None:
    ours, theirs = pair(torch.rand(2, 3, 4, 5))
    assert ours.dim_order() == theirs.dim_order() == (0, 1, 2, 3)
    ours, theirs = ours.permute(0, 3, 1, 2), theirs.permute(0, 3, 1, 2)
    assert ours.dim_order() == theirs.dim_order()
    with pytest.raises(RuntimeError, match="several orders"):
        taeda.ones(2, 1, 1).dim_order(ambiguity_check=True)
    ours, theirs = pair(A)
    same(ours.swapaxes_(0, 1), theirs.clone().swapaxes_(0, 1))
    same(ours.swapdims_(0, 1), theirs)
    same(ours.clone().map2_(ours, ours, lambda a, b, c: a + b * c), theirs + theirs * theirs)
    assert not ours.is_distributed()
    with pytest.raises(RuntimeError, match="pinned memory .* needs a CUDA device"):
        ours.pin_memory()
    with pytest.warns(UserWarning, match="reshape"):
        assert ours.resize(3, 4).shape == (3, 4)


def test_capabilities_of_the_processor() -> None:
    ours, theirs = taeda.cpu.get_capabilities(), torch.cpu.get_capabilities()
    assert taeda.cpu.get_capabilities() is ours
    with pytest.raises(TypeError):
        ours["avx2"] = False
    assert {k: v for k, v in ours.items() if k != "cpu_name" and theirs.get(k, v) != v} == {}
    assert ours["architecture"] == platform.machine()


def test_devices() -> None:
    assert taeda.cpu.is_available() and taeda.cpu.device_count() == 1
    with taeda.cpu.stream(taeda.cpu.current_stream()):
        taeda.cpu.current_stream().record_event().synchronize()
    taeda.cpu.synchronize()
    taeda.init_num_threads()
    with pytest.raises(RuntimeError, match="expected the CPU"):
        taeda.cpu.set_device("meta")
    for module in (taeda.mps, taeda.xpu):
        assert not module.is_available() and module.device_count() == 0
        module.manual_seed(1)
    with pytest.raises(RuntimeError, match="no MPS"):
        taeda.mps.synchronize()
    with pytest.raises(AssertionError, match="not been built with XPU"):
        taeda.xpu.current_device()


def test_saved_tensors() -> None:
    graph = taeda.autograd.graph
    a = taeda.randn(3, requires_grad=True)
    with graph.save_on_cpu():
        y = a.exp().sum()
    y.backward()
    taeda.testing.assert_close(a.grad, a.detach().exp())
    with pytest.raises(RuntimeError, match="no cuda"):
        graph.save_on_cpu(pin_memory=True)
    hooks = graph.save_on_cpu()
    with graph.disable_saved_tensors_hooks("none"), pytest.raises(RuntimeError, match="none"):
        hooks.__enter__()
    with graph.save_on_cpu(), pytest.raises(RuntimeError, match="set already"):
        graph.disable_saved_tensors_hooks("set already").__enter__()


def test_mutation_of_saved_tensors() -> None:
    graph = taeda.autograd.graph
    a = taeda.randn(3, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        y = (b**2).sum()
        b.sin_()
        y.backward()
        z = (b**2).sum()
        with pytest.raises(RuntimeError, match="nested"):
            graph.allow_mutation_on_saved_tensors().__enter__()
    taeda.testing.assert_close(a.grad, 2 * a.detach())
    with pytest.raises(AssertionError, match="within"):
        z.backward()
    x = taeda.ones(2, requires_grad=True)
    y = (x * 1).square()
    saved = y.grad_fn._saved_self if hasattr(y.grad_fn, "_saved_self") else None
    t = taeda.ones(2)
    graph.increment_version([t, t])
    assert t._version == 2 and (saved is None or saved._version >= 0)


def test_split_names_its_tensor_as_pytorch_does() -> None:
    for lib in (taeda, torch):
        x = lib.arange(5)
        for sizes, expected in ((2, [[0, 1], [2, 3], [4]]), ([2, 3], [[0, 1], [2, 3, 4]])):
            parts = lib.split(tensor=x, split_size_or_sections=sizes)
            assert [part.tolist() for part in parts] == expected
        assert lib.functional.split(x, 4)[1].tolist() == [4]
    assert not [name for name in torch.functional.__all__ if not hasattr(taeda.functional, name)]


def test_callbacks_of_a_backward_pass() -> None:
    def log_of(lib: Any) -> list[Any]:
        engine, log = lib.autograd.Variable._execution_engine, []
        x, y = (lib.ones(2, requires_grad=True) for _ in range(2))

        def hook(grad: Any) -> None:
            engine.queue_callback(lambda: log.append(("end", x.grad is not None)))
            log.append(engine.is_checkpoint_valid() and lib.autograd._is_checkpoint_valid())

        x.register_hook(hook)
        (x * y).sum().backward()
        (x * y).sum().backward(inputs=[x])
        log.append(engine.is_checkpoint_valid())
        with pytest.raises(RuntimeError, match="during backward pass"):
            engine.queue_callback(print)
        return log

    assert log_of(taeda) == log_of(torch)


def test_tensors_of_several_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU: errors, and with the CPU in a GPU's place what is computed."""
    from taeda.cuda import comm

    x = taeda.arange(6.0).reshape(3, 2)
    if not taeda.cuda.is_available():
        for call in (lambda: comm.broadcast(x, [0]), lambda: comm.scatter(x, [0]), lambda: comm.gather([x]),
                     lambda: comm.reduce_add([x]), lambda: comm.broadcast_coalesced([x], [0]), taeda.cuda._lazy_init):  # fmt: skip
            with pytest.raises(AssertionError):
                call()
        called: list[int] = []
        taeda.cuda._lazy_call(lambda: called.append(1), seed=True)
        assert not called and taeda.cuda.amp.common.amp_definitely_not_available()
    with pytest.raises(ValueError, match="Expected a non cpu device"):
        comm.broadcast(x, ["cpu"])
    for both in ({}, {"devices": [0], "out": [x]}):
        with pytest.raises(RuntimeError, match="exactly one"):
            comm.broadcast(x, **both)
    monkeypatch.setattr(comm, "_device", lambda who, given: taeda.device("cpu"))
    monkeypatch.setattr(comm, "_need_cuda", lambda who, tensors: None)
    assert [t.tolist() for t in comm.broadcast(x, [0, 1])] == [x.tolist()] * 2
    out = [taeda.empty(3, 2), taeda.empty(3, 2)]
    assert comm.broadcast(x, out=out) == tuple(out) and out[1].equal(x)
    assert [len(t) for t in comm.scatter(x, [0, 1])] == [2, 1]
    pieces = comm.scatter(x, [0, 1], chunk_sizes=[1, 2], streams=[None, None])
    assert comm.gather(pieces).equal(x) and pieces[0].tolist() == [[0.0, 1.0]]
    comm.scatter(x, dim=1, out=(halves := [taeda.empty(3, 1), taeda.empty(3, 1)]))
    assert comm.gather(halves, dim=1, destination="cpu").equal(x)
    assert comm.gather([taeda.tensor(1.0), taeda.tensor(2.0)]).tolist() == [1.0, 2.0]
    total = comm.reduce_add([x, x, x])
    assert total.equal(3 * x) and x.equal(taeda.arange(6.0).reshape(3, 2))
    assert comm.reduce_add_coalesced([[x, x], [x, x]])[1].equal(2 * x)
    assert [len(row) for row in comm.broadcast_coalesced([x, x], [0, 1, 2])] == [2, 2, 2]
    with pytest.raises(RuntimeError, match="one for each device"):
        comm.scatter(x, [0, 1], chunk_sizes=[3])
    with pytest.raises(ValueError, match="invalid size"):
        comm.reduce_add([x, x[:1]])
