"""Pictures are well-formed, their boxes do not overlap, and they show what is to be seen."""

from __future__ import annotations

import itertools
import random
from xml.etree import ElementTree

import pytest

import taeda
from taeda import nn
from taeda.insight._layout import Arrow, Box, layered
from taeda.nn import functional as F

from .models import cases

CASES = cases()


def drawn(name, **options):
    model, x, loss = CASES[name]
    optimizer = taeda.optim.Adam(model.parameters())
    return taeda.wiring(loss(model(x)), model, optimizer, **options)


def overlap(a, b):
    return (
        a.x < b.x + b.width
        and b.x < a.x + a.width
        and a.y < b.y + b.height
        and b.y < a.y + a.height
    )


def check(picture):
    for a, b in itertools.combinations(picture.boxes, 2):
        assert not overlap(a, b), (a, b)
    for box in picture.boxes:
        assert box.x >= 0 and box.y >= 0
        assert box.x + box.width <= picture.width and box.y + box.height <= picture.height
    for theme in ("auto", "light", "dark"):
        root = ElementTree.fromstring(picture.svg(theme))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(root.findall(".//{http://www.w3.org/2000/svg}text")) > len(picture.boxes)


def modules(picture):
    return [box.title for box in picture.boxes if box.kind in ("module", "loss")]


@pytest.mark.parametrize("depth", [None, 1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_models(name, depth):
    picture = drawn(name, depth=depth)
    check(picture)
    if depth is None:
        assert len(modules(picture)) <= 14 and picture.width < 900


def test_folding():
    assert modules(drawn("mlp")) == [
        "0: Linear", "1: ReLU", "2: Linear", "3: ReLU", "4: Linear", "loss",
    ]  # fmt: skip
    assert modules(drawn("resnet18")) == [
        "conv1: Conv2d", "bn1: BatchNorm2d", "relu: ReLU", "maxpool: MaxPool2d",
        "layer1: Sequential", "layer2: Sequential", "layer3: Sequential", "layer4: Sequential",
        "avgpool: AdaptiveAvgPool2d", "view", "fc: Linear", "loss",
    ]  # fmt: skip
    assert modules(drawn("gpt"))[2:6] == ["add", *(f"blocks.{i}: GPTBlock" for i in range(3))]
    assert modules(drawn("lstm")) == ["embed: Embedding", "lstm: LSTM", "out: Linear", "loss"]


def test_shapes_settings_and_sharing():
    text = drawn("gpt").svg()
    for words in ("2x10x16", "weight 32x16, shared", "12 parameters", "lr=0.001, 40 tensors"):
        assert words in text
    assert "prefers-color-scheme: dark" in text and "prefers" not in drawn("gpt").svg("light")


def test_what_is_not_connected():
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 3))
    optimizer = taeda.optim.SGD([*model[1].parameters(), nn.Parameter(taeda.ones(1))], lr=0.1)
    hidden = model[0](taeda.ones(5, 4)).detach()
    loss = F.cross_entropy(model[2](model[1](hidden)), taeda.zeros(5).long())
    picture = taeda.wiring(loss, model, optimizer)
    check(picture)
    assert [box.title for box in picture.boxes if box.kind == "unreached"] == ["0"]
    text = picture.svg()
    assert "not in the optimizer" in text and "1 of them not" in text


def test_without_model_or_graph(tmp_path):
    x = taeda.ones(3, requires_grad=True)
    picture = taeda.wiring((x * 2).exp().sum())
    check(picture)
    assert modules(picture) == ["loss"]
    picture.save(tmp_path / "wiring.svg", theme="dark")
    assert (tmp_path / "wiring.svg").read_text() == picture.svg("dark")
    check(taeda.wiring(x.detach().sum(), nn.Linear(2, 2)))
    model, x, loss = CASES["mlp"]
    value = loss(model(x))
    value.backward()
    check(taeda.wiring(value, model))  # the graph is freed: no shapes
    with pytest.raises(ValueError, match="depth must be at least 1"):
        drawn("mlp", depth=0)
    with pytest.raises(ValueError, match="theme"):
        picture.svg("blue")
    with pytest.raises(TypeError, match=r"wiring\(\): loss"):
        taeda.wiring(model)


@pytest.mark.parametrize("seed", range(30))
def test_layouts_of_random_graphs(seed):
    chance = random.Random(seed)
    count = chance.randint(1, 25)
    boxes = [Box(i, chance.uniform(40, 200), chance.uniform(20, 60)) for i in range(count)]
    pairs = {(i, j) for j in range(count) for i in range(j) if chance.random() < 2 / count}
    arrows = [Arrow(i, j) for i, j in sorted(pairs)]
    width, height = layered(boxes, arrows)
    for a, b in itertools.combinations(boxes, 2):
        assert not overlap(a, b)
    for box in boxes:
        assert -1e-6 <= box.x <= width - box.width + 1e-6 and box.y + box.height <= height + 1e-6
    for arrow in arrows:
        start, stop = boxes[arrow.start], boxes[arrow.stop]
        assert start.y + start.height <= stop.y
        for x, y in arrow.bends:  # it passes beside the boxes
            assert not any(b.x < x < b.x + b.width and b.y < y < b.y + b.height for b in boxes)
