"""Why rows are as they are: notes under families, and reasons of what is worse than PyTorch's."""

NOTES = {
    "below the normal numbers": "Results below 2^-126 (float64: 2^-1022) have fewer digits than normal ones, and are counted in\n"
    "units of the least number. `sigmoid` and `silu` divide by 1 + exp(-x), which is infinite there, as in PyTorch: they give 0.",
    "convolutions": "taeda is held to the named algorithm, PyTorch chooses.",
    "optimizers": "The running product of `NAdam` is kept in float32, so that its state is PyTorch's: that is what its float64 rows show.",
    "linear algebra": "`solve` is counted over |A||x| + |b|, element by element.",
    "random numbers": "Beside what the uniform numbers of the same seed should become. The streams are PyTorch's to the last bit.",
}

ONE_CHAIN = "the products of a result are added up in one chain; the libraries under PyTorch add up parts of it"

# Words of a row's name, and why it is so; the first that fits counts.
REASONS = {
    (
        "linear algebra/eigh",
    ): "our own tridiagonalization and QR steps for small matrices, faster than LAPACK's; the backward error is of the same order",
    ("pointwise", "asin"): "beyond 1/2 it is pi/2 less twice the arc sine of a rounded square root",
    (
        "pointwise",
        "sin",
    ): "a shorter polynomial after the same reduction: at most 2.3 ulps, promised by tests/ops/test_math_accuracy.py",
    (
        "pointwise",
        "cos",
    ): "a shorter polynomial after the same reduction: at most 2.3 ulps, promised by tests/ops/test_math_accuracy.py",
    ("pointwise", "tan/"): "the quotient of the two polynomials, not corrected",
    (
        "pointwise",
        "tanh",
    ): "expm1 over itself plus 2, in one division without a table or correction: at most 2.5 ulps",
    (
        "var of columns",
    ): "distances from a centre are added up in float32 for 256 rows at a time, then in double; PyTorch's are double throughout",
    (
        "winograd",
    ): "the transforms of Winograd's method add and subtract before they multiply, which costs two binary digits and saves more than half of the products",
    ("convolutions",): ONE_CHAIN,
    (
        "chebyshev_polynomial",
    ): "the recurrence of three terms, whose rounding errors grow with the degree beside the ends of the interval",
    ("special/erfc/",): "the C library's; PyTorch has a vector function of its own",
    ("special/lgamma/",): "the C library's; PyTorch has a vector function of its own",
}
