"""Pictures are well-formed, their boxes do not overlap, and they show what is to be seen."""

from __future__ import annotations

import itertools
import os
import random
from xml.etree import ElementTree

import pytest

import taeda
from taeda import nn
from taeda.insight import _graphviz
from taeda.insight._edge_routing import Labels, routes, sampled
from taeda.insight._graphviz import placed
from taeda.insight._layout import Arrow, Box, is_column, layered
from taeda.nn import functional as F

from .models import cases

CASES = cases()
# graphviz is tried where it is installed; what is read of its answers is tested in any case.
LAYOUTS = {"own": layered, **({"graphviz": placed} if _graphviz.executable() else {})}


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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("depth", [None, 1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_models(name, depth, layout):
    picture = drawn(name, depth=depth, layout=layout)
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


def random_graph(seed):
    chance = random.Random(seed)
    count = chance.randint(1, 25)
    boxes = [Box(i, chance.uniform(40, 200), chance.uniform(20, 60)) for i in range(count)]
    pairs = {(i, j) for j in range(count) for i in range(j) if chance.random() < 2 / count}
    return boxes, [Arrow(i, j) for i, j in sorted(pairs)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(30))
def test_layouts_of_random_graphs(seed, layout):
    boxes, arrows = random_graph(seed)
    width, height = LAYOUTS[layout](boxes, arrows, 64.0)
    near = 1e-6
    for a, b in itertools.combinations(boxes, 2):
        assert not overlap(a, b)
    for box in boxes:
        assert -near <= box.x <= width - box.width + near and box.y + box.height <= height + near
    for arrow in arrows:
        start, stop = boxes[arrow.start], boxes[arrow.stop]
        assert start.y + start.height <= stop.y and start.layer < stop.layer
        for x, y in arrow.bends:  # it passes beside the boxes
            assert not any(b.x < x < b.x + b.width and b.y < y < b.y + b.height for b in boxes)


# ---- graphviz -----------------------------------------------------------------------------------

# What `dot -Tplain` 2.43 says of 0 -> 1 -> 2 and 0 -> 2, with boxes of 100 by 40.
PLAIN = """graph 1 1.9444 2.7778
node 0 0.94444 2.5 1.3889 0.55556 0 solid box black lightgrey
node 1 0.69444 1.3889 1.3889 0.55556 0 solid box black lightgrey
node 2 0.94444 0.27778 1.3889 0.55556 0 solid box black lightgrey
edge 0 1 4 0.88182 2.2216 0.8447 2.0566 0.79749 1.8469 0.75809 1.6717 solid "#000000"
edge 1 2 4 0.75706 1.1105 0.79418 0.94549 0.8414 0.73577 0.88079 0.56057 solid "#000001"
edge 0 2 7 1.2128 2.2184 1.3253 2.0801 1.4438 1.8922 1.5 1.6944 1.5778 1.4206 1.2978 0.70 1.1 0.56 \
solid "#000002"
stop
""".replace("\\\n", "")


def fake(monkeypatch, tmp_path, script):
    """A `dot` that is a shell script."""
    path = tmp_path / "dot"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def triangle():
    return [Box(i, 100.0, 40.0) for i in (7, 8, 9)], [Arrow(7, 8), Arrow(8, 9), Arrow(7, 9)]


def test_what_graphviz_answers_is_read(monkeypatch, tmp_path):
    fake(monkeypatch, tmp_path, f"cat > {tmp_path}/asked; cat <<'END'\n{PLAIN}END")
    boxes, arrows = triangle()
    assert placed(boxes, arrows, 40.0) == pytest.approx((123.46, 200.0), abs=0.01)
    corners = [(box.x, box.y, box.layer) for box in boxes]
    expected = [(18.0, 0.0, 0), (0.0, 80.0, 1), (18.0, 160.0, 2)]
    assert corners == [pytest.approx(corner, abs=0.01) for corner in expected]
    assert arrows[0].bends == arrows[1].bends == []
    # The long way passes the second layer where its curve does.
    (x, y), (x2, y2) = arrows[2].bends
    assert (y, y2) == pytest.approx((80.0, 120.0), abs=0.01)
    assert 107 < x < 109 and 100 < x2 < 110
    asked = (tmp_path / "asked").read_text()
    assert "0 [width=1.3889, height=0.5556];" in asked and '0 -> 2 [color="#000002"];' in asked


@pytest.mark.parametrize("script", ["exit 1", "echo nonsense", "echo node 99 1 1", "kill -9 $$"])
def test_without_a_working_graphviz(script, monkeypatch, tmp_path):
    own = drawn("gpt", layout="own").svg()
    fake(monkeypatch, tmp_path, f"cat > /dev/null; {script}")
    assert drawn("gpt").svg() == own
    with pytest.raises(RuntimeError, match="did not lay the picture out"):
        drawn("gpt", layout="graphviz")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert drawn("gpt").svg() == own
    with pytest.raises(RuntimeError, match="graphviz is not installed"):
        drawn("gpt", layout="graphviz")


def test_a_column_needs_no_graphviz(monkeypatch, tmp_path):
    fake(monkeypatch, tmp_path, f"touch {tmp_path}/asked; exit 1")
    drawn("mlp"), drawn("resnet18")
    assert not (tmp_path / "asked").exists()
    boxes, arrows = triangle()
    assert is_column(boxes, arrows[:2]) and not is_column(boxes, arrows)
    nothing = taeda.wiring(taeda.ones(()), layout="own")
    assert nothing.boxes == []
    with pytest.raises(ValueError, match="layout must be"):
        drawn("mlp", layout="round")


# ---- arrows and their labels --------------------------------------------------------------------


def test_arrows_do_not_cross_at_their_ends():
    boxes = [Box(i, 120.0, 40.0) for i in range(5)]
    arrows = [Arrow(0, 3), Arrow(1, 3), Arrow(2, 3), Arrow(3, 4)]
    layered(boxes, arrows, 50.0)
    ways = routes(boxes, arrows)
    by_start = sorted(range(3), key=lambda i: ways[i][0][0])
    ends = [ways[i][-1][0] for i in by_start]
    assert ends == sorted(ends) and min(b - a for a, b in itertools.pairwise(ends)) >= 28
    assert all(boxes[3].x < x < boxes[3].x + 120 for x in ends)
    assert ways[3][0][0] == boxes[3].middle


@pytest.mark.parametrize("seed", range(10))
def test_labels_cover_neither_boxes_nor_each_other(seed):
    boxes, arrows = random_graph(seed)
    layered(boxes, arrows, 56.0)
    ways = routes(boxes, arrows)
    labels = Labels([(b.x, b.y, b.x + b.width, b.y + b.height) for b in boxes])
    for way in ways:
        labels.lines += sampled(way)
    for way in ways:
        labels.place(way, "8x8", 11)
    placed_ones = labels.solid[len(boxes) :]
    hidden = sum(
        a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
        for i, a in enumerate(placed_ones)
        for b in [*labels.solid[: len(boxes)], *placed_ones[:i]]
    )
    assert hidden <= len(ways) // 10


def test_operations_that_compute_are_named_first():
    assert "linear x2 · rnn x2" in drawn("lstm").svg()
    assert "scaled_dot_product_attention" in drawn("gpt").svg()
