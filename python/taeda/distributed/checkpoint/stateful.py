"""What can be saved and loaded."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """Something with a ``state_dict`` and a ``load_state_dict``."""

    def state_dict(self) -> dict[str, Any]:
        """Return what is to be saved."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what was saved."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
