"""What libraries of distributions build on: subclasses, divergences, cached pairs, helpers."""

from __future__ import annotations

import pytest

import taeda
from taeda import distributions as d
from taeda.distributions import kl
from taeda.distributions.transforms import _InverseTransform
from taeda.distributions.utils import _standard_normal, _sum_rightmost


class Centered(d.Normal):
    """A subclass in the way that PyTorch's users write them."""

    def __init__(self, scale, validate_args=None):
        super().__init__(taeda.zeros_like(scale), scale, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Centered, _instance)
        return super().expand(batch_shape, new)


def test_subclasses_that_expand_by_themselves():
    wide = Centered(taeda.tensor([1.0, 2.0])).expand((3, 2))
    assert type(wide) is Centered and wide.scale.shape == wide.loc.shape == (3, 2)

    class Own(d.Normal):
        pass

    assert type(Own(taeda.zeros(2), taeda.ones(2)).expand((3, 2))) is Own


@pytest.mark.parametrize("base", [d.Normal, d.Chi2, d.Distribution])
def test_subclasses_with_an_init_must_expand_by_themselves(base):
    class Own(base):
        arg_constraints = {}

        def __init__(self):
            super().__init__(*[taeda.ones(())] * {d.Normal: 2, d.Chi2: 1}.get(base, 0))

    with pytest.raises(NotImplementedError, match=f"Own.expand: a subclass of {base.__name__}"):
        Own().expand((2,))


def test_divergences_of_any_classes():
    class Mixin:
        pass

    class Marked(Mixin, d.Normal):
        pass

    assert kl.register_kl(Marked, Mixin)(lambda p, q: "marked")
    p = Marked(taeda.zeros(()), taeda.ones(()))
    assert kl.kl_divergence(p, p) == "marked"
    with pytest.raises(TypeError, match="type_q to be a class"):
        kl.register_kl(d.Normal, 3)


def test_cached_pairs_of_transforms():
    t = d.ExpTransform(cache_size=1)
    assert t._cached_x_y == (None, None)
    x = taeda.ones(2)
    y = t(x)
    assert t._cached_x_y[0] is x and t._cached_x_y[1] is y and t.inv(y) is x
    assert isinstance(t.inv, _InverseTransform)


def test_helpers():
    taeda.manual_seed(0)
    drawn = _standard_normal((2, 3), dtype=taeda.float64, device=taeda.device("cpu"))
    taeda.manual_seed(0)
    assert taeda.equal(drawn, taeda.randn(2, 3, dtype=taeda.float64))
    assert _sum_rightmost(taeda.ones(2, 3, 4), 2).tolist() == [12.0, 12.0]


def test_binomial_derivative_at_logits_zero():
    logits = taeda.zeros(1, requires_grad=True)
    taeda.distributions.Binomial(1, logits=logits).log_prob(taeda.zeros(1)).backward()
    assert logits.grad.item() == -0.5
