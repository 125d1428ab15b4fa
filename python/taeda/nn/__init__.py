from taeda.nn.module import Module
from taeda.nn.parameter import *
from taeda.nn.modules.container import *
