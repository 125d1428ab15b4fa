"""How long groups of processes wait, where PyTorch defines it."""

from ._process_group import default_pg_timeout

__all__ = ["default_pg_timeout"]
