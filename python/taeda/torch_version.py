"""The class of ``torch.__version__``."""

from taeda.compat._torch import TorchVersion

__all__ = ["TorchVersion"]
