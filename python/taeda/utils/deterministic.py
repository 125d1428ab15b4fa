"""PyTorch's switch for memory that is not filled in: it keeps what it is set to.

Every operation of taeda is deterministic. What ``empty`` gives is not filled in, whatever is said
here.
"""

from __future__ import annotations

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory: bool = True
