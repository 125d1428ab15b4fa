"""torchvision's own operations, as the stand-in for torch gives them, against plain loops."""

import math

import pytest

import taeda
from taeda.compat.private import ops as torch_ops


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "torchvision"
    folder.mkdir()
    for name in ("_C.so", "_C_stable.so"):  # asked for once by each torchvision
        torch_ops.load_library(folder / name)
    return torch_ops.torchvision


def test_only_torchvisions_library_is_stood_in_for(tmp_path):
    with pytest.raises(OSError, match="Could not load this library"):
        torch_ops.load_library(tmp_path / "_C.so")
    assert repr(torch_ops.aten) == "<namespace 'taeda.ops.aten'>"


def slow_nms(boxes, scores, threshold):
    def area(b):
        return (b[2] - b[0]) * (b[3] - b[1])

    order = sorted(range(len(boxes)), key=lambda i: -scores[i])
    kept = []
    for i in order:
        for j in kept:
            a, b = boxes[i], boxes[j]
            shared = max(0, min(a[2], b[2]) - max(a[0], b[0]))
            shared *= max(0, min(a[3], b[3]) - max(a[1], b[1]))
            if shared / (area(a) + area(b) - shared) > threshold:
                break
        else:
            kept.append(i)
    return kept


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_nms(ops, threshold):
    corner = taeda.rand(80, 2, dtype=taeda.float64) * 50
    boxes = taeda.cat([corner, corner + taeda.rand(80, 2, dtype=taeda.float64) * 40], 1)
    scores = taeda.randint(0, 30, (80,)).double()
    expected = slow_nms(boxes.tolist(), scores.tolist(), threshold)
    assert ops.nms(boxes, scores, threshold).tolist() == expected


def test_nms_does_not_round_the_threshold(ops):
    boxes = taeda.tensor([[0.0, 0, 10, 1], [0.0, 0, 3, 1]])  # they share three tenths
    scores = taeda.tensor([2.0, 1.0])
    assert taeda.tensor(0.3).item() > 0.3
    assert ops.nms(boxes, scores, 0.3).tolist() == [0]


def test_nms_of_nothing_and_of_wrong_shapes(ops):
    assert ops.nms(taeda.zeros(0, 4), taeda.zeros(0), 0.5).shape == (0,)
    for boxes, scores, text in (
        (taeda.zeros(4), taeda.zeros(4), "2d tensor, got 1D"),
        (taeda.zeros(4, 3), taeda.zeros(4), "4 elements in dimension 1, got 3"),
        (taeda.zeros(4, 4), taeda.zeros(4, 1), "1d tensor, got 2D"),
        (taeda.zeros(4, 4), taeda.zeros(3), "got 4 and 3"),
        (taeda.zeros(4, 4).double(), taeda.zeros(4), "the same type"),
    ):
        with pytest.raises(RuntimeError, match=text):
            ops.nms(boxes, scores, 0.5)


def interpolate(plane, y, x):
    """A plane (a list of lists) at a place, as roi_align reads it."""
    height, width = len(plane), len(plane[0])
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    dy, dx = y - top, x - left
    above = plane[top][left] * (1 - dx) + plane[top][right] * dx
    below = plane[bottom][left] * (1 - dx) + plane[bottom][right] * dx
    return above * (1 - dy) + below * dy


def slow_bin(plane, box, bins, place, ratio):
    (x1, y1, x2, y2), (i, j) = box, place
    size_y, size_x = (y2 - y1) / bins[0], (x2 - x1) / bins[1]
    grid_y = ratio if ratio > 0 else math.ceil(size_y)
    grid_x = ratio if ratio > 0 else math.ceil(size_x)
    total = 0.0
    for a in range(grid_y):
        for b in range(grid_x):
            y = y1 + (i + (a + 0.5) / grid_y) * size_y
            x = x1 + (j + (b + 0.5) / grid_x) * size_x
            total += interpolate(plane, y, x)
    return total / max(grid_y * grid_x, 1)


def regions(scale=1.0):
    """Boxes within, across the border of, beyond and smaller than a pixel of a 7x9 map."""
    boxes = [[1, 1, 6, 5], [-3, -2, 4, 4], [5, 3, 14, 11], [2.2, 3.1, 2.9, 3.3], [0, 0, 9, 7]]
    rows = [[k % 2, *(v / scale for v in box)] for k, box in enumerate(boxes)]
    return taeda.tensor(rows, dtype=taeda.float64)


