"""Modules and functions that few programs ask for, beside PyTorch's."""

from __future__ import annotations

import datetime
import gc
import importlib
import math
import warnings

import pytest

import taeda
from tests.names.both import shown

SAME = """
M = L.monitor; s = M.Stat("n", [M.Aggregation.SUM, M.Aggregation.MEAN, M.Aggregation.COUNT, M.Aggregation.MAX, M.Aggregation.MIN], __import__("datetime").timedelta(hours=1), 3); [s.add(x) for x in (2, 7, 3)]; sorted((str(k), v) for k, v in s.get().items()), s.count, s.name
M = L.monitor; D = __import__("datetime"); seen = []; h = M.register_event_handler(lambda e: seen.append((e.name, dict(e.data)))); M.log_event(M.Event("n", D.datetime.now(), {"a": 1, "b": 2.5, "c": "x"})); s = M.Stat("q", [M.Aggregation.SUM], D.timedelta(hours=1), 1); s.add(4); M.unregister_event_handler(h); M.log_event(M.Event("n", D.datetime.now(), {})); len(seen), seen[0][0], sorted(seen[0][1]), seen[1]
C = L.compiler; C.get_default_backend(), C.set_default_backend("eager"), C.get_default_backend(), C.set_default_backend(None), C.get_default_backend()
C = L.compiler; f = lambda: 1; C.assume_constant_result(f) is f
L.compiler.set_stance("force_eager", force_backend="eager")
s = L.compiler.set_stance("force_eager"); s.__enter__(), s.__exit__(None, None, None)
L.compiler.config.recompile_limit, L.compiler.config.dynamic_shapes, L.compiler.config.verbose
L.sparse.sampled_addmm(L.eye(2).to_sparse_csr(), L.ones(2, 3), L.ones(3, 2), beta=2.0, alpha=3.0).values()
L.sparse.sampled_addmm(L.eye(2).to_sparse_csr(), L.ones(2, 3), L.ones(2, 2))
a = L.eye(3).to_sparse_csr(); m = L.arange(6.0).reshape(3, 2).requires_grad_(); L.sparse.sampled_addmm(a, m, m.detach().t()).values().sum().backward(); m.grad
x = L.ones(2, dtype=L.float64, requires_grad=True); L.autograd.gradcheck(lambda x: x * x, x, masked=True), L.autograd.gradcheck(lambda x: x * x, x, masked=False), L.autograd.gradgradcheck(lambda x: x ** 3, x, masked=True)
[n for n in dir((L.ones(2, requires_grad=True) * L.ones(2, requires_grad=True)).grad_fn) if n.startswith("_saved")]
[n for n in dir(L.ones(2, requires_grad=True).exp().grad_fn) if n.startswith("_saved")]
L.autograd.function.InplaceFunction(True).inplace, type(L.autograd.Function) is L.autograd.function.FunctionMeta
f = lambda g: None; L.utils.hooks.unserializable_hook(f) is f
F = L.nn.functional; F.grad is L.nn.grad, F.has_torch_function_unary(L.ones(1)), F.has_torch_function_variadic(L.ones(1), 2)
L.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": 3}}), L.nn.factory_kwargs(None)
L.nn.factory_kwargs({"x": 1})
L.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"device": 3}})
L.testing.assert_allclose(L.ones(2), [1.0, 1.0]), L.testing.assert_allclose(L.ones(2), L.ones(2, dtype=L.float64))
L.testing.assert_allclose(L.ones(2), [1.0, 1.5])
L.masked.is_masked_tensor(L.ones(1))
[f"{L.utils.benchmark.trim_sigfig(x, n):.6g}" for x, n in ((123.456, 2), (0.00123456, 3))]
A = L.jit.Attribute(3, int); A.value, A.type, L.jit.onednn_fusion_enabled()
s = L.jit.set_fusion_strategy([("STATIC", 1)]); L.jit.set_fusion_strategy(s), s
L.jit.set_fusion_strategy([("x", 1)])
L.func.functionalize(lambda x: x.add_(1))(L.ones(1)), L.func.debug_unwrap(L.ones(1))
L.func.functionalize(len, remove="x")
v = []; L.vmap(lambda x: v.append(L.func.debug_unwrap(x).shape) or x)(L.ones(3, 2)); v
L.functional.pca_lowrank is L.pca_lowrank, L.functional.svd_lowrank is L.svd_lowrank
type("C", (), {}); C = type("C", (), {}); L.utils.set_module(C, "a.b"); C.__module__
L.utils.set_module(3, 4)
m = type("m", (), {"__version__": "2.13.0", "__name__": "m"}); c = L.serialization.check_module_version_greater_or_equal; c(m, (2, 0)), c(m, (9, 0)), c(m, (2, 13, 1))
m = type("m", (), {"__version__": "x.y", "__name__": "m"}); L.serialization.check_module_version_greater_or_equal(m, (2, 0))
L.serialization.default_restore_location(L.UntypedStorage(2), "cpu").nbytes()
L.serialization.default_restore_location(L.UntypedStorage(2), "foo")
P = L.autograd.profiler; e = P.EnforceUnique(); e.see(1, 2), e.see(1)
P = L.autograd.profiler; e = P.EnforceUnique(); e.see(1, 2); e.see(1, 2)
K = L.autograd.profiler.KinetoStepTracker; K.init_step_count("a"), K.init_step_count("b"), K.increment_step("a") - K.current_step(), K.increment_step("b") - K.current_step(), K.erase_step_count("a"), K.erase_step_count("a"), K.erase_step_count("b")
o = L.overrides; L.add in o.get_overridable_functions()[L], L.nn.functional.relu is not None, L.ones in o.get_ignored_functions(), o.get_testing_overrides()[L.add](1, 2)
L.overrides.get_testing_overrides()[L.add](1, 2, 3, 4, 5)
w = L.utils.weak; x, y = L.ones(2), L.ones(2); d = w.WeakTensorKeyDictionary(); d[x] = 1; d[y] = 2; len(d), d[x], d[y], x in d, [k is x or k is y for k in d]
w = L.utils.weak; d = w.WeakIdKeyDictionary(); x = L.ones(1); d[x] = 1; del x; len(d)
w = L.utils.weak; x = L.ones(1); r = w.TensorWeakRef(x); a = r() is x; del x; a, r()
L.utils.weak.TensorWeakRef(3)
E = L.utils.collect_env; E.run("echo hi"), E.run("false"), E.run_and_read_all(lambda c: (0, "a", ""), "x"), E.run_and_read_all(lambda c: (1, "a", ""), "x")
E = L.utils.collect_env; E.run_and_parse_first_match(lambda c: (0, "v 1.2", ""), "x", r"v (.*)"), E.run_and_return_first_line(lambda c: (0, "a b", ""), "x")
c = L.utils.cpp_extension; c.check_compiler_ok_for_platform("no-such-compiler"), isinstance(c.is_ninja_available(), bool)
P = L.ao.pruning; m = L.nn.Sequential(L.nn.Sequential(L.nn.Linear(1, 1))); P.fqn_to_module(m, "0.0"), P.fqn_to_module(m, "0.x"), P.module_to_fqn(m, m[0][0]), sorted(P.get_arg_info_from_tensor_fqn(m, "0.0.weight").items())
Q = L.ao.quantization; L.manual_seed(0); c, b = L.nn.Conv2d(1, 2, 3).eval(), L.nn.BatchNorm2d(2).eval(); b.running_var.fill_(4.0); f = Q.fuse_conv_bn(False, c, b); f.weight, f.bias
Q = L.ao.quantization; L.manual_seed(0); c, b = L.nn.Linear(2, 2).eval(), L.nn.BatchNorm1d(2).eval(); b.running_mean.fill_(4.0); f = Q.fuse_linear_bn(False, c, b); f.weight, f.bias
Q = L.ao.quantization; Q.fuse_conv_bn(False, L.nn.Conv2d(1, 2, 3).eval(), L.nn.BatchNorm2d(2))
Q = L.ao.quantization; w = Q.QuantWrapper(L.nn.ReLU()); w(-L.ones(1)), list(dict(w.named_children()))
L.backends.mkldnn.flags(enabled=False).__enter__()
"""
IMPORTS = """monitor compiler.config utils.hooks utils.weak utils.benchmark utils.collect_env utils.cpp_extension
autograd.profiler ao.pruning ao.quantization"""


