"""Names that packages written for PyTorch reach for, private ones among them."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import textwrap
import typing

import pytest

import taeda
from taeda import hub, jit, onnx
from taeda.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs


def run(program):
    """What a program prints that imports torch."""
    program = "import taeda.compat\ntaeda.compat.install()\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_private_modules():
    assert run(
        """
        import torch, torch._C, torch._dynamo, torch._dynamo.config
        from torch._dynamo.utils import is_compile_supported
        from torch.utils.data._utils.collate import default_collate, default_collate_fn_map
        from torch.onnx import symbolic_opset11
        from torch._subclasses.fake_tensor import FakeTensor, is_fake
        from torch.fx.experimental.proxy_tensor import get_proxy_mode
        torch._C._log_api_usage_once("x")
        print(is_fake(torch.ones(1)), get_proxy_mode())
        print(torch._C._get_tracing_state(), torch._C._are_functorch_transforms_active())
        torch.vmap(lambda x: print(torch._C._are_functorch_transforms_active()) or x)(torch.ones(2))
        print(torch._dynamo.is_compiling(), torch._dynamo.disable(len) is len, is_compile_supported("cpu"))
        print(isinstance(torch.nn.Linear(1, 1), torch._dynamo.eval_frame.OptimizedModule))
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            print(torch._dynamo.config.capture_scalar_outputs)
        with torch._dynamo.config.patch("verbose", True):
            print(torch._dynamo.config.verbose)
        print(torch._dynamo.config.capture_scalar_outputs, torch._dynamo.config.verbose)
        print(default_collate is torch.utils.data.default_collate, hasattr(torch._C, "_jit_init"))
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
        keys = keys | torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)
        with torch.autocast("cpu", torch.bfloat16):
            with torch._C._ExcludeDispatchKeyGuard(keys):
                print((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
            print((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)
        """
    ) == [
        "False None",
        "None False",
        "True",
        "False True False",
        "False",
        "True",
        "True",
        "False False",
        "True False",
        "taeda.float32",
        "taeda.bfloat16",
    ]


def test_checks():
    torch = pytest.importorskip("torch")
    for name in ("", "_index", "_value", "_type", "_not_implemented"):
        ours, theirs = getattr(taeda, "_check" + name), getattr(torch, "_check" + name)
        assert ours(True) is theirs(True) is None
        for args in ((False,), (False, lambda: "what"), (1,), (False, "text")):
            with pytest.raises(Exception) as their_error:
                theirs(*args)
            with pytest.raises(their_error.type) as our_error:
                ours(*args)
            assert str(their_error.value).startswith(str(our_error.value))
    with pytest.raises(RuntimeError):
        taeda._check_is_size(-1)
    with pytest.raises(RuntimeError):
        taeda._check_is_size(3, max=2)
    taeda._check_is_size(2, max=2)
    taeda._check_tensor_all(taeda.tensor([True, True]))
    with pytest.raises(RuntimeError, match="some"):
        taeda._check_tensor_all(taeda.tensor([True, False]), lambda: "some")
    with pytest.raises(TypeError, match="bool"):
        taeda._check_tensor_all(taeda.ones(2))
    with pytest.raises(AssertionError, match="m"):
        taeda._assert(taeda.tensor(False), "m")
    with pytest.raises(RuntimeError, match="nonzero"):
        taeda._assert_async(taeda.tensor(0))
    with pytest.raises(RuntimeError, match="m"):
        taeda._assert_async(taeda.tensor(False), "m")
    assert taeda._shape_as_tensor(taeda.ones(2, 3)).tolist() == [2, 3]
    assert taeda._shape_as_tensor(taeda.tensor(1)).dtype is taeda.int64


def test_hub_keeps_downloaded_weights(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(hub._download, "_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert hub.get_dir() == str(tmp_path / "home" / "hub")
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert hub.get_dir() == str(tmp_path / "cache" / "torch" / "hub")
    hub.set_dir(tmp_path / "mine")
    assert hub.get_dir() == str(tmp_path / "mine")

    taeda.save({"w": taeda.ones(2)}, tmp_path / "w.pt")
    url = (tmp_path / "w.pt").as_uri()
    assert hub.load_state_dict_from_url(url, progress=False)["w"].tolist() == [1, 1]
    assert "Downloading" in capsys.readouterr().err
    (tmp_path / "w.pt").unlink()
    assert hub.load_state_dict_from_url(url)["w"].tolist() == [1, 1]
    assert capsys.readouterr().err == ""
    with pytest.raises(OSError):
        hub.load_state_dict_from_url(url, file_name="other.pt", progress=False)

    (tmp_path / "a-00000000.bin").write_bytes(b"data")
    url = (tmp_path / "a-00000000.bin").as_uri()
    with pytest.raises(RuntimeError, match="invalid hash"):
        hub.download_url_to_file(url, tmp_path / "b", "00000000", progress=False)
    with pytest.raises(RuntimeError, match="invalid hash"):
        hub.load_state_dict_from_url(url, check_hash=True, progress=False)
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".partial"]
    assert not (tmp_path / "b").exists()
    hub.download_url_to_file(url, tmp_path / "b", "3a6eb079", progress=True)
    assert (tmp_path / "b").read_bytes() == b"data"
    assert hub.HASH_REGEX.search("a-12ab.bin").group(1) == "12ab"


@pytest.mark.filterwarnings("ignore:The inner type")
def test_jit_looks_into_containers():
    torch = pytest.importorskip("torch")
    values = [[1], ["a"], [], (1, "a"), (1, 2), {"a": 1}, {1: 1}, None, 3, True, [[1]], [["a"]]]
    kinds = [
        typing.List[int],  # noqa: UP006
        list[str],
        tuple[int, str],
        dict[str, int],
        typing.Optional[int],  # noqa: UP045
        int | str,
        (int, list[int]),
        list[list[int]],
        int,
    ]
    for value in values:
        for kind in kinds:
            if isinstance(kind, type(int | str)):
                kind = typing.Union[int, str]  # noqa: UP007
                if value is None:
                    continue  # PyTorch takes every union for one with None
            assert jit.isinstance(value, kind) == torch.jit.isinstance(value, kind), (value, kind)
    with pytest.raises(RuntimeError):
        jit.isinstance([1], list)
    assert not isinstance(jit.script_method(taeda.nn.Linear(1, 1)), jit.ScriptModule)
    assert issubclass(jit.TracerWarning, Warning)
    for kind in (jit.ScriptFunction, jit.RecursiveScriptModule, taeda.SymInt, taeda.TensorType):
        with pytest.raises(TypeError):
            kind(3)

    for kind in (taeda.Stream, taeda.Event):
        with pytest.raises(RuntimeError, match="no device"):
            kind()

    class Own(jit.ScriptModule):
        pass

    assert isinstance(Own(), taeda.nn.Module)


def test_symbolics_are_kept():
    @onnx.symbolic_helper.parse_args("v", "i")
    def write(g, x, n):
        return g.op("Own", x, n_i=n)

    onnx.register_custom_op_symbolic("mine::own", write, 11)
    onnx.unregister_custom_op_symbolic("mine::own", 11)
    onnx.unregister_custom_op_symbolic("mine::own", 11)
    assert not onnx.is_in_onnx_export() and not hasattr(onnx, "export")
    with pytest.raises(ValueError, match="domain::op"):
        onnx.register_custom_op_symbolic("own", write, 11)
    with pytest.raises(ValueError, match="descriptors"):
        onnx.symbolic_helper.parse_args("x")


def test_stubs_of_quantised_models():
    x = taeda.tensor([[1.0, -2.0]])
    assert taeda.ao.quantization.QuantStub()(x) is x
    assert taeda.ao.quantization.DeQuantStub("how").qconfig == "how"
    f = taeda.nn.quantized.FloatFunctional()
    seen = []
    f.activation_post_process.register_forward_hook(lambda m, args, out: seen.append(out))
    assert taeda.equal(f.add(x, x), x + x) and taeda.equal(f.mul(x, x), x * x)
    assert taeda.equal(f.add_relu(x, x), (x + x).relu()) and taeda.equal(f.matmul(x, x.T), x @ x.T)
    assert taeda.equal(f.cat([x, x], 1), taeda.cat([x, x], 1)) and len(seen) == 5
    assert taeda.equal(f.add_scalar(x, 2.0), x + 2) and taeda.equal(f.mul_scalar(x, 2.0), x * 2)
    assert len(seen) == 5 and f.state_dict() == {}
    with pytest.raises(RuntimeError, match="not intended"):
        f(x)
    assert taeda.backends.quantized.supported_engines == ["none"]


def test_scatter_and_gather():
    pieces = scatter({"x": taeda.arange(5), "n": 3}, ["cpu", "cpu"])
    assert [p["x"].tolist() for p in pieces] == [[0, 1, 2], [3, 4]] and pieces[1]["n"] == 3
    args, kwargs = scatter_kwargs((taeda.arange(4),), {"k": [taeda.arange(2)]}, ["cpu", "cpu"])
    assert args[1][0].tolist() == [2, 3] and kwargs[1]["k"][0].tolist() == [1]
    assert scatter_kwargs((), None, ["cpu"]) == ((), ())
    joined = gather(
        [(taeda.ones(2), taeda.tensor(1.0)), (taeda.zeros(1), taeda.tensor(2.0))], "cpu"
    )
    assert joined[0].tolist() == [1, 1, 0] and joined[1].tolist() == [1, 2]
    assert gather([{"a": None}, {"a": None}], -1) == {"a": None}
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"a": None}, {}], "cpu")


def test_fake_kernels_may_come_before_the_operation():
    library = taeda.library.Library("ahead", "FRAGMENT")

    @taeda.library.register_fake("ahead::halves")
    def halves(x):
        return x.new_empty(x.shape[0] // 2)

    with pytest.raises(AttributeError):
        taeda.ops.ahead.halves(taeda.ones(2))
    library.define("halves(Tensor x) -> Tensor")
    assert taeda.ops.ahead.halves(taeda.empty(6, device="meta")).shape == (3,)
    with pytest.raises(ValueError, match="namespace::name"):
        taeda.library.register_fake("nothing", halves)


def test_libraries_of_others_are_refused(tmp_path):
    path = tmp_path / "_C.so"
    for content in (b"", b"PyInit__C"):
        path.write_bytes(content)
        with pytest.raises(OSError, match=re.escape(str(path))):
            taeda.ops.load_library(path)
    with pytest.raises(OSError, match=r"none\.so"):
        taeda.ops.load_library(str(tmp_path / "none.so"))


def test_meshes_of_devices_in_annotations():
    assert run(
        """
        import torch.distributed as dist
        def f(mesh: dist.device_mesh.DeviceMesh | None): ...
        print(isinstance(3, dist.device_mesh.DeviceMesh))
        """
    ) == ["False"]


@pytest.mark.filterwarnings("ignore:backends.cuda.sdp_kernel")
def test_switches_of_attention():
    cuda, q = taeda.backends.cuda, taeda.ones(1, 1, 2, 4)
    attend = taeda.nn.functional.scaled_dot_product_attention
    for name in ("flash", "math", "mem_efficient", "cudnn"):
        asked, enable = getattr(cuda, f"{name}_sdp_enabled"), getattr(cuda, f"enable_{name}_sdp")
        assert asked()
        enable(False)
        assert not asked()
        enable(True)
    with cuda.sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=False):
        assert attend(q, q, q).shape == q.shape and not cuda.math_sdp_enabled()
    assert cuda.math_sdp_enabled()
    with (
        cuda.sdp_kernel(enable_flash=False, enable_math=False),
        pytest.raises(RuntimeError, match="No viable backend"),
    ):
        attend(q, q, q)
    assert cuda.flash_sdp_enabled()


def test_an_optimizer_from_outside():
    from taeda.optim import optimizer as base

    class Plain(base.Optimizer):
        def __init__(self, params, lr=base.required, differentiable=False):
            super().__init__(params, {"lr": lr, "differentiable": differentiable})

        @base._use_grad_for_differentiable
        def step(self, closure=None):
            assert taeda.is_grad_enabled() is self.defaults["differentiable"]
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-base._get_value(group["lr"]))

    p = taeda.ones(2, requires_grad=True)
    p.grad = taeda.ones(2)
    Plain([p], lr=taeda.tensor(0.5)).step()
    assert p.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="required"):
        Plain([p])
    assert base._default_to_fused_or_foreach([p], False) == (False, False)
    assert base._get_capturable_supported_devices(supports_xla=False)[-1] == "privateuseone"
    assert (
        base._stack_if_compiling([1]) == [1] and base._disable_dynamo_if_unsupported()(len) is len
    )
    tensors, grads = [taeda.ones(1, dtype=taeda.complex64), p], [taeda.ones(1) * 1j, p.grad]
    base._view_as_real(tensors, grads)
    assert tensors[0].shape == (1, 2) and grads[0].tolist() == [[0, 1]] and tensors[1] is p


def test_draws_that_packages_make_themselves():
    torch = pytest.importorskip("torch")
    values = [[1.0, 2, 3], [0.5, 0.2, 4]]
    taeda.manual_seed(3)
    torch.manual_seed(3)
    ours = taeda._sample_dirichlet(taeda.tensor(values))
    assert ours.tolist() == torch._sample_dirichlet(torch.tensor(values)).tolist()


def test_modules_of_devices():
    assert taeda.get_device_module() is taeda.get_device_module("cpu") is taeda.cpu
    assert taeda.get_device_module(taeda.device("cuda", 0)) is taeda.cuda
    for device in ("meta", 3, "foo"):
        with pytest.raises(RuntimeError):
            taeda.get_device_module(device)


def test_dtypes_that_are_names_alone():
    assert taeda.int4 != taeda.int8 and taeda.int4 not in (taeda.float32,)
    assert repr(taeda.int4) == "taeda.int4" and not taeda.int4.is_complex
    assert isinstance(taeda.int4, taeda.dtype) and isinstance(taeda.quint8, taeda.dtype)
    assert taeda.int4.to_real() is taeda.int4
    for again in (copy.deepcopy(taeda.int4), pickle.loads(pickle.dumps(taeda.int4))):
        assert again is taeda.int4
    with pytest.raises(TypeError):
        taeda.ones(2, dtype=taeda.int4)
