"""What notebooks show is bounded and true, and leaves the text of repr as it is."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import zlib

import pytest

import taeda
from taeda import _display, nn


def cells(text: str) -> list[str]:
    return re.findall(r"<td>([^<]*)</td>", text)


def test_importing_the_package_does_not_load_displays():
    code = "import sys, taeda, taeda.nn; print('taeda._display' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_matrix_is_a_table():
    x = taeda.tensor([[1.5, -2.0], [float("nan"), 3.25]], requires_grad=True)
    text = x._repr_html_()
    assert cells(text)[1:] == ["1.5000", "-2.0000", "nan", "3.2500"]
    assert "Tensor of shape (2, 2), float32, requires grad" in text
    assert "from MulBackward0" in (x * 2)._repr_html_()
    assert cells(taeda.tensor([1, 20])._repr_html_())[1:] == ["1", "20"]
    assert cells(taeda.tensor([1 + 2j])._repr_html_())[1:] == ["1.+2.j"]
    assert "Parameter of shape (1,)" in nn.Parameter(taeda.ones(1))._repr_html_()


def test_large_tensors_show_their_edges():
    x = taeda.arange(1_000_000).reshape(1000, 1000)
    text = x._repr_html_()
    rows = re.findall(r'<th scope="row">([^<]*)</th>', text)
    assert rows == [*map(str, range(9)), "⋮", *map(str, range(991, 1000))]
    shown = [int(c) for c in cells(text) if c.isdigit()]
    ends = [*range(9), *range(991, 1000)]
    assert shown == [1000 * r + c for r in ends for c in ends]
    assert len(taeda.zeros(3000, 3000)._repr_html_()) < 20_000
    assert len(cells(taeda.arange(20)._repr_html_())) == 1 + 20
    volume = taeda.arange(24).reshape(2, 3, 4)._repr_html_()
    assert "at [0, :, :]" in volume and cells(volume)[1:] == [str(i) for i in range(12)]


def test_images_are_pictures():
    x = taeda.rand(3, 10, 12)
    text = x._repr_html_()
    assert "<img" in text and "<table" not in text
    code = re.search(r"base64,([^\"]+)", text)[1]
    data = base64.b64decode(code)
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and data[16:24] == b"\0\0\0\x0c\0\0\0\x0a"
    start = data.index(b"IDAT") + 4
    size = int.from_bytes(data[start - 8 : start - 4], "big")
    rows = zlib.decompress(data[start : start + size])
    pixels = [rows[1 + r * 37 : (r + 1) * 37] for r in range(10)]
    want = (x * 255).round().to(taeda.uint8).permute(1, 2, 0).flatten(1).tolist()
    assert [list(row) for row in pixels] == want
    many = taeda.randint(0, 256, (50, 1, 500, 400), dtype=taeda.uint8)._repr_html_()
    assert many.count("<img") == 8 and len(many) < 150_000
    # Values beyond 0 to 1, masks and other numbers of channels are tables.
    for other in (taeda.rand(3, 9, 9) * 2, taeda.ones(3, 9, 9), taeda.rand(2, 9, 9)):
        assert "<table" in other._repr_html_()


def test_what_has_no_table_has_its_text():
    class Mine(taeda.Tensor):
        pass

    plain = [taeda.tensor(1.0), taeda.zeros(0, 3), taeda.ones(2, device="meta")]
    plain += [taeda.eye(2).to_sparse(), taeda.ones(2).as_subclass(Mine)]
    for x in plain:
        assert x._repr_html_() is None


def test_modules_fold():
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 2)))
    model[0].requires_grad_(False)
    before = repr(model)
    text = model._repr_html_()
    assert text.count("<details") == 2 and text.count('class="leaf"') == 3
    assert "58 parameters, 40 of them frozen" in text and "Linear(in_features=8" in text
    assert repr(model) == before
    assert "parameters" not in nn.LazyLinear(3)._repr_html_()
    many = nn.ModuleList(nn.Sequential(nn.Tanh()) for _ in range(300))
    shown = many._repr_html_()
    assert shown.count("<code>") == _display.MODULES and "401 more modules" in shown


def test_names_are_escaped():
    class Odd(nn.Module):
        def extra_repr(self) -> str:
            return "<b>"

    assert "<b>" not in Odd()._repr_html_() and "&lt;b&gt;" in Odd()._repr_html_()


def test_recordings_have_curves():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
    with taeda.record(model, optimizer) as empty:
        pass
    assert "<record: no steps>" in empty._repr_html_().replace("&lt;", "<").replace("&gt;", ">")
    with taeda.record(model, optimizer, every=1) as recording:
        for _ in range(5):
            optimizer.zero_grad()
            model(taeda.ones(4, 2)).square().mean().backward()
            optimizer.step()
    text = recording._repr_html_()
    assert ">loss<" in text and text.count("<svg") >= 2 and "update / weight, 0.weight" in text
    assert text.count("<tr>") - 1 <= _display.CURVES


@pytest.mark.parametrize("values", [[], [1.0], [None, float("nan"), 2.0]])
def test_curves_need_two_points(values):
    assert _display.sparkline(values) == ""


def test_curves_are_bounded():
    text = _display.sparkline(range(100_000))
    assert 'points="0.0,20.0' in text and text.count(",") < 500
