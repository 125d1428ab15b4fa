"""How the names of the large modules are spread over pages."""

from __future__ import annotations

from tools import public_names
from tools.public_names import Name

# Pages of operations: title -> the folders and files under csrc that define them.
FAMILIES: dict[str, str] = {
    "Making tensors": "creation",
    "Shapes, views and joining": "view",
    "Indexing, selecting and sorting": "index",
    "Arithmetic": "arithmetic rounding clip cases pointwise tensor",
    "Elementary and special functions": "math special bessel polynomial complex",
    "Comparison and logic": "logic",
    "Sums, means and other reductions": "reduce",
    "Matrices": "linalg",
    "Fourier transforms and windows": "fft",
    "Random numbers": "random",
    "Parts of networks": "nn activation loss",
    "Copies and types": "copy core",
}
_FAMILY_OF = {part: title for title, parts in FAMILIES.items() for part in parts.split()}

# Pages of nn: title -> the modules under taeda.nn.modules.
LAYERS: dict[str, str] = {
    "Module and containers": "module container parameter parameter_container",
    "Linear layers": "linear",
    "Convolutions": "conv",
    "Pooling": "pooling",
    "Activations": "activation adaptive",
    "Normalization": "batchnorm normalization instancenorm",
    "Recurrent layers": "rnn rnn_cells",
    "Attention and transformers": "transformer attention",
    "Dropout": "dropout",
    "Embeddings": "sparse",
    "Losses": "loss loss_base margin_loss ctc linear_loss distance",
    "Padding, folding and resampling": "padding fold upsampling pixelshuffle channelshuffle "
    "flatten vision",
    "Lazy layers": "lazy",
}
_LAYER_OF = {part: title for title, parts in LAYERS.items() for part in parts.split()}
OTHER_LAYERS = "Other layers"

# The rest of the package's own names: title -> the modules that define them.
OTHERS: dict[str, str] = {
    "Parts of networks": "nn nn_functions batch_norm_parts",
    "Functions written in Python": "functional more_functions numerics lowrank lobpcg",
    "Files": "serialization",
    "Random numbers": "random",
    "Recording of gradients": "autograd",
    "Batching": "func",
    "What shows and does training": "insight training",
}
_OTHER_OF = {part: title for title, parts in OTHERS.items() for part in parts.split()}
CLASSES, FUNCTIONS = "Classes, dtypes and constants", "Settings and others"
ATTRIBUTES, METHODS = "Attributes", "Other methods"
SMALL = 70  # a module with as many names at most has one page


def family(name: Name) -> str | None:
    """The page of an operation, by the file that defines it."""
    if not public_names.is_operation(name.value):
        return None
    place = public_names.source(name)
    if place is None:
        return None
    parts = place[0].split("/")
    if parts[1] == "ops" and parts[2] != "pointwise":
        return _FAMILY_OF.get(parts[2])
    return _FAMILY_OF.get(parts[-1].partition(".")[0])


def group(name: Name) -> str:
    """The title of the page that a name of a large module is on."""
    home = getattr(name.value, "__module__", None) or ""
    if name.module == "taeda.nn":
        last = home.split(".")
        return next((_LAYER_OF[p] for p in reversed(last) if p in _LAYER_OF), OTHER_LAYERS)
    if name.module == "taeda.Tensor":
        if name.kind == "property":
            return ATTRIBUTES
        return family(name) or METHODS
    if name.module == "taeda":
        if name.kind in ("class", "value"):
            return CLASSES
        parts = (_OTHER_OF[p] for p in reversed(home.split(".")) if p in _OTHER_OF)
        return family(name) or next(parts, FUNCTIONS)
    if name.module == "taeda.nn.functional":
        return {"a": "a to c", "b": "a to c", "c": "a to c"}.get(name.name[0].lower()) or (
            "d to l" if name.name[0].lower() < "m" else "m to z"
        )
    return ""


def groups(module: str, names: list[Name]) -> dict[str, list[Name]]:
    """The pages of a module: their titles, in order, and their names."""
    if len(names) <= SMALL:
        return {"": names}
    found: dict[str, list[Name]] = {}
    for name in names:
        found.setdefault(group(name), []).append(name)
    order = [*FAMILIES, *LAYERS, OTHER_LAYERS, *OTHERS, CLASSES, FUNCTIONS, ATTRIBUTES, METHODS]
    first = {CLASSES: -1, ATTRIBUTES: -1}

    def place(title: str) -> tuple[int, str]:
        return first.get(title, order.index(title) if title in order else 0), title

    return {title: found[title] for title in sorted(found, key=place)}
