"""Pruning: parameters with some of their elements held at zero by a mask.

Pruning `weight` puts a parameter `weight_orig` and a buffer `weight_mask` in its place; before
each forward, `weight` is computed as their product. Pruning again prunes what is left.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import taeda
from taeda._C import Tensor
from taeda.nn.module import Module

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod(ABC):
    """A way to choose what is pruned; subclass it and define `compute_mask`.

    It is a forward pre-hook of the module that it prunes. Set `PRUNING_TYPE` to "unstructured"
    (single elements), "structured" (whole slices along `self.dim`) or "global": it says what is
    left to prune where something has been pruned before.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for importance scores `t`: `default_mask` with more zeros."""

    def apply_mask(self, module: Any) -> Tensor:
        """Return the product of the mask and the original parameter."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> Self | PruningContainer:
        """Prune a parameter of a module, and return the hook that keeps it so.

        Args:
            module: the module.
            name: the parameter's name.
            *args, **kwargs: what the method is made with.
            importance_scores: of the parameter's shape: the larger, the more worth keeping; by
                default the parameter.
        """
        old = None
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                old = hook
                old_key = key
        method = cls(*args, **kwargs)
        method._tensor_name = name
        applied: Self | PruningContainer = method
        if not hasattr(module, name):
            raise AttributeError(
                f"{cls.__name__}.apply: '{type(module).__name__}' object has no attribute '{name}' "
                "to prune"
            )
        original = getattr(module, name)
        if original is None:
            raise TypeError(f"{cls.__name__}.apply: {name} must be Tensor, but is None")
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"{cls.__name__}.apply: importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {list(scores.shape)} and {list(original.shape)}"
            )
        if old is None:
            mask = method.compute_mask(scores, default_mask=taeda.ones_like(original))
            delattr(module, name)
            module.register_parameter(name + "_orig", original)
            module.register_buffer(name + "_mask", mask)
        else:
            default = getattr(module, name + "_mask").detach().clone()
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, default_mask=default)
            del module._forward_pre_hooks[old_key]
            setattr(module, name + "_mask", mask)
            applied = container
        setattr(module, name, applied.apply_mask(module))
        module.register_forward_pre_hook(applied)
        return applied

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """Return a pruned version of a tensor, which need not belong to a module.

        Args:
            t: the tensor.
            default_mask: what has been pruned before; by default nothing.
            importance_scores: as for `apply`; by default `t`.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                f"{type(self).__name__}.prune: importance_scores should have the same shape as "
                f"tensor t, got {list(scores.shape)} and {list(t.shape)}"
            )
        default = taeda.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter of a module permanent; the hook itself stays."""
        name = self._tensor_name
        original = getattr(module, name + "_orig")
        with taeda.no_grad():
            original.data = self.apply_mask(module)
        delattr(module, name)
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after the other, on one parameter."""

    PRUNING_TYPE = "container"

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = list(args)
        if len(args) == 1 and isinstance(args[0], Iterable):
            methods = list(args[0])
        if methods and isinstance(methods[0], BasePruningMethod):
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add a method, which must prune the same parameter as the others."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(
                f"PruningContainer.add_pruning_method: {type(method)} is not a BasePruningMethod "
                "subclass"
            )
        if method is None:
            return
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "PruningContainer.add_pruning_method: Can only add pruning methods acting on the "
                f"parameter named '{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Apply the newest method to what the others have left, given as `default_mask`."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype)
        left: Any
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()  # type: ignore[attr-defined]
            alive = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            left = (slice(None),) * dim + (alive.nonzero().squeeze(1),)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"PruningContainer: Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        partial = method.compute_mask(t[left], default_mask=mask[left])
        mask = mask.clone()
        mask[left] = partial.to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but puts the mask and the original in place."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random.

    Args:
        amount: how many, or as a float which share.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(self, amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask, count = default_mask.clone(), _count(self, self.amount, t.numel())
        if count:
            mask.view(-1)[taeda.rand_like(t).view(-1).topk(count).indices] = 0
        return mask


class L1Unstructured(BasePruningMethod):
    """Prunes the elements with the least absolute values.

    Args:
        amount: how many, or as a float which share.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(self, amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        mask, count = default_mask.clone(), _count(self, self.amount, t.numel())
        if count:
            mask.view(-1)[t.detach().abs().reshape(-1).topk(count, largest=False).indices] = 0
        return mask


class RandomStructured(BasePruningMethod):
    """Prunes whole slices along a dimension at random.

    Args:
        amount: how many slices, or as a float which share of them.
        dim: the dimension.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(self, amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structured(self, t, self.dim)
        size = t.size(self.dim)
        count = _count(self, self.amount, size)
        if not count:
            return default_mask
        draws = taeda.rand(size)
        return _by_slice(draws > draws.kthvalue(count).values, t, self.dim) * default_mask


class LnStructured(BasePruningMethod):
    """Prunes the slices along a dimension that have the least norms.

    Args:
        amount: how many slices, or as a float which share of them.
        n: the p of the norm.
        dim: the dimension.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        _check_amount(self, amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structured(self, t, self.dim)
        size = t.size(self.dim)
        count = _count(self, self.amount, size)
        if not count:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        kept = t.detach().norm(self.n, others).topk(size - count).indices
        alive = taeda.zeros(size, dtype=taeda.bool)
        alive[kept] = True
        return _by_slice(alive, t, self.dim) * default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"CustomFromMask: default_mask shape {default_mask.shape} must match self.mask "
                f"shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def _check_amount(method: BasePruningMethod, amount: Any) -> None:
    who = type(method).__name__
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"{who}: Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and float(amount) > 1):
        raise ValueError(
            f"{who}: amount={amount} should either be a float in the range [0, 1] or a "
            "non-negative integer"
        )


def _count(method: BasePruningMethod, amount: Any, size: int) -> int:
    """The number of elements or slices, out of `size`, that an amount means."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if int(amount) > size:
        raise ValueError(
            f"{type(method).__name__}: amount={amount} should be smaller than the number of "
            f"parameters to prune={size}"
        )
    return int(amount)


def _check_structured(method: BasePruningMethod, t: Tensor, dim: int) -> None:
    who = type(method).__name__
    if t.dim() <= 1:
        raise ValueError(
            f"{who}: Structured pruning can only be applied to multidimensional tensors. Found "
            f"tensor of shape {list(t.shape)} with {t.dim()} dims"
        )
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"{who}: Invalid index {dim} for tensor of size {t.shape}")


def _by_slice(alive: Tensor, t: Tensor, dim: int) -> Tensor:
    """A mask of the shape of t that is 1 in the slices along `dim` that are alive."""
    mask = taeda.zeros_like(t)
    index: list[Any] = [slice(None)] * t.dim()
    index[dim] = alive
    mask[tuple(index)] = 1
    return mask


def identity(module: Module, name: str) -> Module:
    """Put mask and original of a parameter in place without pruning; return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements of a parameter at random; see `RandomUnstructured`. Return the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of a parameter with the least absolute values; return the module.

    Args:
        module: the module.
        name: the parameter's name.
        amount: how many elements, or as a float which share of them.
        importance_scores: whose absolute values count; by default the parameter's own.

    >>> layer = taeda.nn.Linear(4, 2)
    >>> _ = taeda.nn.utils.prune.l1_unstructured(layer, "weight", amount=0.25)
    >>> int((layer.weight == 0).sum()), [name for name, _ in layer.named_parameters()]
    (2, ['bias', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices of a parameter at random; see `RandomStructured`. Return the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices of a parameter with the least norms; see `LnStructured`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is zero; return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters as if they were one.

    Args:
        parameters: pairs of a module and a parameter's name.
        pruning_method: a class whose `PRUNING_TYPE` is "unstructured".
        importance_scores: for pairs, what counts instead of the parameter.
        **kwargs: what the method is made with.

    Raises:
        TypeError: the parameters are no iterable, or the method is structured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = [(module, name) for module, name in parameters]
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'global_unstructured: Only "unstructured" PRUNING_TYPE supported for the '
            f"`pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    values = [getattr(module, name) for module, name in pairs]
    judged = [scores.get(pair, value) for pair, value in zip(pairs, values, strict=True)]
    all_scores = taeda.cat([score.detach().reshape(-1) for score in judged])
    masks = [
        getattr(module, name + "_mask", taeda.ones_like(value)).reshape(-1)
        for (module, name), value in zip(pairs, values, strict=True)
    ]
    method._tensor_name = "temp"
    container = PruningContainer(method)
    mask = container.compute_mask(all_scores, default_mask=taeda.cat(masks))
    start = 0
    for (module, name), value in zip(pairs, values, strict=True):
        part = mask[start : start + value.numel()].view_as(value)
        custom_from_mask(module, name, mask=part)
        start += value.numel()


def remove(module: Module, name: str) -> Module:
    """Make the pruning of a parameter permanent: an ordinary parameter with zeros in it.

    Raises:
        ValueError: the parameter is not pruned.
    """
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"prune.remove: Parameter '{name}' of module {module} has to be pruned before pruning can "
        "be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether a parameter of a module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for submodule in module.modules()
        for hook in submodule._forward_pre_hooks.values()
    )
