"""Which of PyTorch's names taeda has; docs/names.md and a file of the package list the others.

``python -m tests.names.ours`` writes both; where PyTorch is installed, run
``python -m tests.names.theirs`` before, which writes the list of its names.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import taeda
from tests.names import theirs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "names.md"
KNOWN = Path(taeda.__file__).with_name("compat") / "missing.txt"  # what error messages know
FUNCTORCH = ["compile", "dim", "einops", "experimental"]  # modules, which are not counted
_NOTHING = object()


def module_of(path: str) -> Any:
    """taeda's module (or class) of a name under ``torch``, None where there is none."""
    if path == "torch.Tensor":
        return taeda.Tensor
    name = "taeda" + path[len("torch") :]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None


def has(path: str, name: str) -> bool:
    module = module_of(path)
    return module is not None and getattr(module, name, _NOTHING) is not _NOTHING


def missing() -> dict[str, list[str]]:
    found = {}
    for path, names in theirs.recorded().items():
        lacking = [name for name in names if not has(path, name)]
        if lacking:
            found[path] = lacking
    return found


def known() -> str:
    """The file of the package: a line for each module."""
    lacking = {**missing(), "functorch": FUNCTORCH}
    return "".join(f"{path}: {' '.join(names)}\n" for path, names in lacking.items())


# Patterns of names -> why taeda does not have them.
REASONS: dict[str, str] = {
    r"torch\.(q\w+|ao\.quantization\..+|Tensor\.(int_repr|q_\w+|qscheme))": "There are no quantised tensors",
    r"torch\.ao\.pruning\..+|torch\.sparse\.(SparseSemi|to_sparse_semi)\w+": "Kernels for weights with zeros are for GPUs",
    r"torch\.(export|onnx|package)\..+": "Nothing is exported or compiled",
    r"torch\.jit\..+|torch\.(ScriptClass|ScriptFunction|DispatchKey|Tag|AVG|SUM|AggregationType)": "Nothing is exported or compiled",
    r"torch\.(import_ir_\w+|merge_type_\w+|parse_\w+|unify_type_list)": "Nothing is exported or compiled",
    r"torch\.utils\.(mobile_optimizer\..+|ThroughputBenchmark)|torch\.compiler\..+": "Nothing is exported or compiled",
    r"torch\.distributed\.(rpc|nn|optim)\..+": "There is no RPC",
    r"torch\.distributed\.pipelining\..+": "Of pipelines, stages are modules, and schedules GPipe and 1F1B",
    r"torch\.distributed\.checkpoint\..+": "Checkpoints have a format of their own",
    r"torch\.distributed\..+": "Not done yet",
    r"torch\.cuda\.tunable\..+|torch\.(cuda|xpu)\.\w+|torch\.backends\.cuda\..+": "There is no such device or library",
    r"torch\.(mps|mtia)\..+|torch\.backends\.(mps|mkl)\..+": "There is no such device or library",
    r"torch\.autograd\.graph\.set_\w+|torch\.Tensor\.to_mkldnn": "There is no such device or library",
    r"torch\.nn\.functional\.\w+|torch\.nn\.attention\.(\w+_flash_attention_impls?)": "There is no such device or library",
    r"torch\.utils\.(cpp_extension|collect_env|generate_\w+|rename_\w+)\S*": "There is no such device or library",
    r"torch\.library\.(triton_op|wrap_triton)": "There is no such device or library",
    r"torch\.(sparse\.as_sparse_gradcheck|Tensor\.sparse_\w+)": "Not done yet",
    r"torch\.utils\.checkpoint\..+": "There is no such device or library",
    r"torch\.(library|overrides)\..+": "Operations are not dispatched by keys",
    r"torch\.profiler\..+|torch\.autograd\.profiler\w*\..+": "Records of other profilers",
    r"torch\.utils\.(benchmark\..+|get_cpp_backtrace)": "Timing and tracing are of Python alone",
    r"torch\.utils\.(data|hooks|tensorboard)\..+|torch\.serialization\..+|torch\.nn\.attention\.bias\..+": "Not done yet",
    r"torch\.(autograd|optim|functional|func)(\.\w+)+": "Not done yet",
    r"torch\.(hash_tensor|legacy_contiguous_format|thread_safe_generator)": "Not done yet",
    r"torch\.Tensor\.index": "Not done yet",
}


def reason(name: str) -> str:
    return next((why for pattern, why in REASONS.items() if re.fullmatch(pattern, name)), "")


def page() -> str:
    """docs/names.md."""
    everything, lacking = theirs.recorded(), missing()
    total = sum(map(len, everything.values()))
    here = total - sum(map(len, lacking.values()))
    lines = [
        "# Names",
        "",
        f"Of the {total:,} public names that PyTorch 2.13 documents, taeda has {here:,}. Counted are the classes, functions and constants "
        "that the modules",
        "with a page in its documentation export, and the attributes of `Tensor`; what has several paths counts once",
        "(`tests/names/theirs.py`). This page lists the others, and is written by `python -m tests.names.ours`. Of `functorch`, "
        + ", ".join(f"`{name}`" for name in FUNCTORCH)
        + " are missing.",
        "",
    ]
    groups: dict[str, dict[str, list[str]]] = {}
    for path, names in lacking.items():
        for name in names:
            groups.setdefault(reason(f"{path}.{name}"), {}).setdefault(path, []).append(name)
    for why in sorted(groups, key=lambda w: (-sum(map(len, groups[w].values())), w)):
        lines += [f"## {why}", ""]
        for path, names in groups[why].items():
            lines.append(f"- {path}: " + ", ".join(f"`{name}`" for name in names))
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
    KNOWN.write_text(known())
    print(PAGE.read_text().split("\n")[2])
