"""taeda in PyTorch's place: the import hook, the command, and the names that scripts expect."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap
import warnings

import pytest

import taeda
import taeda.distributed.tensor
from taeda import backends, compiler, hub
from taeda.compat._torch import TorchVersion
from taeda.utils.data.distributed import DistributedSampler


def run(program, *arguments, command=("-m", "taeda.torch"), folder, options=("-W", "error")):
    """What a program prints under `python -m taeda.torch`."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, *options, *command, str(path), *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_programs_see_taeda_as_torch(tmp_path):
    (tmp_path / "neighbour.py").write_text("import torch\nfrom torch.nn import Linear\n")
    printed = run(
        """
        import sys
        import neighbour, torch, taeda
        import torch.nn as nn
        import torch.nn.functional as F
        import torch.utils.data
        from torch import optim, Tensor
        from torch.utils.data import DataLoader
        print(__name__, sys.argv[1:], sys.path[0] == sys.argv[0].rpartition("/")[0])
        print(torch.nn is nn, nn.Linear is neighbour.Linear is taeda.nn.Linear)
        print(Tensor is taeda.Tensor, torch.float32 is taeda.float32, optim.SGD.__module__)
        print(torch.utils.data.DataLoader is DataLoader, torch.__version__.split("+")[0])
        x = torch.ones(2, requires_grad=True)
        F.relu(x).sum().backward()
        print(x.grad.tolist())
        """,
        "a",
        "--b",
        folder=tmp_path,
    )
    assert printed.splitlines() == [
        "__main__ ['a', '--b'] True",
        "True True",
        "True True taeda.optim.sgd",
        "True 2.13.0",
        "[1.0, 1.0]",
    ]


def test_what_is_missing_is_named(tmp_path):
    printed = run(
        """
        import torch
        def attempt(code):
            try:
                exec(code, {"torch": torch})
            except (ImportError, AttributeError) as error:
                print(type(error).__name__, error)
            else:
                print("no error:", code)
        attempt("torch.quantize_per_tensor")
        attempt("torch.jit.freeze")
        attempt("from torch import quantize_per_tensor")
        attempt("from torch.jit import freeze")
        attempt("import torch.export.unflatten")
        attempt("import torch._inductor")
        attempt("torch.no_such_thing")
        attempt("import torch.no.such")
        print(hasattr(torch, "no_such_thing"), getattr(torch, "no_such_thing", 3))
        """,
        folder=tmp_path,
    )
    lacking = "; taeda lacks it: see docs/names.md"
    assert printed.splitlines() == [
        f"AttributeError module 'torch' has no attribute 'quantize_per_tensor'{lacking}",
        f"AttributeError module 'torch.jit' has no attribute 'freeze'{lacking}",
        f"ModuleNotFoundError No module or name 'torch.quantize_per_tensor'{lacking}",
        f"ModuleNotFoundError No module or name 'torch.jit.freeze'{lacking}",
        f"ModuleNotFoundError No module or name 'torch.export'{lacking}",
        "ModuleNotFoundError No module or name 'torch._inductor'; what is private to PyTorch is "
        "not here: see docs/differences.md",
        "AttributeError module 'torch' has no attribute 'no_such_thing'",  # nor has PyTorch
        "ModuleNotFoundError No module or name 'torch.no'",
        "False 3",
    ]


def test_misspelt_names_get_a_suggestion(tmp_path):
    printed = run(
        """
        import torch
        def attempt(code):
            try:
                exec(code, {"torch": torch})
            except (ImportError, AttributeError) as error:
                print(error)
        attempt("torch.zerose(3)")
        attempt("torch.nn.functional.rellu")
        attempt("from torch.nn import Linaer")
        attempt("import torch.nn.functinal")
        """,
        folder=tmp_path,
    )
    for line, name in zip(
        printed.splitlines(), ["zeros", "relu", "Linear", "functional"], strict=True
    ):
        assert line.endswith(f"Did you mean: {name!r}?") and "lacks" not in line


def test_changes_reach_the_modules_behind(tmp_path):
    printed = run(
        """
        import torch, taeda
        import torch.nn.functional as F
        torch.backends.cudnn.benchmark = True
        print(taeda.backends.cudnn.benchmark, torch.backends.cudnn.benchmark)
        relu = F.relu
        F.relu = lambda x: 5
        print(taeda.nn.functional.relu(1), F.relu(1))
        F.relu = relu
        print(taeda.nn.functional.relu is relu)
        torch.mine = 3
        print(taeda.mine)
        del torch.mine
        print(hasattr(taeda, "mine"), hasattr(torch, "mine"))
        print(torch.get_default_dtype(), "ones" in dir(torch))
        """,
        folder=tmp_path,
    )
    assert printed.split() == [
        "True",
        "True",
        "5",
        "5",
        "True",
        "3",
        "False",
        "False",
        "taeda.float32",
        "True",
    ]


