"""The functions behind the layers: each takes its weights as arguments and keeps no state."""

from __future__ import annotations

from taeda.nn.functional._activation import *
from taeda.nn.functional._attention import *
from taeda.nn.functional._conv import *
from taeda.nn.functional._dropout import *
from taeda.nn.functional._embedding import *
from taeda.nn.functional._loss import *
from taeda.nn.functional._margin_loss import *
from taeda.nn.functional._norm import *
from taeda.nn.functional._pooling import *
from taeda.nn.functional._sampling import *
from taeda.nn.functional._shape import *
