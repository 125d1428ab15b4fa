"""Small functions that packages take from the module of `save` and `load`."""

from __future__ import annotations

from typing import Any

from taeda._C import UntypedStorage

__all__ = ["check_module_version_greater_or_equal", "default_restore_location"]


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is at least a version.

    Args:
        module: the module.
        req_version_tuple: the version, as numbers.
        error_if_malformed: raise where the module's version is not made of numbers; else warn, and
            take it for new enough.

    Raises:
        RuntimeError: the version is malformed, and that is an error.
    """
    try:
        parts = zip(req_version_tuple, str(module.__version__).split("."), strict=False)
        own = tuple(type(wanted)(part) for wanted, part in parts)
    except Exception as error:
        text = f"'{module.__name__}' module version string is malformed '{module.__version__}'"
        if error_if_malformed:
            raise RuntimeError(text) from error
        import warnings

        warnings.warn(text + ", and is taken for new enough", stacklevel=2)
        return True
    return own >= req_version_tuple


def default_restore_location(storage: Any, location: str) -> Any:
    """Put a storage where a file says that it was: on the CPU.

    Raises:
        RuntimeError: the location is none, or a device that this build lacks.
    """
    if location == "cpu":
        return storage
    if location == "meta":
        return UntypedStorage(storage.nbytes(), device="meta")
    raise RuntimeError(
        f"don't know how to restore data location of {type(storage).__name__} (tagged with "
        f"{location})"
    )
