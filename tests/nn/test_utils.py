"""nn.utils: gradient clipping, parameters as a vector, skip_init; and what importing nn costs."""

import math
import subprocess
import sys

import pytest

import taeda
from taeda import nn
from taeda.nn import utils


def params(lib, *grads):
    result = []
    for grad in grads:
        p = lib.zeros(len(grad), requires_grad=True)
        p.grad = lib.tensor(grad)
        result.append(p)
    result.append(lib.zeros(2, requires_grad=True))
    return result


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3, math.inf])
@pytest.mark.parametrize("max_norm", [1.0, 100.0])
def test_clip_grad_norm(torch, same, norm_type, max_norm):
    ours, theirs = (params(lib, [3.0, -4.0], [1.0, 2.0, 5.0]) for lib in (taeda, torch))
    same(
        utils.clip_grad_norm_(ours, max_norm, norm_type),
        torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type),
    )
    for a, b in zip(ours, theirs, strict=True):
        same(a.grad, b.grad)


def test_clip_grad_norm_of_one_of_none_and_of_a_generator():
    (p, _) = params(taeda, [3.0, 4.0])
    assert float(utils.clip_grad_norm_(p, 1.0)) == 5.0
    assert float(utils.clip_grad_norm_([], 1.0)) == 0.0
    (p, _) = params(taeda, [3.0, 4.0])
    utils.clip_grad_norm_((q for q in [p]), 1.0)
    assert float(utils.get_total_norm(p.grad)) == pytest.approx(1.0, rel=1e-5)


def test_clip_grad_norm_of_infinity():
    p = params(taeda, [math.inf, 1.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)


def test_clip_grad_value():
    p = params(taeda, [3.0, -4.0, 0.5])
    utils.clip_grad_value_(p, 1.0)
    assert p[0].grad.tolist() == [1.0, -1.0, 0.5]


def test_parameters_and_vectors(same):
    m = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(m.parameters())
    assert tuple(vector.shape) == (9,)
    utils.vector_to_parameters(taeda.arange(9.0), m.parameters())
    same(m.weight, taeda.arange(6.0).reshape(3, 2))
    assert m.weight.is_leaf and m.weight.requires_grad
    with pytest.raises(TypeError):
        utils.vector_to_parameters([1.0], m.parameters())


def test_skip_init():
    m = utils.skip_init(nn.Linear, 2, 3)
    assert m.weight.device.type == "cpu" and tuple(m.weight.shape) == (3, 2)
    with pytest.raises(RuntimeError):
        utils.skip_init(int, 3)


@pytest.mark.slow
def test_nn_imports_nothing_heavy():
    code = (
        "import sys, taeda\n"
        "before = set(sys.modules)\n"
        "import taeda.nn\n"
        "print(sorted(m for m in set(sys.modules) - before if not m.startswith('taeda.')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(eval(out.stdout)) <= 10 and "numpy" not in out.stdout, out.stdout
