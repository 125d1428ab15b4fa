"""`strict`: silent mistakes of training loops become errors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ._session import Session, TrainingMistake

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["TrainingMistake", "strict"]

F = TypeVar("F", bound=Callable[..., Any])

KINDS = (
    "accumulated", "broadcast", "eval", "graph_twice", "logits", "no_gradient", "not_finite",
    "partial", "replaced", "stale",
)  # fmt: skip


class strict:
    """Turn the silent mistakes of a training loop into errors that say what to do.

    A context manager, a decorator, and, by `enable` and `disable`, a switch for the process. While
    it is on, ``backward()`` and ``optimizer.step()`` raise a `TrainingMistake`, which is a
    RuntimeError, for what is in the table; ``allow`` takes the names on the left.

    ============= ================================================================================
    stale         ``step()`` without a new ``backward()``
    no_gradient   ``step()`` when no parameter has a gradient
    accumulated   ``step()`` with the sum of more backwards than ``accumulate``, or of one that a
                  step has used: ``zero_grad()`` is missing
    graph_twice   ``backward()`` through a graph that has been run, and was retained
    replaced      the model's parameters are not those that the optimizer was made of
    partial       the loss reaches parameters that no optimizer holds
    eval          a step in evaluation mode
    not_finite    gradients that are infinite or NaN, with the operation where they arose
    broadcast     predictions (N, 1) compared with targets (N,), and the like
    logits        a softmax before cross_entropy, a sigmoid before binary_cross_entropy_with_logits
    ============= ================================================================================

    Some checks take little time, and are made in each step. Those that look at the graph, all
    parameters, or all gradients are made in the first three steps, and then as often as takes 1 %
    of the time; a mistake that begins later is found a few steps later.

    Args:
        accumulate: of how many backwards the gradient of a step may be the sum.
        allow: names of mistakes that are meant.
        every: make all checks in each ``every``-th step, however long they take.

    Raises:
        ValueError: ``accumulate`` or ``every`` is less than 1, or a name in ``allow`` is not
            in the table.

    >>> model = taeda.nn.Linear(2, 1)
    >>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    >>> with taeda.strict():
    ...     for _ in range(2):
    ...         model(taeda.ones(3, 2)).square().mean().backward()
    ...         optimizer.step()
    Traceback (most recent call last):
    taeda.insight._session.TrainingMistake: SGD.step: the gradients are a sum ...
    """

    def __init__(
        self, *, accumulate: int = 1, allow: Iterable[str] = (), every: int | None = None
    ) -> None:
        allowed = frozenset([allow] if isinstance(allow, str) else allow)
        if accumulate < 1:
            raise ValueError(f"strict(): accumulate must be at least 1, got {accumulate}")
        if every is not None and every < 1:
            raise ValueError(f"strict(): every must be at least 1, got {every}")
        if unknown := allowed.difference(KINDS):
            raise ValueError(
                f"strict(): allow has {sorted(unknown)}; the names are {', '.join(KINDS)}"
            )
        self._options = (accumulate, allowed, every)
        self._sessions: list[Session] = []

    def enable(self) -> Self:
        """Be strict from now on, in the whole process."""
        session = Session(*self._options)
        self._sessions.append(session)
        session.start()
        return self

    def disable(self) -> None:
        """End what the last `enable` has begun.

        Raises:
            RuntimeError: it is not on.
        """
        if not self._sessions:
            raise RuntimeError("strict.disable(): it has not been enabled")
        self._sessions.pop().stop()

    def __enter__(self) -> Self:
        return self.enable()

    def __exit__(self, *exc_info: object) -> None:
        self.disable()

    def __call__(self, function: F) -> F:
        """Decorate a function: it runs strictly."""

        @functools.wraps(function)
        def strictly(*args: Any, **kwargs: Any) -> Any:
            with strict(
                accumulate=self._options[0], allow=self._options[1], every=self._options[2]
            ):
                return function(*args, **kwargs)

        return strictly  # type: ignore[return-value]
