"""What the estimators have in common: parameters, and training by a ``Trainer``."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

import taeda
from taeda.nn import Module
from taeda.nn.parameter import is_lazy
from taeda.random import fork_rng, manual_seed, rng_states, set_rng_states
from taeda.training import Trainer

if TYPE_CHECKING:
    from typing_extensions import Self

    from taeda import Tensor
    from taeda.optim import Optimizer
    from taeda.training import Callback

__all__ = ["Estimator"]

Batch = tuple["Tensor", ...]
PARTS = ("module", "loss", "optimizer")


class Fitting(Trainer):
    """A trainer whose batches are inputs, targets and, where there are any, weights of samples."""

    def compute(self, model: Module, batch: Any) -> tuple[Any, Tensor]:
        x, target, *weights = batch
        output = model(x)
        if target.is_floating_point() and output.numel() == target.numel():
            target = target.reshape(output.shape)  # (n,) and (n, 1) would broadcast
        if not weights:
            return output, self.loss(output, target)
        losses = each_of(self.loss)(output, target)
        if losses.dim() > 1:
            losses = losses.flatten(1).mean(1)
        return output, (losses * weights[0].to(losses.dtype)).mean()


def each_of(loss: Any) -> Callable[[Any, Any], Tensor]:
    """A loss without its mean over the samples.

    Raises:
        TypeError: it has no ``reduction``.
    """
    if isinstance(loss, Module) and hasattr(loss, "reduction"):
        each: Any = copy.copy(loss)
        each.reduction = "none"
        return each
    with contextlib.suppress(TypeError, ValueError):
        if "reduction" in inspect.signature(loss).parameters:
            return functools.partial(loss, reduction="none")
    raise TypeError(
        f"fit: sample_weight takes a loss with a reduction, such as taeda.nn.MSELoss, not {loss!r}"
    )


class Batches:
    """Tensors cut into batches, in a new order for each pass where they are shuffled."""

    def __init__(self, tensors: Batch, size: int, shuffle: bool) -> None:
        self.tensors, self.size, self.shuffle = tensors, size, shuffle

    def __len__(self) -> int:
        return -(-len(self.tensors[0]) // self.size)

    def __iter__(self) -> Iterator[Batch]:
        n = len(self.tensors[0])
        order = taeda.randperm(n) if self.shuffle else None
        for start in range(0, n, self.size):
            stop = min(start + self.size, n)
            if order is None:
                yield tuple(tensor[start:stop] for tensor in self.tensors)
            else:
                yield tuple(tensor[order[start:stop]] for tensor in self.tensors)


class Estimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators."""

    _default_loss: type[Module]
    _stream_state: dict[str, Tensor]  # of the random streams, where the estimator has its own

    def __init__(
        self,
        module: Any,
        *,
        loss: Any = None,
        optimizer: type[Optimizer] = taeda.optim.Adam,
        lr: float | None = 0.01,
        epochs: int = 20,
        batch_size: int | None = 32,
        shuffle: bool = True,
        validation: float | None = None,
        callbacks: Iterable[Callback] = (),
        dtype: Any = "auto",
        random_state: Any = None,
        **parts: Any,
    ) -> None:
        self.module = module
        self.loss = loss
        self.optimizer = optimizer
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.validation = validation
        self.callbacks = callbacks
        self.dtype = dtype
        self.random_state = random_state
        self._parts = parts  # whose names `fit` checks, as scikit-learn wants

    # ---- parameters -----------------------------------------------------------------------------

    @staticmethod
    def _is_of_part(name: str) -> bool:
        part, _, rest = name.partition("__")
        return part in PARTS and bool(rest)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, with those of module, loss and optimizer that were given."""
        return {**super().get_params(deep), **self._parts}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also such as ``module__hidden=20``, for the next ``fit``."""
        own = {}
        for name, value in params.items():
            if self._is_of_part(name) or name in self._parts:
                self._parts = {**self._parts, name: value}
            else:
                own[name] = value
        super().set_params(**own)
        return self

    def _of_part(self, part: str) -> dict[str, Any]:
        prefix = f"{part}__"
        return {k[len(prefix) :]: v for k, v in self._parts.items() if k.startswith(prefix)}

    # ---- making the parts -----------------------------------------------------------------------

    def _made(self, part: str, given: Any) -> Any:
        """A class or function called with the parameters given for it; a module is copied."""
        options = self._of_part(part)
        if not isinstance(given, Module):
            return given(**options)
        if options:
            raise ValueError(
                f"{type(self).__name__}: {part}__{next(iter(options))} is for a class or function "
                f"that makes the {part}, but a {type(given).__name__} that is already made was "
                "given"
            )
        return copy.deepcopy(given)

    def _made_module(self, x: Tensor, outputs: int) -> Module:
        given = self.module
        if not isinstance(given, Module):
            sizes = {"n_features": self.n_features_in_, "n_outputs": outputs}
            with contextlib.suppress(TypeError, ValueError):
                known = inspect.signature(given).parameters
                options = {n: size for n, size in sizes.items() if n in known}
                given = functools.partial(given, **options)
        module = self._made("module", given)
        if not isinstance(module, Module):
            raise TypeError(
                f"{type(self).__name__}: module must be a Module, or a class or function that "
                f"makes one, got {self.module!r}"
            )
        if x.is_floating_point():
            module.to(x.dtype)
        if any(is_lazy(p) for p in module.parameters()):
            with taeda.no_grad():
                module.eval()(x[:1])
        return module.train()

    def _made_loss(self) -> Any:
        loss = self._default_loss if self.loss is None else self.loss
        if isinstance(loss, (type, Module)):
            return self._made("loss", loss)
        options = self._of_part("loss")
        return functools.partial(loss, **options) if options else loss

    def _start(self, x: Tensor, outputs: int) -> None:
        """Make the module, the loss and the optimizer, and a trainer that owns them."""
        for name in self._parts:
            if not self._is_of_part(name):
                raise TypeError(
                    f"{type(self).__name__}: there is no parameter {name!r}; those of the parts "
                    "begin with module__, loss__ or optimizer__"
                )
        self.module_ = self._made_module(x, outputs)
        options = {} if self.lr is None else {"lr": self.lr}
        optimizer = self.optimizer(
            self.module_.parameters(), **{**options, **self._of_part("optimizer")}
        )
        callbacks = copy.deepcopy(list(self.callbacks))
        self.trainer_ = Fitting(self.module_, self._made_loss(), optimizer, callbacks=callbacks)
        self.history_ = self.trainer_.history

    @contextlib.contextmanager
    def _stream(self, new: bool) -> Iterator[None]:
        """The random stream of this estimator, which goes on from call to call."""
        if self.random_state is None:
            yield
            return
        with fork_rng():
            if not new:
                set_rng_states(self._stream_state)
            elif isinstance(self.random_state, numbers.Integral):
                manual_seed(int(self.random_state))
            else:
                manual_seed(int(check_random_state(self.random_state).randint(2**31 - 1)))
            yield
            self._stream_state = rng_states()

    # ---- data -----------------------------------------------------------------------------------

    def _checked(self, X: Any, new: bool, y: Any = "no_validation", **options: Any) -> Any:
        """Inputs as an array, checked by scikit-learn; with targets, both."""
        if new:
            self.dtype_ = getattr(taeda, self.dtype) if self._is_named() else self.dtype
        if self.dtype_ == "auto":
            options["dtype"] = [numpy.float64, numpy.float32]
        elif self.dtype_ is not None:
            options["dtype"] = numpy.float64 if self.dtype_ == taeda.float64 else numpy.float32
            if not self.dtype_.is_floating_point:
                options["dtype"] = numpy.int64
        checked = validate_data(self, X, y, reset=new, allow_nd=True, **options)
        if self.dtype_ == "auto":
            array = checked[0] if isinstance(checked, tuple) else checked
            self.dtype_ = taeda.float64 if array.dtype == numpy.float64 else taeda.float32
        return checked

    def _is_named(self) -> bool:
        return isinstance(self.dtype, str) and self.dtype != "auto"

    def _tensor(self, array: Any) -> Tensor:
        return taeda.tensor(array, dtype=self.dtype_)

    def _weights(self, sample_weight: Any, X: Any, normalised: bool) -> Any:
        """Weights as an array, or None where all are the same."""
        if sample_weight is None:
            return None
        weights = _check_sample_weight(sample_weight, X, dtype=numpy.float64, copy=True)
        if normalised:
            weights /= weights.mean()
        return None if (weights == 1).all() else weights

    # ---- training -------------------------------------------------------------------------------

    def _train(self, x: Tensor, target: Tensor, weights: Any, outputs: int, whole: bool) -> None:
        """Train on prepared data: from the beginning where `whole`, else for one more pass."""
        new = whole or not hasattr(self, "trainer_")
        tensors: Batch = (x, target)
        if weights is not None:
            tensors += (taeda.tensor(weights),)
        with self._stream(new):
            if new:
                self._start(x, outputs)
            held_out = None
            if self.validation:
                tensors, held_out = self._split(tensors)
            size = len(x) if self.batch_size is None else self.batch_size
            epochs = self.epochs if whole else self.trainer_.epoch + 1
            if epochs > self.trainer_.epoch:
                self.trainer_.stop = False
                self.trainer_.fit(
                    Batches(tensors, size, self.shuffle),
                    epochs=epochs,
                    validation=held_out and Batches(held_out, size, False),
                )

    def _split(self, tensors: Batch) -> tuple[Batch, Batch]:
        n = len(tensors[0])
        held = round(n * float(self.validation or 0))
        if not 0 < held < n:
            raise ValueError(
                f"{type(self).__name__}.fit: validation={self.validation!r} of {n} samples leaves "
                "none to train on, or none to validate with"
            )
        order = taeda.randperm(n)
        kept, rest = order[held:], order[:held]
        return tuple(t[kept] for t in tensors), tuple(t[rest] for t in tensors)

    def _outputs(self, X: Any, model: Module | None = None) -> Tensor:
        """The module's outputs for inputs that are still to be checked, in evaluation mode."""
        check_is_fitted(self, "trainer_")
        x = self._tensor(self._checked(X, new=False))
        size = len(x) if self.batch_size is None else self.batch_size
        output = self.trainer_.predict(Batches((x,), size, False), model=model)
        if not isinstance(output, taeda.Tensor):
            raise TypeError(
                f"{type(self).__name__}: the module must return a tensor, got "
                f"{type(output).__name__}"
            )
        return output
