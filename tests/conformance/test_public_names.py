"""The public names of nn, optim and their kin, and their parameters, beside PyTorch's."""

from __future__ import annotations

import importlib
import inspect
import re
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")

import taeda  # noqa: E402, F401

MODULES = [
    "amp",
    "distributions",
    "distributions.constraint_registry",
    "distributions.constraints",
    "distributions.kl",
    "distributions.transforms",
    "nn",
    "nn.attention",
    "nn.attention.bias",
    "nn.attention.flex_attention",
    "nn.functional",
    "nn.init",
    "nn.modules",
    "nn.parameter",
    "nn.utils",
    "nn.utils.clip_grad",
    "nn.utils.convert_parameters",
    "nn.utils.fusion",
    "nn.utils.memory_format",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "nn.utils.stateless",
    "optim",
    "optim.lr_scheduler",
    "optim.optimizer",
    "optim.swa_utils",
    "utils.benchmark",
    "utils.checkpoint",
]

# Patterns of names that taeda does not have -> reason. A member is Class.member.
MISSING = {
    r"nn\.functional\.(grouped_mm|scaled_mm|scaled_grouped_mm|ScalingType|SwizzleType)": "for GPUs",
    r"nn\.attention\.\w*flash_attention_impls?": "there is one implementation",
    r"nn\.attention\.bias\.CausalBias": "causal biases are plain tensors",
    r".*\.BlockMask\.as_tuple": "PyTorch's own layout",
    r".*\.BlockMask\.shape|.*\.SDPBackend\.(name|value)": "attributes of instances",
    r".*\.MultiheadAttention\.merge_masks": "the fast path's own",
    r"nn\.DataParallel\.(gather|parallel_apply|replicate|scatter)": "for GPUs",
    r"nn(\.modules)?\.Container": "deprecated since 2017",
    r"nn\.(common_types|factory_kwargs|intrinsic|qat|quantizable|quantized)": "no quantisation",
    r".*\.(T_destination|dump_patches|ipu|mtia|xpu)": "devices and leftovers",
    r".*\.swap_in_optimizer_params_and_state": "for tracing with tensors that have no values",
    r".*\.Optimizer(Pre|Post)Hook|.*\.profile_hook_step": "annotations and profiling",
    r"optim\.optimizer\.(R|T|required)": "private",
    r".*\.SequentialLR\.recursive_undo": "private",
    r"nn\.utils\.rnn\.(PackedSequence_|bind)": "private",
    r".*\.(is_pinned|pin_memory)": "there is no GPU to pin memory for",
    r"nn\.utils\.fusion\.(ConvT|LinearT)": "type variables",
    r"nn\.grad\.torch|.*\.(torch|warnings|math|np|importlib|dataclasses)": "imports",
    r"utils\.checkpoint\.(DefaultDeviceType|[gs]et_device_states|GraphExecGroup)": "for GPUs",
    r"utils\.benchmark\.(\w*Callgrind\w*|FunctionCounts?|Language|\w*Fuzz\w+|Parameter\w+)": "Python only, and no random inputs",
    r"utils\.benchmark\.(Timer\.collect_callgrind|TaskSpec\.(global_setup|setup_str))": "Python only, and no random inputs",
    r"utils\.benchmark\.Timer\.(autorange|repeat)": "PyTorch's raise NotImplementedError",
    r"utils\.benchmark\.(Colorize|Number|math|ordered_unique|set_torch_threads|trim_sigfig|unit_to_english|utils)": "not meant to be public",
    r"utils\.checkpoint\.CheckpointFunction\..*": "the context's own",
    r"nn\.functional\.(Broadcasting\w+|Callable|DType|Optional|Tensor|GRID_SAMPLE\w+|boolean_dispatch|assert_int_or_pair|grad|\w+_notes|\w*has_torch_function\w*|handle_torch_function)": "not meant to be public",
    r".*\.(Buffer|Parameter|Uninitialized\w+)\..*": "compared as the methods of Tensor",
}  # fmt: skip

# Patterns of functions whose parameters are others -> reason.
OTHER_PARAMETERS = {
    r".*\.(GRU|LSTM|RNN)\.__init__": "PyTorch's take whatever they are given",
    r"nn\.functional\.\w+pool\w+": "PyTorch's take whatever they are given",
    r"nn\.init\.\w+": "deprecated names",
    r".*\.Module\.forward|.*\.(RNNBase|RNNCellBase)\.forward|.*(Container|List|Dict)\.forward": "not defined",
    r"nn\.utils\.prune\.\w+\.apply": "one method for all",
    r".*\.log_abs_det_jacobian": "nothing is cached between",
    r".*\.dependent_property\.check": "not on the class",
    r".*\.BlockMask\..*|.*\.create_block_mask": "masks are kept whole",
    r"utils\.benchmark\.(Timer|TaskSpec)\.__init__": "Python only, and no random inputs",
    r"utils\.checkpoint\.CheckpointFunction\.backward": "the gradients",
    r".*\.(Buffer|Parameter|Uninitialized\w+)\..*": "compared as the methods of Tensor",
}


def reason(table: dict[str, str], name: str) -> str | None:
    return next((text for pattern, text in table.items() if re.fullmatch(pattern, name)), None)


def names_of(module: ModuleType) -> list[str]:
    declared = getattr(module, "__all__", None) or dir(module)
    return sorted(n for n in declared if not n.startswith("_"))


def shown(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if callable(value):
        return getattr(value, "__name__", "")
    text = repr(value).replace("torch", "taeda")
    return "()" if text == "taeda.Size([])" else text


def parameters(function: Any) -> list[tuple[str, str]] | None:
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [(p.name, shown(p.default)) for p in found]


def extends(ours: list[tuple[str, str]], theirs: list[tuple[str, str]]) -> bool:
    """The same parameters in the same order; at the end ours may have a few more."""
    return ours[: len(theirs)] == theirs and {n for n, _ in ours[len(theirs) :]} <= {"generator"}


def pairs(path: str) -> list[tuple[str, Any, Any]]:
    """(name, theirs, ours) of everything public in a module, with the members of classes."""
    missing = object()
    module, own = importlib.import_module(f"torch.{path}"), importlib.import_module(f"taeda.{path}")
    found = []
    for name in names_of(module):
        theirs, ours = getattr(module, name), getattr(own, name, missing)
        if isinstance(theirs, ModuleType) and ours is missing and path != "nn":
            continue
        found.append((f"{path}.{name}", theirs, ours))
        if not inspect.isclass(theirs) or ours is missing:
            continue
        if theirs.__init__ is not object.__init__:
            found.append((f"{path}.{name}.__init__", theirs.__init__, ours.__init__))
        for member in dir(theirs):
            if not member.startswith("_"):
                value = getattr(theirs, member)
                found.append((f"{path}.{name}.{member}", value, getattr(ours, member, missing)))
    return [(n, t, None if o is missing else o) for n, t, o in found if t is not None]


@pytest.mark.parametrize("path", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_names(path: str) -> None:
    missing = {name for name, _, ours in pairs(path) if ours is None}
    assert {name for name in missing if not reason(MISSING, name)} == set()


@pytest.mark.parametrize("path", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_parameters(path: str) -> None:
    wrong = {}
    for name, theirs, ours in pairs(path):
        if ours is None or inspect.isclass(theirs) or not callable(theirs):
            continue
        a, b = parameters(theirs), parameters(ours)
        if a is None or b is None or extends(b, a) or reason(OTHER_PARAMETERS, name):
            continue
        wrong[name] = (a, b)
    assert wrong == {}
