"""A line search that ends where the strong Wolfe conditions hold.

Nocedal, Wright: Numerical optimization, 2nd edition, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda import Tensor


class Point(NamedTuple):
    """A point on the line: the function there, its gradient, and its slope along the line."""

    t: float
    value: float
    gradient: Any
    slope: float


def cubic_minimum(a: Point, b: Point, low: float, high: float) -> float:
    """Where, between ``low`` and ``high``, the cubic through two points with slopes is lowest."""
    if a.t > b.t:
        a, b = b, a
    mean = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    discriminant = mean**2 - a.slope * b.slope
    if not discriminant >= 0:
        return (low + high) / 2
    root = discriminant**0.5
    t = b.t - (b.t - a.t) * ((b.slope + root - mean) / (b.slope - a.slope + 2 * root))
    return min(max(t, low), high)


class StrongWolfe:
    """One search along ``direction``.

    Args:
        evaluate: ``evaluate(t)`` gives the function's value and gradient at ``t`` on the line.
        direction: the line's direction.
        start: the point at 0.
        tolerance_change: how small a bracket ends the search.
        max_steps: how many further points are tried.
        decrease: the share of the first slope's descent that a step must reach (c1).
        curvature: the share of the first slope that may be left (c2).
    """

    def __init__(
        self,
        evaluate: Callable[[float], tuple[float, Tensor]],
        direction: Tensor,
        start: Point,
        tolerance_change: float = 1e-9,
        max_steps: int = 25,
        decrease: float = 1e-4,
        curvature: float = 0.9,
    ) -> None:
        self._evaluate = evaluate
        self._direction = direction
        self._start = start
        self._tolerance = tolerance_change
        self._steps_left = max_steps
        self._decrease = decrease
        self._curvature = curvature
        self.evaluations = 0

    def search(self, t: float) -> Point:
        """The point found, starting from a step of ``t``."""
        bracket = self._bracket(t)
        low, high = sorted(bracket, key=lambda p: p.value)
        if low is high or self._is_flat(low):
            return low
        return self._zoom(low, high)

    def _at(self, t: float) -> Point:
        value, gradient = self._evaluate(t)
        self.evaluations += 1
        return Point(t, value, gradient, gradient.dot(self._direction).item())

    def _is_too_high(self, p: Point) -> bool:
        return p.value > self._start.value + self._decrease * p.t * self._start.slope

    def _is_flat(self, p: Point) -> bool:
        return not self._is_too_high(p) and abs(p.slope) <= -self._curvature * self._start.slope

    def _bracket(self, t: float) -> tuple[Point, Point]:
        """Two points with a minimum between them; or the same one twice, which will do."""
        before, now = self._start, self._at(t)
        tried = 0
        while self._steps_left > 0:
            if self._is_too_high(now) or (tried > 1 and now.value >= before.value):
                return before, now
            if self._is_flat(now):
                return now, now
            if now.slope >= 0:
                return before, now
            least, most = now.t + 0.01 * (now.t - before.t), now.t * 10
            t = cubic_minimum(before, now, least, most)
            before, now = now, self._at(t)
            tried += 1
            self._steps_left -= 1
        return self._start, now

    def _zoom(self, low: Point, high: Point) -> Point:
        """Narrow a bracket; ``low`` is always its lower end."""
        width = self._direction.abs().max().item()
        was_near_an_end = False
        while self._steps_left > 0:
            left, right = sorted((low.t, high.t))
            if (right - left) * width < self._tolerance:
                break
            t = cubic_minimum(low, high, left, right)
            margin = 0.1 * (right - left)
            near_an_end = min(right - t, t - left) < margin
            if near_an_end and (was_near_an_end or not left < t < right):
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                near_an_end = False
            was_near_an_end = near_an_end
            now = self._at(t)
            self._steps_left -= 1
            if self._is_too_high(now) or now.value >= low.value:
                high = now
            else:
                if self._is_flat(now):
                    return now
                if now.slope * (high.t - low.t) >= 0:
                    high = low
                low = now
        return low
