"""The dtypes that modules give under autocast."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")

import taeda  # noqa: E402

# (module, its arguments): z gives float32, b the lower precision, i integers.
CASES = [
    ("nn.Linear(4,4)", "z(2,4)"),
    ("nn.Bilinear(4,4,4)", "z(2,4),z(2,4)"),
    ("nn.Conv1d(4,4,1)", "z(2,4,4)"),
    ("nn.Conv2d(4,4,1)", "z(2,4,4,4)"),
    ("nn.ConvTranspose2d(4,4,1)", "z(2,4,4,4)"),
    ("nn.BatchNorm1d(4)", "z(2,4)"),
    ("nn.InstanceNorm1d(4)", "z(2,4,4)"),
    ("nn.GroupNorm(2,4)", "z(2,4)"),
    ("nn.LayerNorm(4)", "z(2,4)"),
    ("nn.RMSNorm(4)", "z(2,4)"),
    ("nn.Sequential(nn.Linear(4,4),nn.LayerNorm(4))", "z(2,4)"),
    ("nn.Sequential(nn.Linear(4,4),nn.BatchNorm1d(4))", "z(2,4)"),
    ("nn.Sequential(nn.Linear(4,4),nn.Softmax(-1))", "z(2,4)"),
    ("nn.Sequential(nn.Linear(4,4),nn.GELU())", "z(2,4)"),
    ("nn.Sequential(nn.Linear(4,4),nn.Softplus())", "z(2,4)"),
    ("nn.Sequential(nn.Linear(4,4),nn.PReLU())", "z(2,4)"),
    ("nn.Sequential(nn.Linear(4,4),nn.Dropout())", "z(2,4)"),
    ("nn.GRU(4,4)", "z(3,2,4)"),
    ("nn.GRU(4,4)", "z(3,2,4),z(1,2,4)"),
    ("nn.LSTM(4,4)", "z(3,2,4)"),
    ("nn.LSTM(4,4,2,bidirectional=True)", "z(3,2,4)"),
    ("nn.RNN(4,4)", "z(3,2,4)"),
    ("nn.GRUCell(4,4)", "z(2,4)"),
    ("nn.LSTMCell(4,4)", "z(2,4)"),
    ("nn.RNNCell(4,4)", "z(2,4)"),
    ("nn.MultiheadAttention(4,2)", "z(3,2,4),z(3,2,4),z(3,2,4)"),
    ("nn.MultiheadAttention(4,2).eval()", "z(3,2,4),z(3,2,4),z(3,2,4)"),
    ("nn.TransformerEncoderLayer(4,2)", "z(3,2,4)"),
    ("nn.TransformerEncoderLayer(4,2).eval()", "z(3,2,4)"),
    ("nn.TransformerDecoderLayer(4,2)", "z(3,2,4),z(3,2,4)"),
    ("nn.Transformer(4,2,1,1)", "z(3,2,4),z(3,2,4)"),
    ("nn.Embedding(4,4)", "i(2)"),
    ("nn.EmbeddingBag(4,4)", "i(2,2)"),
    ("nn.CrossEntropyLoss()", "b(2,4),i(2)"),
    ("nn.NLLLoss()", "b(2,4),i(2)"),
    ("nn.MSELoss()", "b(2,4),z(2,4)"),
    ("nn.L1Loss()", "b(2,4),z(2,4)"),
    ("nn.SmoothL1Loss()", "b(2,4),z(2,4)"),
    ("nn.HuberLoss()", "b(2,4),z(2,4)"),
    ("nn.BCEWithLogitsLoss()", "b(2,4),z(2,4)"),
    ("nn.BCELoss()", "z(2,4),z(2,4)"),
    ("nn.KLDivLoss()", "b(2,4),z(2,4)"),
    ("nn.CosineSimilarity()", "b(2,4),z(2,4)"),
    ("nn.PairwiseDistance()", "b(2,4),z(2,4)"),
    ("nn.TripletMarginLoss()", "b(2,4),b(2,4),b(2,4)"),
    ("nn.CTCLoss()", "b(5,2,4).log_softmax(-1),i(2,2)+1,(5,5),(2,2)"),
    ("nn.Upsample(scale_factor=2)", "b(2,4,4)"),
    ("nn.Upsample(scale_factor=2,mode='bilinear')", "b(2,4,4,4)"),
    ("nn.AvgPool2d(2)", "b(2,4,4,4)"),
    ("nn.AvgPool3d(2)", "b(2,4,4,4)"),
    ("nn.AdaptiveAvgPool3d(2)", "b(2,4,4,4)"),
    ("nn.AdaptiveMaxPool2d(2)", "b(2,4,4,4)"),
    ("nn.MaxPool2d(2)", "b(2,4,4,4)"),
    ("nn.LocalResponseNorm(2)", "b(2,4,4)"),
    ("nn.AdaptiveLogSoftmaxWithLoss(4,6,[3])", "z(2,4),i(2)"),
    ("nn.MarginRankingLoss()", "b(4),b(4),z(4)"),
    ("nn.MultiMarginLoss()", "b(2,4),i(2)"),
    ("nn.MultiLabelMarginLoss()", "b(2,4),i(2,4)"),
    ("nn.PoissonNLLLoss()", "b(2),z(2)"),
    ("nn.GaussianNLLLoss()", "b(2),z(2),z(2)+1"),
    ("nn.HingeEmbeddingLoss()", "b(2),z(2)+1"),
    ("nn.CosineEmbeddingLoss()", "b(2,2),b(2,2),z(2)+1"),
    ("nn.Fold((4,4),2)", "b(1,4,9)"),
    ("nn.Unfold(2)", "b(1,1,4,4)"),
]


def dtypes(value: Any) -> list[str]:
    if isinstance(value, (tuple, list)):
        return [name for part in value for name in dtypes(part)]
    return [] if value is None else [str(value.dtype).split(".")[1]]


def outcome(library: Any, module: str, arguments: str, dtype: str) -> list[str]:
    low = getattr(library, dtype)
    names = {
        "nn": library.nn,
        "z": library.zeros,
        "b": lambda *shape: library.zeros(*shape, dtype=low),
        "i": lambda *shape: library.zeros(*shape, dtype=library.int64),
    }
    with library.autocast("cpu", dtype=low):
        return dtypes(eval(f"({module})({arguments})", names))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("module", "arguments"), CASES)
@pytest.mark.filterwarnings("ignore")
def test_dtypes(module: str, arguments: str, dtype: str) -> None:
    try:
        theirs = outcome(torch, module, arguments, dtype)
    except RuntimeError as error:
        pytest.skip(f"PyTorch: {error}")
    assert outcome(taeda, module, arguments, dtype) == theirs
