"""``Trainer``: the model, the loss, the optimizer and where they are, in one object."""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import taeda
from taeda._C import Tensor
from taeda.functional import Parameters
from taeda.training._callbacks import Callback
from taeda.training._data import add_up, as_loader, inputs_and_target, joined, means, size_of
from taeda.training._random import load_streams, streams
from taeda.training._state import load_state, state_of

if TYPE_CHECKING:
    from taeda.amp import GradScaler
    from taeda.nn import Module
    from taeda.optim import Optimizer

__all__ = ["Step", "Trainer"]


@dataclass(frozen=True)
class Step:
    """What a step did.

    Attributes:
        loss: the loss of the batch, before the update.
        output: what the model returned.
        updated: whether the optimizer has stepped: not while gradients are accumulated, nor where
            mixed precision found them to have overflowed.
        gradients: by name, the gradients that the optimizer was given; where asked for.
        updates: by name, what the step has added to the parameters; where asked for.
    """

    loss: float
    output: Any
    updated: bool
    gradients: Parameters | None = None
    updates: Parameters | None = None

    def __repr__(self) -> str:
        shape = f"of shape {tuple(self.output.shape)}" if isinstance(self.output, Tensor) else "..."
        text = f"Step(loss={self.loss:.6g}, output {shape}, updated={self.updated}"
        if self.gradients is not None:
            text += f", gradients of norm {self.gradients.norm().item():.4g}"
        if self.updates is not None:
            text += f", updates of norm {self.updates.norm().item():.4g}"
        return text + ")"