@pytest.mark.parametrize("text", SAME.strip().splitlines())
def test_as_in_pytorch(text):
    torch = pytest.importorskip("torch")
    for name in IMPORTS.split():
        importlib.import_module(f"torch.{name}")
        importlib.import_module(f"taeda.{name}")
    ours, theirs = shown(taeda, text), shown(torch, text)
    assert ours == theirs


def test_windows_of_time():
    stat = taeda.monitor.Stat("s", [taeda.monitor.Aggregation.SUM], datetime.timedelta(0))
    stat.add(2)
    assert stat.get() == {taeda.monitor.Aggregation.SUM: 2.0} and stat.count == 0
    with pytest.raises(TypeError, match="data"):
        taeda.monitor.Event("n", datetime.datetime.now(), {"a": []})
    handle = taeda.monitor.register_event_handler(print)
    taeda.monitor.unregister_event_handler(handle)
    with pytest.raises(RuntimeError, match="not registered"):
        taeda.monitor.unregister_event_handler(handle)


def test_events_for_tensorboard():
    written = []

    class Writer:
        def add_scalar(self, *args, walltime):
            written.append((*args, walltime))

    handle = taeda.monitor.register_event_handler(taeda.monitor.TensorboardEventHandler(Writer()))
    try:
        stat = taeda.monitor.Stat(
            "s", [taeda.monitor.Aggregation.MAX], datetime.timedelta(hours=1), 2
        )
        stat.add(1)
        stat.add(5)
    finally:
        taeda.monitor.unregister_event_handler(handle)
    ((name, value, walltime),) = written
    assert (name, value) == ("s.max", 5.0) and walltime > 1e9


