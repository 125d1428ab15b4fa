"""Where taeda's modules are known to differ from PyTorch's module database, each with its reason."""

# Modules that taeda does not have -> reason.
ABSENT: dict[str, str] = {}

# Attributes of modules that taeda's do not have -> reason.
ATTRIBUTES: dict[str, str] = {
    "activation_relu_or_gelu": "chooses a fused kernel; here the layer has one way to run",
    "use_nested_tensor": "there are no nested tensors",
}

# (module, aspect) -> reason; aspects are "values", "initial", "copies" and "errors".
DIFFERS: dict[tuple[str, str], str] = {}

# Modules whose float32 results may differ by more than elsewhere -> by how much.
ROUNDING: dict[str, float] = {
    "CTCLoss": 1e-4,  # adds logarithms near -150, of which the last bit is 1.5e-5
}

# Patterns of inputs, as the tests describe them, that are left out -> reason.
INPUTS: dict[str, str] = {}
