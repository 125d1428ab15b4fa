"""The public names that PyTorch documents, as an installed PyTorch shows them.

A name is public in a module that has a page in PyTorch's documentation (`PAGES`) if the module's
``__all__`` lists it, or, where there is no such list, if it is a class or function defined there
without a leading underscore. It is documented if it is a class or function with a docstring of its
own, a storage's class, or a value (a dtype, a constant). What is reached by several paths counts
once, by the first. The attributes of ``torch.Tensor`` count where they have a docstring.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
import warnings
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("pytorch.txt")

PAGES = """
torch: . __config__ __future__ accelerator accelerator.memory amp compiler compiler.config cpu fft func functional futures
  hub jit library linalg masked monitor multiprocessing nested onnx onnx.ops overrides package profiler profiler.itt
  quasirandom random serialization signal.windows sparse special storage testing torch_version
torch.nn: . functional init attention attention.bias attention.flex_attention attention.varlen modules parallel parameter
  utils utils.clip_grad utils.convert_parameters utils.fusion utils.memory_format utils.parametrizations utils.parametrize
  utils.prune utils.rnn utils.stateless grad
torch.optim: . lr_scheduler optimizer swa_utils
torch.autograd: . anomaly_mode forward_ad function functional grad_mode gradcheck graph profiler profiler_util
torch.distributions: . constraint_registry constraints kl transforms
torch.utils: . benchmark checkpoint collect_env cpp_extension data data.distributed deterministic dlpack flop_counter hooks
  mobile_optimizer model_zoo module_tracker tensorboard weak
torch.backends: . cpu cuda cudnn cusparselt mha miopen mkl mkldnn mps nnpack openmp opt_einsum
torch.distributed: . algorithms.join checkpoint checkpoint.state_dict checkpoint.stateful device_mesh distributed_c10d fsdp
  nn optim pipelining rpc tensor tensor.debug tensor.experimental tensor.parallel
torch.cuda: . amp comm graphs memory nvtx profiler random streams tunable
torch.mps: . event profiler
torch.mtia: . memory
torch.xpu: . memory random streams
torch.export: . dynamic_shapes exported_program graph_signature passes unflatten
torch.fx: . experimental
torch.ao: nn pruning ns quantization
"""


def pages() -> list[str]:
    found: list[str] = []
    package = ""
    for word in PAGES.split():
        if word.endswith(":"):
            package = word[:-1]
        else:
            found.append(package if word == "." else f"{package}.{word}")
    return found


def public(module: Any) -> list[str]:
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return sorted(set(declared))
    found = []
    for name in dir(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", None)
        if callable(value) and (home is None or home.startswith((module.__name__, "torch._C"))):
            found.append(name)
    return found


def documented(value: Any, storages: Any) -> bool:
    if inspect.isclass(value):
        return bool(vars(value).get("__doc__")) or issubclass(value, storages)
    if type(value).__module__ == "typing" or isinstance(value, types.GenericAlias):
        return False
    return not callable(value) or bool(getattr(value, "__doc__", None))


def names() -> dict[str, list[str]]:
    """The names of every page's module, and of ``torch.Tensor``."""
    import torch

    seen: set[Any] = set()
    found: dict[str, list[str]] = {}
    for path in pages():
        try:
            module: Any = importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] == "torch":
                raise
            continue  # a package that it is for is not installed
        listed = public(module)
        if path == "torch":  # tensor types, such as FloatTensor, have a type of their own
            kinds = (torch.dtype, torch.layout, torch.memory_format, type(torch.FloatTensor))
            listed += [n for n in dir(torch) if isinstance(getattr(torch, n), kinds)]
        for name in sorted(set(listed)):
            value = getattr(module, name, None)
            if name.startswith("_") or value is None or isinstance(value, types.ModuleType):
                continue
            plain = isinstance(value, (int, float, str, tuple, list))
            key = (path, name) if plain else (id(value), name)
            if key not in seen and documented(value, (torch.TypedStorage, torch.UntypedStorage)):
                seen.add(key)
                found.setdefault(path, []).append(name)
    found["torch.Tensor"] = [
        name
        for name in dir(torch.Tensor)
        if not name.startswith("_") and getattr(getattr(torch.Tensor, name), "__doc__", None)
    ]
    return found


def recorded() -> dict[str, list[str]]:
    """The list that tests read where PyTorch is not installed."""
    lines = (line.partition(": ") for line in LIST.read_text().splitlines())
    return {path: words.split() for path, _, words in lines}


def text() -> str:
    return "".join(f"{path}: {' '.join(words)}\n" for path, words in names().items())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    LIST.write_text(text())
    print(sum(map(len, recorded().values())), "names", file=sys.stderr)
