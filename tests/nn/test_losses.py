"""Losses beside PyTorch's, as functions and as modules, with every reduction."""

import itertools

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F


def rand(*shape, seed=0, low=-1.0, high=1.0, grad=False):
    taeda.manual_seed(seed)
    return (taeda.rand(shape) * (high - low) + low).requires_grad_(grad)


def x(*shape, **options):
    return rand(*shape, grad=True, **options)


SIGNS = taeda.tensor([1.0, -1.0, 1.0, -1.0])
CLASSES = taeda.tensor([1, 0, 2, 1])
PIXELS = taeda.tensor([[[1, 0], [2, 2]], [[0, 1], [1, -100]]])
MARGINS = taeda.tensor([[0, 2, -1], [1, -1, 0], [-1, 0, 1], [0, 1, 2]])

# (module, function, module options, inputs)
LOSSES = [
    ("MSELoss", "mse_loss", {}, (x(4, 3), x(4, 3, seed=1))),
    ("L1Loss", "l1_loss", {}, (x(4, 3), x(4, 3, seed=1))),
    ("SmoothL1Loss", "smooth_l1_loss", {"beta": 0.5}, (x(4, 3), x(4, 3, seed=1))),
    ("SmoothL1Loss", "smooth_l1_loss", {"beta": 0.0}, (x(4, 3), x(4, 3, seed=1))),
    ("HuberLoss", "huber_loss", {"delta": 0.5}, (x(4, 3), x(4, 3, seed=1))),
    ("CrossEntropyLoss", "cross_entropy", {}, (x(4, 3), CLASSES)),
    ("CrossEntropyLoss", "cross_entropy", {}, (x(3), taeda.tensor(1))),
    ("CrossEntropyLoss", "cross_entropy", {}, (x(2, 3, 2, 2), PIXELS)),
    ("CrossEntropyLoss", "cross_entropy", {"ignore_index": 1}, (x(4, 3), CLASSES)),
    ("CrossEntropyLoss", "cross_entropy", {"label_smoothing": 0.1}, (x(4, 3), CLASSES)),
    (
        "CrossEntropyLoss",
        "cross_entropy",
        {"weight": rand(3, low=0.5), "label_smoothing": 0.2},
        (x(2, 3, 2, 2), PIXELS),
    ),
    ("CrossEntropyLoss", "cross_entropy", {}, (x(4, 3), rand(4, 3, low=0.0))),
    (
        "CrossEntropyLoss",
        "cross_entropy",
        {"weight": rand(3, low=0.5), "label_smoothing": 0.2},
        (x(4, 3), rand(4, 3, low=0.0)),
    ),
    ("NLLLoss", "nll_loss", {}, (x(4, 3), CLASSES)),
    ("NLLLoss", "nll_loss", {"weight": rand(3, low=0.5)}, (x(4, 3), CLASSES)),
    ("NLLLoss", "nll_loss", {}, (x(2, 3, 2, 2), PIXELS)),
    ("BCELoss", "binary_cross_entropy", {}, (x(4, 3, low=0.01), rand(4, 3, low=0.0, seed=1))),
    (
        "BCELoss",
        "binary_cross_entropy",
        {"weight": rand(3, low=0.5)},
        (x(4, 3, low=0.01), rand(4, 3, low=0.0, seed=1)),
    ),
    (
        "BCEWithLogitsLoss",
        "binary_cross_entropy_with_logits",
        {},
        (x(4, 3), rand(4, 3, low=0.0, seed=1)),
    ),
    (
        "BCEWithLogitsLoss",
        "binary_cross_entropy_with_logits",
        {"weight": rand(4, 3, low=0.5), "pos_weight": rand(3, low=0.5, seed=2)},
        (x(4, 3), rand(4, 3, low=0.0, seed=1)),
    ),
    ("KLDivLoss", "kl_div", {}, (x(4, 3), rand(4, 3, low=0.1, seed=1))),
    ("KLDivLoss", "kl_div", {"log_target": True}, (x(4, 3), rand(4, 3, seed=1))),
    ("PoissonNLLLoss", "poisson_nll_loss", {}, (x(4, 3), rand(4, 3, low=0.0, high=3.0))),
    (
        "PoissonNLLLoss",
        "poisson_nll_loss",
        {"log_input": False, "full": True},
        (x(4, 3, low=0.1), rand(4, 3, low=0.5, high=3.0)),
    ),
    ("GaussianNLLLoss", "gaussian_nll_loss", {}, (x(4, 3), rand(4, 3), x(4, 3, low=0.0))),
    (
        "GaussianNLLLoss",
        "gaussian_nll_loss",
        {"full": True, "eps": 0.3},
        (x(4, 3), rand(4, 3), x(4, low=0.0)),
    ),
    ("GaussianNLLLoss", "gaussian_nll_loss", {}, (x(4, 3), rand(4, 3), 0.7)),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", {"margin": 0.4}, (x(4), SIGNS)),
    ("MarginRankingLoss", "margin_ranking_loss", {"margin": 0.4}, (x(4), x(4, seed=1), SIGNS)),
    (
        "CosineEmbeddingLoss",
        "cosine_embedding_loss",
        {"margin": 0.1},
        (x(4, 3), x(4, 3, seed=1), SIGNS),
    ),
    ("SoftMarginLoss", "soft_margin_loss", {}, (x(4), SIGNS)),
    ("MultiMarginLoss", "multi_margin_loss", {}, (x(4, 3), CLASSES)),
    (
        "MultiMarginLoss",
        "multi_margin_loss",
        {"p": 2, "margin": 0.7, "weight": rand(3, low=0.5)},
        (x(4, 3), CLASSES),
    ),
    ("MultiLabelMarginLoss", "multilabel_margin_loss", {}, (x(4, 3), MARGINS)),
    (
        "MultiLabelSoftMarginLoss",
        "multilabel_soft_margin_loss",
        {"weight": rand(3, low=0.5)},
        (x(4, 3), rand(4, 3, low=0.0).round()),
    ),
    (
        "TripletMarginLoss",
        "triplet_margin_loss",
        {"swap": True, "p": 1.0},
        (x(4, 3), x(4, 3, seed=1), x(4, 3, seed=2)),
    ),
    (
        "TripletMarginWithDistanceLoss",
        "triplet_margin_with_distance_loss",
        {},
        (x(4, 3), x(4, 3, seed=1), x(4, 3, seed=2)),
    ),
]
IDS = [row[1] for row in LOSSES]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides the total loss")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("module", "name", "options", "inputs"), LOSSES, ids=IDS)
def test_like_torch(torch, compare, to_torch, module, name, options, inputs, reduction):
    ours = getattr(nn, module)(**options, reduction=reduction)
    theirs = getattr(torch.nn, module)(**to_torch(options), reduction=reduction)
    compare(ours, theirs, inputs)
    compare(getattr(F, name), getattr(torch.nn.functional, name), inputs,
            {**options, "reduction": reduction})  # fmt: skip