def tracked(library):
    module = importlib.import_module(f"{library.__name__}.utils.module_tracker")
    nn = library.nn
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU(), nn.Linear(1, 1)))
    seen = []
    with module.ModuleTracker() as tracker:
        for part in (model[0], model[1][0], model[1][1]):
            part.register_forward_hook(
                lambda *a: seen.append((sorted(tracker.parents), tracker.is_bw))
            )
        model[1][1].weight.register_hook(
            lambda g: seen.append((sorted(tracker.parents), tracker.is_bw))
        )
        for _ in range(2):
            model(library.ones(1, 1, requires_grad=True)).sum().backward()
            seen.append((sorted(tracker.parents), tracker.is_bw))
    return seen


def test_modules_at_work():
    ours = tracked(taeda)
    assert (["Global", "Sequential", "Sequential.1", "Sequential.1.0"], False) not in ours
    assert (["Global", "Sequential", "Sequential.1"], False) in ours
    assert ours[-1] == (["Global"], False)
    torch = pytest.importorskip("torch")
    # While a backward pass runs, PyTorch's hooks of parameters and modules come in any order.
    assert [s for s in ours if not s[1]] == [s for s in tracked(torch) if not s[1]]
    assert all("Global" in names for names, _ in ours) and any(backward for _, backward in ours)


def test_modules_and_their_inputs():
    apply = taeda.nn.parallel.parallel_apply
    assert apply([taeda.nn.ReLU(), taeda.nn.Tanh()], [taeda.ones(1), (taeda.zeros(1),)]) == [1, 0]
    with pytest.raises(ValueError, match="2 inputs"):
        apply([taeda.nn.ReLU(), taeda.nn.Tanh()], [taeda.ones(1)])
    with pytest.raises(RuntimeError, match="sparse_csr"):
        taeda.sparse.sampled_addmm(taeda.eye(2), taeda.ones(2, 3), taeda.ones(3, 2))


@pytest.fixture
def operations():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield taeda.library