@pytest.mark.parametrize("ratio", [-1, 1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(ops, ratio, aligned):
    x, rois, scale = taeda.randn(2, 3, 7, 9, dtype=taeda.float64), regions(0.5), 0.5
    out = ops.roi_align(x, rois, scale, 3, 2, ratio, aligned)
    assert out.shape == (5, 3, 3, 2)
    for k, (image, *box) in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (v * scale - (0.5 if aligned else 0.0) for v in box)
        if not aligned:
            x2, y2 = max(x2, x1 + 1), max(y2, y1 + 1)
        for c in range(3):
            plane = x[int(image), c].tolist()
            for i in range(3):
                for j in range(2):
                    expected = slow_bin(plane, (x1, y1, x2, y2), (3, 2), (i, j), ratio)
                    assert out[k, c, i, j].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ratio", [-1, 2])
def test_ps_roi_align_reads_channels_of_its_own_for_each_bin(ops, ratio):
    x, rois = taeda.randn(2, 12, 7, 9, dtype=taeda.float64), regions()
    out, mapping = ops.ps_roi_align(x, rois, 1.0, 3, 2, ratio)
    everything = ops.roi_align(x, rois, 1.0, 3, 2, ratio, True)
    assert out.shape == mapping.shape == (5, 2, 3, 2)
    for i in range(3):
        for j in range(2):
            channels = [i * 2 + j, 6 + i * 2 + j]
            assert mapping[0, :, i, j].tolist() == channels
            taeda.testing.assert_close(out[:, :, i, j], everything[:, channels, i, j])


def test_roi_pool(ops):
    x = taeda.randint(0, 5, (2, 3, 7, 9)).double()  # with ties, of which the first counts
    rois = taeda.tensor([[0.0, 1, 1, 6, 5], [1.0, -3, -2, 4, 4], [1.0, 20, 20, 25, 25]]).double()
    out, argmax = ops.roi_pool(x, rois, 1.0, 2, 2)
    # The first box is 6 wide and 5 high: bins are 3 wide and 3 high, sharing a row.
    for i, rows in enumerate((slice(1, 4), slice(3, 6))):
        for j, columns in enumerate((slice(1, 4), slice(4, 7))):
            part = x[0, :, rows, columns]
            assert out[0, :, i, j].tolist() == part.amax((1, 2)).tolist()
            at = part.flatten(1).argmax(1)
            pixel = (at // 3 + rows.start) * 9 + at % 3 + columns.start
            assert argmax[0, :, i, j].tolist() == pixel.tolist()
    assert out[2].eq(0).all() and argmax[2].eq(-1).all()  # beyond the map


def test_ps_roi_pool(ops):
    x = taeda.randn(1, 8, 7, 9, dtype=taeda.float64)
    out, mapping = ops.ps_roi_pool(x, taeda.tensor([[0.0, 1, 1, 5, 5]]).double(), 1.0, 2, 2)
    assert mapping.flatten().tolist() == list(range(8))
    assert out[0, 1, 0, 1].item() == pytest.approx(x[0, 5, 1:3, 3:5].mean().item())


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_align", "ps_roi_pool"])
def test_backward_operations_are_the_derivatives(ops, name):
    x = taeda.randn(2, 12, 7, 9, dtype=taeda.float64, requires_grad=True)
    rois = regions()[:1]  # within the map, where ps_roi_pool's derivative is exact
    extra = {"roi_align": (2, True), "ps_roi_align": (2,), "ps_roi_pool": ()}[name]
    out = getattr(ops, name)(x, rois, 1.0, 3, 2, *extra)
    out = out[0] if isinstance(out, tuple) else out
    grad = taeda.randn_like(out)
    (expected,) = taeda.autograd.grad(out, x, grad)
    mapping = () if name == "roi_align" else (taeda.zeros(out.shape, dtype=taeda.int32),)
    after = (*x.shape, *extra) if name == "roi_align" else (*extra, *x.shape)
    got = getattr(ops, f"_{name}_backward")(grad, rois, *mapping, 1.0, 3, 2, *after)
    taeda.testing.assert_close(got, expected)


def test_backward_of_roi_pool(ops):
    x = taeda.randn(2, 3, 7, 9, dtype=taeda.float64, requires_grad=True)
    rois = regions()
    out, argmax = ops.roi_pool(x, rois, 1.0, 2, 2)
    grad = taeda.randn_like(out)
    (expected,) = taeda.autograd.grad(out, x, grad)
    got = ops._roi_pool_backward(grad, rois, argmax, 1.0, 2, 2, *x.shape)
    taeda.testing.assert_close(got, expected)


def deform(ops, x, weight, offset, mask, bias, **given):
    options = dict(stride=(1, 1), pad=(0, 0), dilation=(1, 1), groups=1, offset_groups=1, use=True)
    options.update(given)
    flat = (*options["stride"], *options["pad"], *options["dilation"])
    tail = (options["groups"], options["offset_groups"], options["use"])
    return ops.deform_conv2d(x, weight, offset, mask, bias, *flat, *tail)


def test_deform_conv2d_without_offsets_is_conv2d(ops):
    x, weight = taeda.randn(2, 6, 8, 9), taeda.randn(4, 3, 3, 2)
    bias, none = taeda.randn(4), taeda.zeros(2, 1)
    settings = dict(stride=(2, 1), padding=(1, 2), dilation=(1, 3))
    expected = taeda.nn.functional.conv2d(x, weight, bias, groups=2, **settings)
    offset = taeda.zeros(2, 2 * 3 * 6, *expected.shape[2:])
    options = dict(stride=(2, 1), pad=(1, 2), dilation=(1, 3), groups=2, offset_groups=3, use=False)
    out = deform(ops, x, weight, offset, none, bias, **options)
    taeda.testing.assert_close(out, expected)


def test_deform_conv2d_reads_where_the_offsets_say(ops):
    x = taeda.randn(1, 1, 6, 7, dtype=taeda.float64)
    weight, bias = taeda.ones(1, 1, 1, 1).double(), taeda.zeros(1).double()
    offset = taeda.randn(1, 2, 6, 7, dtype=taeda.float64) * 2
    mask = taeda.rand(1, 1, 6, 7, dtype=taeda.float64)
    out = deform(ops, x, weight, offset, mask, bias)
    padded = taeda.nn.functional.pad(x, (9, 9, 9, 9))[0, 0].tolist()
    for i in range(6):
        for j in range(7):
            dy, dx = offset[0, :, i, j].tolist()
            expected = interpolate(padded, i + dy + 9, j + dx + 9) * mask[0, 0, i, j].item()
            assert out[0, 0, i, j].item() == pytest.approx(expected, abs=1e-12)


def test_deform_conv2d_backward(ops):
    given = [
        taeda.randn(shape, dtype=taeda.float64, requires_grad=True)
        for shape in ((2, 4, 5, 6), (6, 2, 2, 2), (2, 16, 4, 5), (2, 8, 4, 5), (6,))
    ]
    options = (1, 1, 0, 0, 1, 1, 2, 2)
    out = ops.deform_conv2d(*given, *options, True)
    grad = taeda.randn_like(out)
    expected = taeda.autograd.grad(out, given, grad)
    got = ops._deform_conv2d_backward(grad, *given, *options, True)
    for mine, theirs in zip(got, expected, strict=True):
        taeda.testing.assert_close(mine, theirs)
    assert taeda.autograd.gradcheck(lambda *t: ops.deform_conv2d(*t, *options, True), given)
    unused = ops._deform_conv2d_backward(grad, *given, *options, False)
    assert unused[3].eq(0).all()


def test_wrong_regions_and_offsets_are_refused(ops):
    x = taeda.zeros(1, 4, 5, 5)
    for rois, text in (
        (taeda.zeros(2, 4), "rois must have shape"),
        (taeda.zeros(2, 5).double(), "dtype|type"),
    ):
        with pytest.raises(RuntimeError, match=text):
            ops.roi_align(x, rois, 1.0, 2, 2, 1, False)
    with pytest.raises(RuntimeError, match="multiple of pooling"):
        ops.ps_roi_pool(x, taeda.zeros(1, 5), 1.0, 3, 1)
    with pytest.raises(RuntimeError, match=r"offset.shape\[1\] is not valid: got: 2 expected: 8"):
        deform(
            ops,
            x,
            taeda.zeros(1, 4, 2, 2),
            taeda.zeros(1, 2, 4, 4),
            taeda.zeros(1, 1),
            taeda.zeros(1),
            use=False,
        )


def test_no_regions_give_empty_results(ops):
    x, none = taeda.zeros(1, 4, 5, 5, requires_grad=True), taeda.zeros(0, 5)
    out = ops.roi_align(x, none, 1.0, 2, 2, 1, False)
    assert out.shape == (0, 4, 2, 2)
    out.sum().backward()
    assert x.grad.eq(0).all()
    assert ops.roi_pool(x, none, 1.0, 2, 2)[0].shape == (0, 4, 2, 2)
    assert ops.ps_roi_align(x, none, 1.0, 2, 2, 1)[0].shape == (0, 1, 2, 2)
    assert ops.ps_roi_pool(x, none, 1.0, 2, 2)[0].shape == (0, 1, 2, 2)


def test_operations_on_quantized_tensors_say_that_they_have_no_implementation(ops):
    with pytest.raises(NotImplementedError, match="no implementation"):
        ops.qnms(taeda.zeros(1, 4), taeda.zeros(1), 0.5)
