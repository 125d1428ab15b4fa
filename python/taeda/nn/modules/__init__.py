"""The layers, one file for each family."""

from typing import TYPE_CHECKING

from taeda.nn.module import Module as Module
from taeda.nn.modules import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    ctc,
    distance,
    dropout,
    flatten,
    instancenorm,
    linear,
    linear_loss,
    loss,
    normalization,
    padding,
    pooling,
    rnn,
    sparse,
    transformer,
    vision,
)
from taeda.nn.modules.activation import *
from taeda.nn.modules.adaptive import *
from taeda.nn.modules.attention import *
from taeda.nn.modules.batchnorm import *
from taeda.nn.modules.container import *
from taeda.nn.modules.conv import *
from taeda.nn.modules.ctc import *
from taeda.nn.modules.distance import *
from taeda.nn.modules.dropout import *
from taeda.nn.modules.flatten import *
from taeda.nn.modules.instancenorm import *
from taeda.nn.modules.linear import *
from taeda.nn.modules.linear_loss import *
from taeda.nn.modules.loss import *
from taeda.nn.modules.normalization import *
from taeda.nn.modules.padding import *
from taeda.nn.modules.pooling import *
from taeda.nn.modules.rnn import *
from taeda.nn.modules.sparse import *
from taeda.nn.modules.transformer import *
from taeda.nn.modules.vision import *

if not TYPE_CHECKING:
    # PyTorch's places for what is in files of its own here: programs import from them.
    for _place, _names in (
        (activation, ("MultiheadAttention",)),
        (container, ("ParameterDict", "ParameterList")),
        (linear, ("NonDynamicallyQuantizableLinear",)),
        (loss, (*ctc.__all__, *linear_loss.__all__)),
        (rnn, ("GRUCell", "LSTMCell", "RNNCell", "RNNCellBase")),
    ):
        for _name in _names:
            if not hasattr(_place, _name):
                setattr(_place, _name, globals().get(_name) or getattr(attention, _name))

if not TYPE_CHECKING:  # mypy reads lists of strings alone; to it, all from above is public
    __all__ = ["Module"]
    __all__ += activation.__all__
    __all__ += adaptive.__all__
    __all__ += attention.__all__
    __all__ += batchnorm.__all__
    __all__ += container.__all__
    __all__ += conv.__all__
    __all__ += ctc.__all__
    __all__ += distance.__all__
    __all__ += dropout.__all__
    __all__ += flatten.__all__
    __all__ += instancenorm.__all__
    __all__ += linear.__all__
    __all__ += linear_loss.__all__
    __all__ += loss.__all__
    __all__ += normalization.__all__
    __all__ += padding.__all__
    __all__ += pooling.__all__
    __all__ += rnn.__all__
    __all__ += sparse.__all__
    __all__ += transformer.__all__
    __all__ += vision.__all__
