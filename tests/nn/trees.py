"""Modules that the tests of Module build."""

import taeda
from taeda import nn


class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(taeda.ones(2))
        self.register_parameter("none", None)
        self.register_buffer("b", taeda.zeros(1))
        self.register_buffer("temporary", taeda.zeros(1), persistent=False)

    def forward(self, x, scale=1):
        return x * self.w * scale


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = Leaf()
        self.right = nn.Sequential(Leaf(), nn.Identity())
        self.same = self.left
        self.own = nn.Parameter(taeda.ones(1))

    def forward(self, x):
        return self.right(self.left(x)) * self.own


def names(pairs):
    return [name for name, _ in pairs]
