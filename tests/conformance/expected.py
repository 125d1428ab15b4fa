"""Where taeda is known to differ from PyTorch's op database, each with its reason."""

# Entries whose values are random: only shapes are compared.
NON_DETERMINISTIC = {
    "bernoulli",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "nn.functional.dropout",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout-with_train",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.rrelu",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "multinomial",
    "normal",
    "normal-number_mean",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "uniform",
    "normal-in_place",
    "rand",
    "randperm",
}

# Key, (key, dtype name), (key, "gradient") or (key, "errors") -> reason.
DIFFERS: dict[str | tuple[str, str], str] = {}