def test_modules_run_too(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys, torch\nprint(torch.ones(1).item(), sys.argv[1:])\n"
    )
    command = [sys.executable, "-m", "taeda.torch", "-m", "package", "x"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "1.0 ['x']\n", done.stderr
    command = [sys.executable, "-m", "taeda.torch", "none.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and "no file 'none.py'" in done.stderr


def test_install_and_uninstall(tmp_path):
    printed = run(
        """
        import sys
        import taeda.compat
        taeda.compat.install()
        taeda.compat.install()
        import torch, torch.nn
        print(torch.ones is taeda.ones, taeda.compat.is_installed())
        taeda.compat.uninstall()
        print(taeda.compat.is_installed(), [n for n in sys.modules if n.split(".")[0] == "torch"])
        print(taeda.__spec__.name, taeda.nn.__spec__.name, taeda.nn.__name__)
        sys.modules["torch"] = sys
        try:
            taeda.compat.install()
        except RuntimeError as error:
            print("already been imported" in str(error))
        """,
        command=(),
        folder=tmp_path,
    )
    assert printed.splitlines() == ["True True", "False []", "taeda taeda.nn taeda.nn", "True"]


def test_versions_compare_by_numbers():
    version = TorchVersion("2.13.0+taeda.0.1.0")
    assert version >= "2.4" and version > (1, 9) and not version < "2.2.1"
    assert version == "2.13" and version <= "2.13.0" and version < "3" and version == (2, 13, 0)
    assert version != "2.12" and isinstance(version, str) and version.startswith("2.13")
    with pytest.raises(TypeError):
        version < 3


# Names that are there for scripts' sake


def test_no_cuda():
    assert not taeda.cuda.is_available() and taeda.cuda.device_count() == 0
    assert not taeda.cuda.is_initialized() and not taeda.cuda.is_bf16_supported()
    assert taeda.cuda.memory_allocated() == taeda.cuda.max_memory_reserved(0) == 0
    taeda.cuda.manual_seed_all(3)
    taeda.cuda.empty_cache()
    assert taeda.cuda.get_rng_state_all() == [] and taeda.cuda.get_arch_list() == []
    for call in (taeda.cuda.current_device, taeda.cuda.synchronize, taeda.cuda.get_device_name):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            call()
    with pytest.raises(AssertionError):
        taeda.cuda.set_device(0)
    with taeda.cuda.device(None), taeda.cuda.device_of(taeda.ones(1)):
        pass
    with pytest.raises(RuntimeError, match="no device"), taeda.cuda.device("cuda:0"):
        pass
    with pytest.raises(ValueError, match="expected a cuda device"):
        taeda.cuda.device("cpu")


def test_types_of_cuda_tensors():
    assert not isinstance(taeda.ones(1), taeda.cuda.FloatTensor)
    assert isinstance(taeda.ones(1), taeda.FloatTensor)
    assert taeda.cuda.HalfTensor.is_cuda and taeda.cuda.LongTensor.dtype is taeda.int64
    with pytest.raises(TypeError, match=r"cuda\.FloatTensor not available"):
        taeda.cuda.FloatTensor(2)
    for kind in ("torch.cuda.FloatTensor", taeda.cuda.FloatTensor):
        with pytest.raises(RuntimeError, match="no CUDA support"):
            taeda.ones(1).type(kind)


def test_accelerator_and_distributed():
    assert not taeda.accelerator.is_available() and taeda.accelerator.device_count() == 0
    assert taeda.accelerator.current_accelerator() is None
    with pytest.raises(RuntimeError, match="no accelerator"):
        taeda.accelerator.synchronize()
    assert taeda.distributed.is_available() and not taeda.distributed.is_initialized()
    for name in ("barrier", "get_rank", "get_world_size"):
        with pytest.raises(ValueError, match="has not been initialized"):
            getattr(taeda.distributed, name)()
    assert taeda.distributed.group.WORLD is None


def test_backends():
    assert not backends.cudnn.is_available() and backends.cudnn.version() is None
    assert not backends.mps.is_available() and not backends.cuda.is_built()
    assert not backends.mkl.is_available() and not backends.openmp.is_available()
    assert backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    assert backends.cudnn.enabled
    with backends.cudnn.flags(deterministic=True):
        assert backends.cudnn.deterministic and not backends.cudnn.enabled
    assert backends.cudnn.enabled and not backends.cudnn.deterministic
    with pytest.raises(RuntimeError, match="must be a bool"):
        backends.cudnn.allow_tf32 = 1
    assert backends.cudnn.allow_tf32 is True
    backends.cuda.matmul.allow_tf32 = True
    assert backends.cuda.matmul.allow_tf32
    assert taeda.get_float32_matmul_precision() == "high"
    backends.cuda.matmul.allow_tf32 = False
    assert taeda.get_float32_matmul_precision() == "highest"
    with pytest.raises(AttributeError):
        backends.cuda.matmul.allow_everything = True
    with pytest.raises(TypeError):
        backends.cuda.matmul.allow_tf32 = 3


def test_switches():
    assert taeda.get_float32_matmul_precision() == "highest"
    taeda.set_float32_matmul_precision("high")
    assert taeda.get_float32_matmul_precision() == "high"
    with pytest.warns(UserWarning, match="nothing is changed"):
        taeda.set_float32_matmul_precision("low")
    taeda.set_float32_matmul_precision("highest")
    assert not taeda.are_deterministic_algorithms_enabled()
    taeda.use_deterministic_algorithms(True, warn_only=True)
    assert taeda.are_deterministic_algorithms_enabled()
    assert taeda.is_deterministic_algorithms_warn_only_enabled()
    taeda.use_deterministic_algorithms(False)


def test_decorators_return_what_they_are_given():
    jit = taeda.jit

    def f(x):
        return x

    with pytest.warns(DeprecationWarning):
        assert jit.script(f) is f
    for decorate in (jit.unused, jit.export, jit.interface, jit.ignore, jit.script_if_tracing):
        assert decorate(f) is f
    assert jit.ignore(drop=True)(f) is f
    assert not jit.is_scripting() and not jit.is_tracing()
    assert jit.annotate(int, 3) == 3
    assert not hasattr(jit, "trace")
    with pytest.raises(TypeError):
        jit.ignore(drop=3)


def test_compile_says_once_that_it_does_not(monkeypatch):
    monkeypatch.setattr(compiler, "_said", False)
    model = taeda.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="eagerly"):
        assert taeda.compile(model) is model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert taeda.compile(model, mode="max-autotune") is model
        assert taeda.compile(dynamic=True)(model) is model
    with pytest.raises(RuntimeError, match="either mode or options"):
        taeda.compile(model, mode="default", options={})
    with pytest.raises(RuntimeError, match="expected a function or module"):
        taeda.compile(3)
    assert not compiler.is_compiling() and compiler.disable(model) is model


def test_hub_loads_from_folders(tmp_path):
    (tmp_path / "part.py").write_text("value = 7\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['taeda']\n"
        "def tiny(n, scale=1):\n    'A tiny model.'\n    from_part = part.value\n"
        "    return n * scale * from_part\nimport part\ndef _hidden(): pass\n"
    )
    assert hub.list(tmp_path, source="local") == ["tiny"]
    assert hub.help(tmp_path, "tiny", source="local") == "A tiny model."
    assert hub.load(str(tmp_path), "tiny", 2, source="local", scale=3) == 42
    assert str(tmp_path) not in sys.path
    sys.modules.pop("part")
    with pytest.raises(ValueError, match='source must be "local"'):
        hub.load("owner/name", "model")
    with pytest.raises(RuntimeError, match="cannot find callable"):
        hub.load(tmp_path, "_hidden", source="local")
    with pytest.raises(FileNotFoundError):
        hub.load(tmp_path / "none", "model", source="local")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package_at_all']\n")
    with pytest.raises(RuntimeError, match="no_such_package_at_all"):
        hub.list(tmp_path, source="local")


def test_deprecated_names_warn_as_pytorch_does():
    parameter = taeda.nn.Parameter(taeda.ones(2))
    parameter.grad = taeda.ones(2)
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        taeda.nn.utils.clip_grad_norm([parameter], 1.0)
    assert parameter.grad.norm().item() == pytest.approx(1.0, abs=1e-5)
    with pytest.warns(FutureWarning, match="constant_"):
        assert taeda.nn.init.constant(taeda.zeros(2), 3.0).tolist() == [3, 3]
    with pytest.warns(UserWarning, match="includes its end"):
        assert taeda.range(0, 3).tolist() == [0, 1, 2, 3]
    assert taeda.optim.lr_scheduler._LRScheduler is taeda.optim.lr_scheduler.LRScheduler
    torch = pytest.importorskip("torch")
    for args in ((3,), (1, 4, 0.5), (5, 1, -2), (0, 1, 0.3), (2, 2)):
        with pytest.warns(UserWarning):
            ours, theirs = taeda.range(*args), torch.range(*args if len(args) > 1 else (0, *args))
        assert ours.tolist() == theirs.tolist() and str(ours.dtype) == "taeda.float32"
    for args in ((0, 1, 0), (0, 1, -1)):
        with pytest.warns(UserWarning), pytest.raises(RuntimeError):
            taeda.range(*args)


@pytest.mark.parametrize("size", [1, 9, 10, 12])
def test_distributed_sampler(size):
    for replicas in (1, 3, 4):
        for shuffle in (False, True):
            for drop_last in (False, True):
                options = {"shuffle": shuffle, "drop_last": drop_last, "seed": 3}
                ours = [
                    DistributedSampler(range(size), replicas, r, **options) for r in range(replicas)
                ]
                for sampler in ours:
                    sampler.set_epoch(2)
                taken = [list(sampler) for sampler in ours]
                assert [len(part) for part in taken] == [len(sampler) for sampler in ours]
                if importlib.util.find_spec("torch"):
                    torch = pytest.importorskip("torch")
                    data = torch.utils.data.distributed
                    for rank, part in enumerate(taken):
                        theirs = data.DistributedSampler(range(size), replicas, rank, **options)
                        theirs.set_epoch(2)
                        assert part == list(theirs)


def test_distributed_sampler_must_be_told():
    with pytest.raises(ValueError, match="has not been initialized"):
        DistributedSampler(range(3))
    with pytest.raises(ValueError, match="Invalid rank 3"):
        DistributedSampler(range(3), 3, 3)


def test_functions_and_classes_are_in_the_modules_dict(tmp_path):
    program = """
        import torch
        import torch.distributions
        found = [
            name
            for name, kind in torch.distributions.__dict__.items()
            if isinstance(kind, type) and issubclass(kind, torch.distributions.Distribution)
        ]
        print("Normal" in found, len(found) > 30, "relu" in vars(torch), torch.relu is vars(torch)["relu"])
    """
    assert run(program, folder=tmp_path).split() == ["True"] * 4


def test_settings_of_the_build(tmp_path):
    program = """
        import torch
        shown = torch.__config__.show()
        print(shown.splitlines()[0], "USE_MKL=OFF" in shown, "USE_CUDA=OFF" in shown)
        print(f"taeda.get_num_threads() : {torch.get_num_threads()}" in torch.__config__.parallel_info())
    """
    assert run(program, folder=tmp_path).splitlines() == ["taeda built with: True True", "True"]


def test_calls_to_other_processes_are_not_available(tmp_path):
    program = """
        from torch.distributed import rpc
        print(rpc.is_available())
    """
    assert run(program, folder=tmp_path).split() == ["False"]


def test_values_as_text(tmp_path):
    program = """
        import torch
        from torch._tensor_str import PRINT_OPTS, _tensor_str
        torch.set_printoptions(precision=2)
        print(PRINT_OPTS.precision, hasattr(PRINT_OPTS, "no_such_thing"))
        print(_tensor_str(torch.tensor([[1.0, 2.5]]), 3), _tensor_str(torch.ones(0), 0))
    """
    assert run(program, folder=tmp_path).splitlines() == ["2 False", "[[1.00, 2.50]] []"]


def test_modules_that_nobody_imported(tmp_path):
    program = """
        import torch

        assert torch.torch is torch
        assert torch.nn.modules.module.Module is torch.nn.Module
        assert torch.utils.flop_counter.FlopCounterMode
        assert not hasattr(torch.nn.modules, "nothing")
        from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype as group
        x, y = torch.ones(2), torch.ones(1).double()
        (first, places), (second, _) = group([[x, y, x], [y, x, None]], with_indices=True).values()
        assert places == [0, 2] and first[1] == [y, None] and second[0][0] is y
        flat = torch._utils._flatten_dense_tensors([x, torch.zeros(1, 2)])
        assert torch._utils._unflatten_dense_tensors(flat, [x, torch.zeros(1, 2)])[1].shape == (1, 2)
        print("done")
    """
    assert run(program, folder=tmp_path) == "done\n"


def test_importing_a_module_leaves_the_function_of_its_name(tmp_path):
    program = """
        import torch.autograd.gradcheck, torch.nn.parallel.data_parallel
        import torch.nn.utils.spectral_norm, torch.nn.utils.weight_norm, torch.nn.utils.rnn
        from torch.autograd.gradcheck import GradcheckError, gradgradcheck
        from torch.nn.utils.spectral_norm import SpectralNorm

        layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2))
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        print(torch.autograd.gradcheck(lambda x: x * x, (x,)), hasattr(layer, "weight_orig"))
        print(callable(torch.nn.utils.weight_norm), callable(torch.nn.parallel.data_parallel))
        print(callable(torch.nn.utils.rnn), torch.nn.utils.rnn.PackedSequence.__name__)
    """
    printed = run(program, folder=tmp_path)
    assert printed.split("\n")[:3] == ["True True", "True True", "False PackedSequence"]
