"""The older name of ``taeda.hub.load_state_dict_from_url``."""

from typing import Any

from taeda import hub
from taeda.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


def __getattr__(name: str) -> Any:
    if name == "tqdm":
        return hub.tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
