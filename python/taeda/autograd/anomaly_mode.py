"""Anomaly detection: a failing backward says which forward line it belongs to."""

from __future__ import annotations

import warnings

from taeda import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Anomaly detection on or off: from now on as a call, within the block as a context.

    While it is on, each recorded operation remembers where it was called, a backward that fails
    warns with that place, and (with `check_nan`) a derivative that gives NaN is an error. This is
    slow, and for debugging only.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        """Nothing is left to do: it has been switched already."""

    def __exit__(self, *exc_info: object) -> None:
        _C._set_anomaly(*self._before)


class detect_anomaly:
    """Anomaly detection within a block. Forward and backward must both run in it.

    >>> import taeda, warnings
    >>> x = taeda.zeros(1, requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with taeda.autograd.detect_anomaly():
    ...         y = (x / x).sum()
    ...         y.backward()
    Traceback (most recent call last):
    RuntimeError: Function 'DivBackward0' returned nan values in its 1th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly(True, self.check_nan)

    def __exit__(self, *exc_info: object) -> None:
        _C._set_anomaly(*self._before)
