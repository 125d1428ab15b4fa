"""Neural networks: modules, layers, losses, initialisation."""

from taeda.nn import attention, functional, grad, init, modules, parameter, utils
from taeda.nn.module import Module
from taeda.nn.modules import *
from taeda.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Module",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "functional",
    "grad",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += modules.__all__
