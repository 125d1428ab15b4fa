"""Named tensors that do not change: a network's parameters, buffers or gradients as one value."""

from __future__ import annotations

import fnmatch
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.utils._pytree import MappingKey, register_pytree_node

if TYPE_CHECKING:
    import os

    from taeda.functional._difference import Difference
    from taeda.nn import Module

__all__ = ["Parameters"]


def version_of(tensor: Any) -> int | None:
    """How often a tensor's memory has been written to; None where nothing counts it."""
    if type(tensor) is not Tensor or tensor.is_inference():
        return None
    return tensor._version


def versions_of(tensors: Iterable[Any]) -> list[int | None]:
    """``version_of`` each."""
    try:
        return [t._version if type(t) is Tensor else None for t in tensors]
    except RuntimeError:  # tensors made in inference mode have none
        return [version_of(t) for t in tensors]


class _Holder(NamedTuple):
    """Something with a gradient, which is all that clipping looks at."""

    grad: Tensor


class Parameters(Mapping[str, Tensor]):
    """An immutable mapping from names to tensors, which can be computed with as a whole.

    A network's parameters are one, so are its gradients and its buffers: what changes them returns
    another. ``taeda.func``'s transforms take and return them, being pytrees with tensors as leaves.

    Args:
        tensors: a mapping, or ``(name, tensor)`` pairs. The tensors are copied, as others may write
            into them; those that require gradients stay joined to what they come from.

    Numbers and tensors without dimensions combine with every tensor, another ``Parameters`` of the
    same names with the tensors of the same name: ``+ - * / **``, also from the left. ``a | b`` has
    the tensors of both, ``b``'s where both have a name.

    A tensor that is written into all the same is found when the mapping is used next, in a network,
    an optimizer or a file. ``Parameters`` that were donated to an optimizer's step, which reuses
    their memory, cannot be read any more; a tensor that was read from them before keeps its values.

    >>> weights = taeda.functional.Parameters({"w": taeda.tensor([3.0, 4.0]), "b": taeda.zeros(1)})
    >>> (2 * weights - 1)["w"]
    tensor([5., 7.])
    >>> weights.norm()
    tensor(5.)
    >>> weights.map(taeda.sqrt).replace({"b": taeda.ones(1)})
    Parameters(3 numbers: w (2,), b (1,))
    """

    __slots__ = (
        "__weakref__",
        "_donated_to",
        "_exported",
        "_fits",
        "_plain",
        "_spent",
        "_tensors",
        "_versions",
    )

    _tensors: dict[str, Tensor]
    _versions: list[int | None] | None  # None while nobody else could write into the tensors
    _plain: bool  # nobody else has them, they count versions, and leaves can be made of all
    _exported: set[str]  # names of tensors that somebody else may hold, or views of them
    _fits: object  # the names of the factory that has found them to be its own
    _spent: tuple[weakref.ref[Parameters], str] | None  # the gradient of the step that made them

    def __init__(self, tensors: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        given = dict(tensors)
        for name, tensor in given.items():
            if not isinstance(name, str) or not isinstance(tensor, Tensor):
                raise TypeError(
                    "Parameters: names must be strings and values tensors, got "
                    f"{name!r}: {type(tensor).__name__}"
                )
        self._take({name: tensor.clone() for name, tensor in given.items()})

    def _take(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = tensors
        self._versions = versions_of(tensors.values())
        self._plain = False
        self._exported = set()
        self._donated_to = ""
        self._fits = self._spent = None

    @classmethod
    def _of(cls, tensors: dict[str, Any], exported: bool = False) -> Parameters:
        """From tensors that nobody else will write into, without a copy.

        Args:
            tensors: them.
            exported: somebody else may hold them, so that their memory cannot be reused.
        """
        self = cls.__new__(cls)
        self._take(tensors)
        if exported:
            self._exported.update(tensors)
        return self

    @classmethod
    def _made(
        cls, tensors: dict[str, Tensor], plain: bool = False, fits: object = None
    ) -> Parameters:
        """From tensors that were made just now, which nobody else has; quicker than ``_of``."""
        self = cls.__new__(cls)
        self._tensors, self._versions, self._plain = tensors, None, plain
        self._exported, self._donated_to, self._fits, self._spent = set(), "", fits, None
        return self

    def _out(self) -> None:
        """Tensors are given to somebody, who may do with them what can be done with tensors."""
        self._plain = False
        if self._versions is None:
            self._versions = versions_of(self._tensors.values())

    def _leaves(self) -> dict[str, Tensor] | None:
        """Leaves with the memory of the tensors, after which ``_watch`` is not needed any more.

        None unless all of them are known to be of one kind; the steps of a loop are quick by this.
        """
        if not self._plain or self._versions is not None or _C._at_dual_level():
            return None
        leaves, self._versions = _C._leaves(self._tensors)
        return leaves

    def _watch(self) -> None:
        """From now on somebody else could write into the tensors: do as ``_unchanged`` does."""
        if self._versions is None:
            self._versions = self._versions_now()
        else:
            self._unchanged("model")

    @property
    def _all(self) -> dict[str, Tensor]:
        """The tensors, for what neither keeps them nor gives them away."""
        if self._donated_to:
            self._not_readable()
        return self._tensors

    def _export(self) -> dict[str, Tensor]:
        """The tensors, for somebody who may keep them."""
        self._exported.update(self._all)
        self._out()
        return self._tensors

    @classmethod
    def of(cls, module: Module) -> Parameters:
        """A copy of a module's parameters as they are now, each under its first name."""
        return cls._of({name: p.detach().clone() for name, p in module.named_parameters()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Parameters:
        """The tensors of a safetensors file."""
        from taeda.safetensors import load_file

        return cls._of(load_file(path))

    # ---- a mapping ------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._all[name]
        self._exported.add(name)
        self._out()
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        if self._donated_to:
            return f"Parameters(donated to {self._donated_to})"
        tensors = [f"{name} {tuple(t.shape)}" for name, t in self._tensors.items()]
        shown = tensors if len(tensors) <= 8 else [*tensors[:6], f"... {len(tensors) - 6} more"]
        return f"Parameters({self.numel():,} numbers: {', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Whether another one has the same names, and tensors of the same sizes and values."""
        if not isinstance(other, Parameters):
            return NotImplemented
        return self.keys() == other.keys() and all(
            taeda.equal(tensor, other._all[name]) for name, tensor in self._all.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        self._unchanged("pickle")
        return Parameters._of, (dict(self._tensors),)

    def __copy__(self) -> Parameters:
        return self

    def __deepcopy__(self, memo: Any) -> Parameters:
        return self.clone()

    # ---- being immutable ------------------------------------------------------------------------

    def _not_readable(self) -> None:
        raise RuntimeError(
            f"these Parameters were donated to {self._donated_to}, and their memory has been "
            "reused for what came after them; to keep both, pass donate=False to it, or a clone()"
        )

    def _versions_now(self) -> list[int | None]:
        tensors = self._all
        return _C._versions(tensors) if self._plain else versions_of(tensors.values())

    def _unchanged(self, who: str) -> None:
        """Raise if the tensors cannot be read any more, or one has been written into."""
        if self._donated_to:
            self._not_readable()
        if self._versions is None or self._versions == self._versions_now():
            return
        for (name, tensor), version in zip(self._tensors.items(), self._versions, strict=True):
            if version_of(tensor) != version:
                raise RuntimeError(
                    f"{who}: {name!r} was changed in place, but Parameters do not change: make "
                    "others, as by parameters.replace({name: tensor}), or clone() the tensor first"
                )

    def _donate_to(self, to: str) -> None:
        self._donated_to = to
        self._tensors, self._versions, self._plain, self._fits = {}, None, False, None

    def _spend(self, gradient: Parameters, to: str) -> None:
        """These were made by a step, which a gradient was donated to."""
        self._spent = weakref.ref(gradient), to

    def _release_spent(self) -> None:
        """A model runs with these: what it computes may have the memory of that gradient."""
        if self._spent is not None:
            (gradient, to), self._spent = self._spent, None
            spent = gradient()
            if spent is not None:
                spent._donate_to(to)

    # ---- other mappings from this one -----------------------------------------------------------

    def map(self, function: Callable[..., Any], *others: Mapping[str, Any]) -> Parameters:
        """``function(tensor, *others' tensors of that name)`` under every name."""
        for other in others:
            self._same_names(other, "map")
        results = {
            name: function(tensor, *(other[name] for other in others))
            for name, tensor in self._export().items()
        }
        return Parameters._of(results, exported=True)

    def _map(self, function: Callable[[Tensor], Tensor]) -> Parameters:
        """``map`` with a function that keeps nothing; its results may be the tensors themselves."""
        results = {name: function(tensor) for name, tensor in self._all.items()}
        made = Parameters._of(results)
        for name, tensor in self._tensors.items():
            if results[name] is tensor:
                self._exported.add(name)
                self._out()
                made._exported.add(name)
        return made

    def replace(self, tensors: Mapping[str, Tensor]) -> Parameters:
        """These, with others (copied) under some of the names.

        Raises:
            KeyError: there is no such name.
        """
        for name in tensors:
            if name not in self:
                raise KeyError(f"Parameters.replace: there is no {name!r}, only {list(self)}")
        return self | Parameters(tensors)

    def __or__(self, other: Parameters) -> Parameters:
        if not isinstance(other, Parameters):
            return NotImplemented
        return Parameters._of({**self._export(), **other._export()}, exported=True)

    def select(self, *patterns: str) -> Parameters:
        """Those whose names match one of the patterns, such as ``"encoder.*"`` or ``"*.bias"``.

        Raises:
            KeyError: a pattern matches no name.
        """
        for pattern in patterns:
            if not fnmatch.filter(self, pattern):
                raise KeyError(f"Parameters.select: {pattern!r} matches none of {list(self)}")
        chosen = [n for n in self if any(fnmatch.fnmatchcase(n, p) for p in patterns)]
        return Parameters._of({name: self[name] for name in chosen}, exported=True)

    def clone(self) -> Parameters:
        """A copy of the tensors."""
        return self._map(lambda tensor: tensor.clone())

    def detach(self) -> Parameters:
        """The same values, joined to nothing that they were computed from."""
        return Parameters._of({n: t.detach() for n, t in self._export().items()}, exported=True)

    def to(self, *args: Any, **kwargs: Any) -> Parameters:
        """With another dtype or on another device; arguments as of ``Tensor.to``."""
        return self._map(lambda tensor: tensor.to(*args, **kwargs))

    # ---- arithmetic -----------------------------------------------------------------------------

    def _same_names(self, other: Mapping[str, Any], what: str) -> None:
        if self.keys() != other.keys():
            missing, extra = sorted(self.keys() - other.keys()), sorted(other.keys() - self.keys())
            raise ValueError(
                f"Parameters.{what}: the names differ: the other one lacks {missing} and has "
                f"{extra} besides"
            )

    def _combined(self, other: Any, function: Callable[[Any, Any], Any], what: str) -> Any:
        if isinstance(other, Parameters):
            self._same_names(other, what)
            pairs = ((name, tensor, other._all[name]) for name, tensor in self._all.items())
            return Parameters._of({name: function(a, b) for name, a, b in pairs})
        if isinstance(other, Tensor):
            if other.dim():
                raise ValueError(
                    f"Parameters.{what}: the other one must be Parameters, a number or a tensor "
                    f"without dimensions, got a tensor of shape {tuple(other.shape)}"
                )
        elif not isinstance(other, (int, float, complex)):
            return NotImplemented
        return self._map(lambda tensor: function(tensor, other))

    def __add__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: a + b, "add")

    def __radd__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: b + a, "add")

    def __sub__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: a - b, "sub")

    def __rsub__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: b - a, "sub")

    def __mul__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: a * b, "mul")

    def __rmul__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: b * a, "mul")

    def __truediv__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: a / b, "div")

    def __rtruediv__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: b / a, "div")

    def __pow__(self, other: Any) -> Parameters:
        return self._combined(other, lambda a, b: a**b, "pow")

    def __neg__(self) -> Parameters:
        return self._map(lambda tensor: -tensor)

    def __abs__(self) -> Parameters:
        return self._map(abs)

    # ---- numbers about them ---------------------------------------------------------------------

    def numel(self) -> int:
        """How many numbers the tensors have together."""
        return sum(tensor.numel() for tensor in self._all.values())

    def dot(self, other: Parameters) -> Tensor:
        """The sum of the products of corresponding elements."""
        products = self * other
        return taeda.stack([tensor.sum() for tensor in products._all.values()]).sum()

    def norm(self, p: float = 2.0) -> Tensor:
        """The p-norm of all elements together; ``inf`` for the largest absolute value."""
        norms = [taeda.linalg.vector_norm(tensor, p) for tensor in self._all.values()]
        return taeda.linalg.vector_norm(taeda.stack(norms), p) if norms else taeda.zeros(())

    def norms(self, p: float = 2.0) -> dict[str, float]:
        """Each tensor's p-norm, by name."""
        return {name: taeda.linalg.vector_norm(t, p).item() for name, t in self._all.items()}

    def clip_norm(self, max_norm: float, p: float = 2.0) -> Parameters:
        """These, scaled so that the norm of all is at most ``max_norm``.

        What ``nn.utils.clip_grad_norm_`` does to gradients in place, to the last bit.
        """
        from taeda.nn.utils import clip_grads_with_norm_, get_total_norm

        total = get_total_norm(list(self._all.values()), p)
        scaled = {name: tensor.detach().clone() for name, tensor in self._all.items()}
        holders = [_Holder(tensor) for tensor in scaled.values()]
        clip_grads_with_norm_(holders, max_norm, total)  # type: ignore[arg-type]
        return Parameters._of(scaled)

    def vector(self) -> Tensor:
        """All elements one after the other, for what wants a single vector."""
        return taeda.cat([tensor.reshape(-1) for tensor in self._all.values()])

    def with_vector(self, vector: Tensor) -> Parameters:
        """The tensors that ``vector()`` would give this vector for."""
        if vector.shape != (self.numel(),):
            raise ValueError(
                f"Parameters.with_vector: expected a vector of {self.numel()} elements, got shape "
                f"{tuple(vector.shape)}"
            )
        pieces = vector.split([tensor.numel() for tensor in self._all.values()])
        return Parameters._of(
            {
                n: piece.reshape(t.shape)
                for (n, t), piece in zip(self._all.items(), pieces, strict=True)
            },
            exported=True,
        )

    def diff(self, old: Parameters) -> Difference:
        """What has changed since ``old``: a table to print, or to look names up in."""
        from taeda.functional._difference import Difference  # which is made of two of these

        return Difference(old, self)

    # ---- out of here ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
        """Write a safetensors file, which ``load`` reads.

        Args:
            path: where to; a file that is there is replaced in one step.
            metadata: texts to keep beside the tensors.
        """
        from taeda.safetensors import save_file

        self._unchanged("Parameters.save")
        save_file({n: t.detach().contiguous() for n, t in self._all.items()}, path, metadata)

    def copy_to(self, module: Module) -> None:
        """Write the values into a module's parameters and buffers of these names.

        Raises:
            KeyError: the module has none of a name.
        """
        self._unchanged("Parameters.copy_to")
        targets = {
            **dict(module.named_buffers(remove_duplicate=False)),
            **dict(module.named_parameters(remove_duplicate=False)),
        }
        for name in self:
            if name not in targets:
                raise KeyError(f"Parameters.copy_to: {type(module).__name__} has no {name!r}")
        with taeda.no_grad():
            for name, tensor in self._all.items():
                targets[name].copy_(tensor)


register_pytree_node(
    Parameters,
    lambda parameters: (list(parameters._all.values()), tuple(parameters)),
    lambda leaves, names: Parameters._of(dict(zip(names, leaves, strict=True))),
    flatten_with_keys_fn=lambda parameters: (
        [(MappingKey(name), tensor) for name, tensor in parameters._all.items()],
        tuple(parameters),
    ),
)
