"""Neural networks: modules, layers, losses, initialisation."""

from typing import TYPE_CHECKING

from taeda.nn import attention as attention
from taeda.nn import functional as functional
from taeda.nn import grad as grad
from taeda.nn import init as init
from taeda.nn import modules as modules
from taeda.nn import parallel as parallel
from taeda.nn import parameter as parameter
from taeda.nn import quantized as quantized
from taeda.nn import utils as utils
from taeda.nn._factory_kwargs import factory_kwargs as factory_kwargs
from taeda.nn.module import Module as Module
from taeda.nn.modules import *
from taeda.nn.parallel import DataParallel as DataParallel
from taeda.nn.parameter import Buffer as Buffer
from taeda.nn.parameter import Parameter as Parameter
from taeda.nn.parameter import UninitializedBuffer as UninitializedBuffer
from taeda.nn.parameter import UninitializedParameter as UninitializedParameter

if not TYPE_CHECKING:  # mypy reads lists of strings alone; to it, all from above is public
    __all__ = [
        "Buffer",
        "DataParallel",
        "Module",
        "Parameter",
        "UninitializedBuffer",
        "UninitializedParameter",
        "attention",
        "factory_kwargs",
        "functional",
        "grad",
        "init",
        "modules",
        "parallel",
        "parameter",
        "utils",
    ]
    __all__ += modules.__all__