def test_batchmean(torch, compare):
    inputs = (x(4, 3), rand(4, 3, low=0.1, seed=1))
    compare(nn.KLDivLoss(reduction="batchmean"), torch.nn.KLDivLoss(reduction="batchmean"), inputs)
    with pytest.warns(UserWarning, match="batchmean"):
        F.kl_div(*inputs)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_elementwise_weights(torch, compare, name, reduction):
    compare(
        getattr(F, name),
        getattr(torch.nn.functional, name),
        (x(4, 3), rand(4, 3, seed=1)),
        {"weight": rand(4, 3, low=0.1, seed=2), "reduction": reduction},
    )


def test_sizes_that_differ_warn(same):
    with pytest.warns(UserWarning, match="target size"):
        loss = F.mse_loss(taeda.ones(3, 1), taeda.zeros(1, 2))
    same(loss, taeda.tensor(1.0))


def test_deprecated_arguments(same):
    a, b = rand(4), rand(4, seed=1)
    for arguments, reduction in (
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True}, "mean"),
    ):
        with pytest.warns(UserWarning, match=f"reduction='{reduction}'"):
            loss = F.mse_loss(a, b, **arguments)
        same(loss, F.mse_loss(a, b, reduction=reduction))
        with pytest.warns(UserWarning, match=f"reduction='{reduction}'"):
            assert nn.MSELoss(**arguments).reduction == reduction


def test_weights_are_buffers():
    loss = nn.CrossEntropyLoss(weight=taeda.ones(3))
    assert list(loss.state_dict()) == ["weight"]
    assert loss.double().weight.dtype == taeda.float64


MIXED = ["float64", "float32", "bfloat16", "float16"]


@pytest.mark.parametrize("name", [
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "hinge_embedding_loss",
    "poisson_nll_loss", "multilabel_soft_margin_loss",
])  # fmt: skip
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.filterwarnings("ignore:reduction")
def test_inputs_and_targets_of_different_dtypes(name, reduction):
    torch = pytest.importorskip("torch")
    for a, b in itertools.permutations(MIXED, 2):
        results = []
        for lib in (taeda, torch):
            x = lib.tensor([[0.3, 0.7, 0.2]], dtype=getattr(lib, a))
            y = lib.tensor([[1.0, 0.0, 1.0]], dtype=getattr(lib, b))
            try:
                loss = getattr(lib.nn.functional, name)(x, y, reduction=reduction)
                results.append((str(loss.dtype).partition(".")[2], loss.flatten().tolist()))
            except RuntimeError as error:
                assert "Found dtype" in str(error)
                results.append(("refused", []))
        (kind, ours), (expected, theirs) = results
        assert kind == expected, (a, b)
        assert ours == pytest.approx(theirs, rel=1e-2 if "16" in a + b else 1e-6)


@pytest.mark.parametrize("dtype", [taeda.int64, taeda.bool])
def test_bce_with_logits_refuses_integer_targets(dtype):
    with pytest.raises(RuntimeError, match="can't be cast"):
        nn.functional.binary_cross_entropy_with_logits(taeda.ones(2), taeda.ones(2, dtype=dtype))
