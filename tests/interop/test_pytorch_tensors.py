"""What happens where a tensor of PyTorch meets a function of taeda, and the other way round."""

from __future__ import annotations

import pytest

import taeda
from taeda import nn

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "call",
    [
        lambda ours, theirs: ours + theirs,
        lambda ours, theirs: theirs + ours,
        lambda ours, theirs: ours == theirs,
        lambda ours, theirs: taeda.add(ours, theirs),
        lambda ours, theirs: taeda.cat([ours, theirs]),
        lambda ours, theirs: ours.copy_(theirs),
        lambda ours, theirs: nn.functional.relu(theirs),
        lambda ours, theirs: nn.Linear(2, 2)(theirs),
        lambda ours, theirs: nn.functional.relu(torch.nn.Parameter(theirs)),
    ],
)
def test_our_functions_refuse_tensors_of_pytorch(call):
    with pytest.raises(TypeError, match=r"got torch\.\w+: convert it with taeda.from_dlpack"):
        call(taeda.ones(2), torch.ones(2))


@pytest.mark.parametrize("call", [torch.relu, lambda t: torch.add(t, torch.ones(2))])
def test_functions_of_pytorch_refuse_our_tensors(call):
    with pytest.raises(TypeError, match="got a taeda.Tensor"):
        call(taeda.ones(2))
    assert (taeda.ones(2) + 1).tolist() == [2, 2]


def test_messages_say_whose_objects_were_given():
    """They have the names of ours."""
    for call, words in (
        (lambda: taeda.ones(2, dtype=torch.float32), "must be taeda.dtype, not torch.dtype"),
        (lambda: taeda.ones(2, device=torch.device("cpu")), "not torch.device"),
        (lambda: taeda.optim.SGD([torch.ones(1)], lr=1), "one of the params is torch.Tensor"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_tensors_of_pytorch_convert():
    theirs = torch.arange(6.0).view(2, 3).t()
    copy, shared = taeda.tensor(theirs), taeda.as_tensor(theirs)
    assert copy.tolist() == shared.tolist() == theirs.tolist()
    theirs[0, 0] = 7
    assert copy[0, 0] == 0 and shared[0, 0] == 7
    assert taeda.as_tensor(theirs, dtype=taeda.float64).dtype == taeda.float64
