"""Calls that nn, optim and their kin should refuse, or nearly: the same exceptions as PyTorch's.

``bad_input.txt`` has one call in each line; z gives zeros, o ones, i integer zeros.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("torch.nn.utils.prune")  # which torch.nn.utils does not import

import taeda  # noqa: E402

CASES = (Path(__file__).parent / "bad_input.txt").read_text().splitlines()

# Calls that end otherwise -> reason.
DIFFERS = {
    "nn.LSTM(3,4)(z(5,2,3),z(1,2,4))": "says what hx should be, before an index fails",
    "nn.GRU(3,4,proj_size=2)": "there is no such argument",
    "nn.GRU(3,4,proj_size=0)": "there is no such argument",
    "nn.TransformerDecoderLayer(4,2)(z(3,2,4),z(3,3,4))": "names the shapes, before a view fails",
    "nn.Unfold(2)(z(2,2))": "names the shape, before an index fails",
    "nn.Unflatten('a',(2,2))": "dimensions have no names",
    "nn.CrossEntropyLoss(label_smoothing=-1)(z(2,3),i(2))": "PyTorch ignores a negative amount",
    "nn.CTCLoss()(z(5,2,3),z(2,2),(5,5),(2,2))": "labels must be integers",
    "nn.CTCLoss()(z(5,2,3),i(2,2)+7,(5,5),(2,2))": "PyTorch reads past the end of memory",
    "nn.Linear(2,2).requires_grad_('x')": "any value is true or false",
    "nn.Parameter([1.])": "says what data should be",
    "nn.Parameter(3)": "says what data should be",
    "U.clip_grad_norm_([z(2)],1.,norm_type='foo')": "there is no gradient to take the norm of",
    "U.rnn.pack_padded_sequence(z(3,2),[4,1])": "PyTorch makes a batch that nothing can unpack",
    "U.skip_init(3)": "says what it should be",
    "O.SGD({z(2)},.1)": "the order of a set is another in every run",
    "F.interpolate(z(1,1,2,2),scale_factor='a')": "float('a') fails first",
    "F.gumbel_softmax(i(2))": "NotImplementedError is a RuntimeError",
    "nn.GroupNorm(2,4)(i(2,4))": "NotImplementedError is a RuntimeError",
    "nn.LayerNorm(3)(i(2,3))": "NotImplementedError is a RuntimeError",
    "nn.LayerNorm(3)(z(2,3,dtype=t.float64))": "parameters may be of another floating dtype",
    "nn.LazyBatchNorm1d()(z(2))": "names the shape, before an index fails",
    "nn.LazyInstanceNorm1d()(z(2))": "names the shape, before an index fails",
    "nn.FractionalMaxPool2d(2,output_size=2)(z(4))": "names the shape, before an index fails",
    "F.avg_pool2d(z(2,3),2)": "names the shape, before an index fails",
    "F.lp_pool2d(z(1,1,4,4),2.,(1,2,3))": "names the argument, before unpacking fails",
    "nn.Bilinear(-3,4,5)": "refuses -3 as it does 0, before a tensor of that size fails",
    "nn.ParameterDict({'a':z(1)})['b']": "a missing key of a dict is a KeyError",
    "nn.Parameter(z(2),requires_grad='x')": "any value is true or false",
    "nn.Parameter('a')": "says what data should be",
    "U.get_total_norm([3])": "says what the list should hold, before an attribute is missing",
    "U.spectral_norm(nn.Linear(2,2),dim=5)": "names the dimension, before a permutation fails",
    "U.stateless.functional_call(nn.Linear(2,2),3,z(2))": "says what it should be",
    "U.prune.PruningContainer(3)": "says what it should be",
    "D.LowRankMultivariateNormal(z(2),o(2,1),-o(2))": "names the parameter, before LAPACK fails",
    "D.Wishart(t.tensor(3.))": "a ValueError, as MultivariateNormal's",
    "D.LowerCholeskyTransform()(z(3))": "names the dimension",
    "O.LBFGS([z(2)],line_search_fn='foo').step(lambda:z(()))": "PyTorch looks at it later",
    "O.SGD([z(2)],.1).load_state_dict(3)": "says what it should be",
    "nn.Softsign()(3)": "says what the argument should be, before an attribute is missing",
    "nn.Tanhshrink()(3)": "says what the argument should be, before an attribute is missing",
    "F.softsign(3)": "says what the argument should be, before an attribute is missing",
    "F.tanh(3)": "says what the argument should be, before an attribute is missing",
    "F.tanhshrink(3)": "says what the argument should be, before an attribute is missing",
    "F.sigmoid(3)": "says what the argument should be, before an attribute is missing",
    "F.softmax('a',0)": "says what the argument should be, before an attribute is missing",
}


def outcome(library: Any, call: str) -> Any:
    """The type and message of the exception, or the text of the result."""
    names = {
        "t": library,
        "nn": library.nn,
        "F": library.nn.functional,
        "O": library.optim,
        "U": library.nn.utils,
        "D": library.distributions,
        "init": library.nn.init,
        "z": library.zeros,
        "o": library.ones,
        "i": lambda *shape: library.zeros(*shape, dtype=library.int64),
    }
    try:
        result = eval(call, names)
    except Exception as error:
        return type(error), str(error)
    if isinstance(result, library.Tensor):
        return tuple(result.shape)
    if isinstance(result, tuple):
        return [tuple(part.shape) for part in result if hasattr(part, "shape")]
    text = repr(result).replace("torch", "taeda")
    return type(result).__name__ if " object at " in text else text


# Messages of Python's own, where a value of the wrong type is made use of.
PYTHONS_OWN = re.compile(
    r"object (has no attribute|is not (iter|subscript|call)able|cannot be interpreted)"
    r"|not supported between|bad operand type|unsupported operand|can't multiply sequence"
    r"|could not convert string|must be real number|^'(foo|a|b)'$"
)


def names_its_place(call: str, message: str) -> bool:
    """Whether a message says which module or function it is from, by `name:`, `name()` or so."""
    if re.search(r"\w\(\)|^['\"]?\w+(\.\w+)*(\(.*?\))?: ", message):
        return True
    spoken = re.sub(r"\bt\.\w+|'[^']*'", "", call)
    plain = message.replace("_", "").lower()
    names = (name.replace("_", "").lower() for name in re.findall(r"\.([A-Za-z]\w{2,})", spoken))
    return any(re.search(rf"\b{name}\b", plain) for name in names)


@pytest.mark.parametrize("call", CASES)
@pytest.mark.filterwarnings("ignore")
def test_call(call: str) -> None:
    theirs, ours = outcome(torch, call), outcome(taeda, call)
    if isinstance(theirs, tuple) and theirs and isinstance(theirs[0], type):
        theirs = theirs[0]
    message = ""
    if isinstance(ours, tuple) and ours and isinstance(ours[0], type):
        ours, message = ours
        pythons = (ours == theirs or call in DIFFERS) and PYTHONS_OWN.search(message)
        assert pythons or names_its_place(call, message), message
    if call in DIFFERS:
        assert ours != theirs, "an expected difference is gone"
    else:
        assert ours == theirs, message