class Trainer:
    """Owns a training: nothing else needs to be told of the model's gradients, or to be stepped.

    Args:
        model: the network.
        loss: a function of the model's output and the target.
        optimizer: of the model's parameters.
        metrics: by name, functions of output and target whose means over the data are reported.
        callbacks: what else happens in training; see ``Callback``.

    Attributes:
        epoch: how many passes through the data are done.
        batch: how many batches of the next pass are done.
        updates: how many steps the optimizer has made.
        history: for each epoch, a dict of its mean loss and metrics, and those of validation.
        stop: set it to end ``fit`` after the batch.

    A subclass may redefine ``compute``, which runs the model on a batch of whatever form.

    Raises:
        TypeError: an argument is not of its kind.
        ValueError: the optimizer holds none of the model's parameters.

    >>> import taeda
    >>> model = taeda.nn.Linear(2, 1)
    >>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    >>> trainer = taeda.Trainer(model, taeda.nn.MSELoss(), optimizer)
    >>> X, y = taeda.ones(64, 2), taeda.zeros(64, 1)
    >>> trainer.step(X, y).updated
    True
    >>> history = trainer.fit(X, y, epochs=5, batch_size=16)
    >>> history[-1]["loss"] < history[0]["loss"]
    True
    >>> trainer.predict(X).shape
    taeda.Size([64, 1])
    """

    scaler: GradScaler | None = None  # that MixedPrecision sets
    accumulate = 1  # that Accumulate sets

    def __init__(
        self,
        model: Module,
        loss: Callable[[Any, Any], Tensor],
        optimizer: Optimizer,
        *,
        metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> None:
        _check_kinds(model, loss, optimizer)
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if not any(id(p) in held for p in model.parameters()):
            raise ValueError(
                "Trainer: the optimizer holds none of the model's parameters; make it from "
                "model.parameters(), after the model is complete"
            )
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.metrics = dict(metrics or {})
        self.callbacks = sorted(callbacks, key=lambda callback: callback.order)
        self.epoch = self.batch = self.updates = 0
        self.history: list[dict[str, Any]] = []
        self.stop = False
        self._pending = 0  # batches whose gradients wait to be stepped by
        self._sums: dict[str, float] = {}  # of this epoch so far
        self._loader: Any = None  # that fit goes through
        self._epoch_streams: dict[str, Any] | None = None  # as they were when its pass began
        self._resumed: dict[str, Any] | None = None  # streams that fit has yet to take over
        closure = inspect.signature(optimizer.step).parameters.get("closure")
        self._asks_again = closure is not None and closure.default is inspect.Parameter.empty
        for callback in self.callbacks:
            callback.attach(self)
        if self._asks_again and (self.accumulate > 1 or self.scaler is not None):
            raise ValueError(
                f"Trainer: {type(optimizer).__name__} computes the loss several times in a step, "
                "which neither Accumulate nor a GradScaler can go with"
            )

    def __repr__(self) -> str:
        loss = getattr(self.loss, "__name__", type(self.loss).__name__)
        kinds = type(self.model).__name__, loss, type(self.optimizer).__name__
        return f"Trainer({', '.join(kinds)}; {self.epoch} epochs, {self.updates} updates)"

    # ---- a step ---------------------------------------------------------------------------------

    def compute(self, model: Module, batch: Any) -> tuple[Any, Tensor]:
        """The model's output for a batch, and the loss, in training and in evaluation.

        Args:
            model: the trainer's, or the one that ``evaluate`` was given.
            batch: as the loader gave it. Here, all parts of it but the last are the model's
                arguments, and the last is the target.
        """
        inputs, target = inputs_and_target(batch)
        output = model(*inputs)
        return output, self.loss(output, target)

    def _computed(self, model: Module, batch: Any) -> tuple[Any, Tensor]:
        with self._forward():
            return self.compute(model, batch)

    def _forward(self) -> contextlib.ExitStack:
        stack = contextlib.ExitStack()
        for callback in self.callbacks:
            stack.enter_context(callback.forward(self))
        return stack

    def zero_grad(self) -> None:
        """Forget the gradients: of all parameters, also those that the optimizer does not hold."""
        self.model.zero_grad()
        self.optimizer.zero_grad()
        self._pending = 0

    def step(self, *batch: Any, gradients: bool = False, updates: bool = False) -> Step:
        """Forward, backward and update, for one batch.

        Args:
            batch: the model's arguments and, last, the target: ``step(x, y)``.
            gradients: report the gradients that the optimizer was given.
            updates: report what the step has added to the parameters.
        """
        done = self._step(batch[0] if len(batch) == 1 else batch, gradients, updates)
        for callback in self.callbacks:
            callback.after_step(self, done)
        return done

    def _step(self, batch: Any, gradients: bool = False, updates: bool = False) -> Step:
        if not self.model.training:
            self.model.train()
        before = Parameters.of(self.model) if updates else None
        if self._pending == 0:
            self.zero_grad()
        if self._asks_again:
            output, loss, updated = self._step_by_closure(batch)
        else:
            output, loss = self._computed(self.model, batch)
            self._backward(loss)
            updated = self._pending >= self.accumulate and self._update()
        return Step(
            loss.item(),
            output,
            updated,
            self._gradients() if gradients else None,
            Parameters.of(self.model) - before if before is not None else None,
        )

    def _backward(self, loss: Tensor) -> None:
        share = loss if self.accumulate == 1 else loss / self.accumulate
        (share if self.scaler is None else self.scaler.scale(share)).backward()
        self._pending += 1

    def _update(self) -> bool:
        """Step the optimizer by the gradients that are there."""
        self._pending = 0
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        for callback in self.callbacks:
            callback.before_update(self)
        if self.scaler is None:
            self.optimizer.step()
        else:
            scale = self.scaler.get_scale()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            if self.scaler.get_scale() < scale:
                return False
        self._updated()
        return True

    def _updated(self) -> None:
        self.updates += 1
        for callback in self.callbacks:
            callback.after_update(self)

    def _step_by_closure(self, batch: Any) -> tuple[Any, Tensor, bool]:
        """A step of an optimizer that asks for the loss at several places."""
        outputs = []

        def closure() -> Tensor:
            self.zero_grad()
            output, loss = self._computed(self.model, batch)
            outputs.append(output)
            loss.backward()
            for callback in self.callbacks:
                callback.before_update(self)
            return loss

        loss = self.optimizer.step(closure)
        self._updated()
        return outputs[0], loss, True

    def _gradients(self) -> Parameters:
        named = self.model.named_parameters()
        return Parameters({n: p.grad.detach() for n, p in named if p.grad is not None})

    # ---- many steps -----------------------------------------------------------------------------

    def fit(
        self,
        data: Any,
        y: Any = None,
        *,
        epochs: int = 1,
        batch_size: int = 32,
        shuffle: bool = True,
        validation: Any = None,
    ) -> list[dict[str, Any]]:
        """Train until ``epochs`` passes through the data have been made in all.

        What was trained before counts, also before a resume: a program that is run again goes on
        where it was, and does nothing once it is through.

        Args:
            data: a DataLoader or another iterable of batches; or a tensor, array or Dataset, of
                which batches are made.
            y: the targets, where ``data`` is a tensor or array.
            epochs: at how many passes to end, counted from the trainer's first.
            batch_size, shuffle: of the batches that are made; a loader has its own.
            validation: data to evaluate after every epoch: as ``data``, or ``(X, y)``.

        Returns:
            The history.
        """
        if self.stop and self._resumed is None:
            warnings.warn(
                "Trainer.fit: the training has been stopped, as by EarlyStopping; to go on, set "
                "trainer.stop = False",
                stacklevel=2,
            )
        elif self.epoch >= epochs and self._resumed is None:
            warnings.warn(
                f"Trainer.fit: {self.epoch} epochs are done already, and epochs={epochs} counts "
                "from the first one, so there is nothing to do",
                stacklevel=2,
            )
        loader = as_loader(data, y, batch_size, shuffle)
        if getattr(loader, "persistent_workers", False):
            warnings.warn(
                "Trainer.fit: the random streams of persistent workers cannot be put back, so what "
                "their dataset draws differs after a resume; use persistent_workers=False",
                stacklevel=2,
            )
        held_out = None
        if validation is not None:
            inputs, targets = validation if isinstance(validation, tuple) else (validation, None)
            held_out = as_loader(inputs, targets, batch_size, shuffle=False)
        self._loader = loader
        try:
            for callback in self.callbacks:
                callback.fit_start(self)
            while self.epoch < epochs and not self.stop:
                self._fit_epoch(loader, held_out)
            for callback in self.callbacks:
                callback.fit_end(self)
        finally:
            self._loader = self._epoch_streams = self._resumed = None
            for callback in self.callbacks:
                callback.close(self)
        return self.history

    def _fit_epoch(self, loader: Any, held_out: Any) -> None:
        if self._resumed is None:
            self.batch, self._sums = 0, {}  # also after a fit that was stopped
        for callback in self.callbacks:
            callback.epoch_start(self, loader)
        for batch in self._batches(loader):
            self._one_of_many(batch)
            if self.stop:
                return
        if self._pending:
            self._update()
        log = {"epoch": self.epoch + 1, **means(self._sums)}
        if held_out is not None:
            log.update({f"validation {k}": v for k, v in self.evaluate(held_out).items()})
        self.history.append(log)
        self.epoch, self.batch, self._sums, self._epoch_streams = self.epoch + 1, 0, {}, None
        for callback in self.callbacks:
            callback.epoch_end(self, log)

    def _batches(self, loader: Any) -> Iterator[Any]:
        """The batches of a pass, from the one on that comes next."""
        resumed, self._resumed = self._resumed, None
        if resumed is None:
            self._epoch_streams = streams(loader)
            yield from loader
            return
        # The pass begins as it once did, up to the place; what it draws from then on is what was
        # saved there.
        start = resumed["epoch"] or resumed["now"]
        load_streams(start, loader)
        self._epoch_streams = start
        batches = iter(loader)
        for done in range(self.batch):
            if next(batches, self) is self:
                raise ValueError(
                    f"Trainer.fit: the training had come to batch {self.batch} of an epoch, but "
                    f"the data has only {done}"
                )
        if resumed["epoch"] is not None:
            load_streams(resumed["now"], loader)
        yield from batches

    def _one_of_many(self, batch: Any) -> None:
        done = self._step(batch)
        with taeda.no_grad():
            add_up(self._sums, self._values(done.loss, done.output, batch), size_of(batch))
        self.batch += 1
        # Callbacks may save the trainer, in which the batch must be complete.
        for callback in self.callbacks:
            callback.after_step(self, done)

    def _values(self, loss: float, output: Any, batch: Any) -> dict[str, float]:
        target = inputs_and_target(batch)[1]
        return {"loss": loss, **{n: float(f(output, target)) for n, f in self.metrics.items()}}

    def evaluate(
        self, data: Any, y: Any = None, *, batch_size: int = 32, model: Module | None = None
    ) -> dict[str, float]:
        """The mean loss and metrics over data, in evaluation mode.

        Args:
            data, y, batch_size: as of ``fit``.
            model: another model to evaluate, such as an ``Average``'s.
        """
        sums: dict[str, float] = {}
        chosen = self.model if model is None else model
        with _evaluating(chosen):
            for batch in as_loader(data, y, batch_size, shuffle=False):
                output, loss = self._computed(chosen, batch)
                add_up(sums, self._values(loss.item(), output, batch), size_of(batch))
        return means(sums)

    def predict(self, data: Any, *, batch_size: int = 32, model: Module | None = None) -> Any:
        """The model's outputs, in evaluation mode, joined along the first dimension.

        Args:
            data: inputs: a tensor or array, or an iterable of batches, whose last part is taken for
                the target where they have several.
            batch_size: of the batches that are made of a tensor.
            model: another model, such as an ``Average``'s.
        """
        chosen = self.model if model is None else model
        with _evaluating(chosen):
            batches = as_loader(data, None, batch_size, shuffle=False)
            outputs = []
            for batch in batches:
                with self._forward():
                    outputs.append(chosen(*inputs_and_target(batch)[0]))
            return joined(outputs)

    # ---- saving and resuming --------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that going on from here depends on.

        The model, the optimizer, the callbacks (schedules, scaler, averages), gradients that are
        being accumulated, all random streams, the epoch, and the place in it: the streams as they
        were when the pass through the data began, and the number of batches since. Tensors are not
        copies.
        """
        return state_of(self)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave; the next ``fit`` goes on from there.

        The trainer must have been made as the one that was saved: of the same model, optimizer and
        callbacks, though not of those that remember nothing. ``fit`` must be given the same data.

        Raises:
            ValueError: the callbacks differ, or the state is of another version.
        """
        load_state(self, state_dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which replaces an old one in one step."""
        taeda.save(self.state_dict(), path)

    def resume(self, path: str | os.PathLike[str]) -> bool:
        """Go on from a file that ``save`` or ``Checkpoint`` has written, if there is one.

        Returns:
            Whether there was.
        """
        if not os.path.exists(path):
            return False
        self.load_state_dict(taeda.load(path))
        return True


@contextlib.contextmanager
def _evaluating(model: Module) -> Iterator[None]:
    """Within, the model is in evaluation mode and no gradients are recorded."""
    before = [(child, child.training) for child in model.modules()]
    model.eval()
    try:
        with taeda.no_grad():
            yield
    finally:
        for child, mode in before:
            child.training = mode


def _check_kinds(model: Any, loss: Any, optimizer: Any) -> None:
    """Raise TypeError for arguments of Trainer that are not of their kind."""
    if not isinstance(model, taeda.nn.Module):
        raise TypeError(f"Trainer: model must be a Module, got {_kind(model)}")
    if not callable(loss) or (isinstance(loss, type) and issubclass(loss, taeda.nn.Module)):
        raise TypeError(
            "Trainer: loss must be a function of output and target, such as "
            f"taeda.nn.MSELoss(), got {_kind(loss)}"
        )
    if not isinstance(optimizer, taeda.optim.Optimizer):
        raise TypeError(
            "Trainer: optimizer must be an Optimizer, such as "
            f"taeda.optim.SGD(model.parameters(), lr=0.1), got {_kind(optimizer)}"
        )


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
