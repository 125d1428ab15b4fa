"""The classes of ``utils.tensorboard`` where PyTorch defines them."""

from taeda.utils.tensorboard import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