def test_opcheck(operations):
    @operations.custom_op("names::right", mutates_args=())
    def right(x: taeda.Tensor, n: int) -> taeda.Tensor:
        return taeda.from_numpy(x.detach().numpy() * n)

    x = taeda.rand(3, requires_grad=True)
    check = operations.opcheck
    with pytest.raises(operations.OpCheckError, match="no derivative"):
        check(right, (x, 2))
    right.register_autograd(
        lambda ctx, g: (g * ctx.n, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]),
    )
    found = check(right, (x, 2), raise_exception=False)
    assert found["test_autograd_registration"] == "SUCCESS"
    assert "without data" in str(found["test_faketensor"])
    right.register_fake(lambda x, n: taeda.empty_like(x))
    assert set(check("names::right", (x,), {"n": 2}).values()) == {"SUCCESS"}
    right.register_fake(lambda x, n: x.new_empty(7))
    with pytest.raises(operations.OpCheckError, match="7"):
        check(right, (x, 2), test_utils="test_faketensor")
    with pytest.raises(ValueError, match="test_utils"):
        check(right, (x, 2), test_utils="test_nothing")

    @operations.custom_op("names::wrong", mutates_args=())
    def wrong(x: taeda.Tensor) -> taeda.Tensor:
        x.detach().numpy()[...] += 1
        return x.clone()

    with pytest.raises(operations.OpCheckError, match="changes argument 'x'"):
        check(wrong, (taeda.ones(2),), test_utils="test_schema")
    calls = []

    @operations.custom_op("names::unsteady", mutates_args=())
    def unsteady(x: taeda.Tensor) -> taeda.Tensor:
        calls.append(1)
        return x + len(calls)

    with pytest.raises(operations.OpCheckError, match="two calls"):
        check(unsteady, (taeda.ones(2),), test_utils="test_aot_dispatch_dynamic")


def test_autocast_of_operations(operations):
    seen = []

    @operations.custom_op("names::cast", mutates_args=())
    def cast(x: taeda.Tensor, y: taeda.Tensor) -> taeda.Tensor:
        seen.append((x.dtype, y.dtype, taeda.is_autocast_enabled("cpu")))
        return x.clone()

    operations.register_autocast(cast, "cpu", taeda.bfloat16)
    x, y = taeda.ones(2), taeda.ones(2, dtype=taeda.int64)
    cast(x, y)
    with taeda.autocast("cpu"):
        assert cast(x, y).dtype is taeda.bfloat16
        assert taeda.is_autocast_enabled("cpu")
    assert seen == [(taeda.float32, taeda.int64, False), (taeda.bfloat16, taeda.int64, False)]
    with pytest.raises(ValueError, match="device_type"):
        operations.register_autocast(cast, "tpu", taeda.bfloat16)
    with pytest.raises(FutureWarning, match="register_fake"), warnings.catch_warnings():
        warnings.simplefilter("error")
        operations.impl_abstract("names::cast", lambda x, y: x)


def test_what_hooks_lose():
    x = taeda.ones(1, requires_grad=True)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="will not be serialized"):
        taeda.utils.hooks.warn_if_has_hooks(x)


def test_the_environment_as_text():
    env = importlib.import_module("taeda.utils.collect_env")
    text = env.get_pretty_env_info()
    assert f"taeda version: {taeda.__version__}" in text and "Python version: 3" in text
    assert env.get_env_info().is_cuda_available == "False"


def test_version_of_a_compiler():
    extension = importlib.import_module("taeda.utils.cpp_extension")
    assert extension.get_compiler_abi_compatibility_and_version("no-such") == (False, "0.0.0")
    assert extension.get_default_build_root().count("taeda_extensions") <= 1
    version = taeda.torch_version.TorchVersion("2.13.0")
    assert version > "2.9" and version < (3, 0) and not math.isnan(len(version))


def test_weak_keys_are_let_go():
    weak = importlib.import_module("taeda.utils.weak")
    d = weak.WeakIdKeyDictionary()
    for _ in range(3):
        d[taeda.ones(1)] = 1
    gc.collect()
    assert len(d) == 0 and list(d) == []


def test_the_tracker_after_steps_that_failed():
    net = taeda.nn.Sequential(taeda.nn.Linear(2, 2), taeda.nn.Tanh())
    x = taeda.ones(2, requires_grad=True)
    with taeda.utils.module_tracker.ModuleTracker() as tracker:
        with pytest.raises(RuntimeError):
            net(taeda.ones(3))
        assert tracker.parents == {"Global"}
        handle = net[0].weight.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            net(x).sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
        handle.remove()
        net(x).sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
