"""Numbers that overflow, lists of millions, tensors without memory: an error, never a crash."""

import subprocess
import sys

import pytest

import taeda
import taeda.nn.functional as F

BIG = 2**62
MOST = 2**63 - 1
LEAST = -(2**63)
X = taeda.ones(4, 4)
V = taeda.ones(3)
SIGNAL = taeda.ones(1, 1, 3)
IMAGE = taeda.ones(1, 1, 3, 3)

TOO_LARGE = {
    "empty": lambda: taeda.empty(BIG, 4),
    "empty of nothing": lambda: taeda.empty(0, BIG, 4),
    "meta": lambda: taeda.empty(BIG, 4, 0, device="meta"),
    "expand": lambda: taeda.ones(1).expand(BIG, 4),
    "view": lambda: X.view(BIG, BIG),
    "as_strided": lambda: X.as_strided((2, 2), (BIG, BIG)),
    "resize_": lambda: taeda.ones(3)[1:].resize_(MOST),
    "repeat": lambda: V.repeat(BIG),
    "repeat_interleave by a number": lambda: V.repeat_interleave(BIG),
    "repeat_interleave by counts": lambda: taeda.repeat_interleave(taeda.tensor([BIG] * 4)),
    "one_hot": lambda: F.one_hot(taeda.tensor([MOST])),
    "diag_embed": lambda: V.diag_embed(LEAST),
    "arange": lambda: taeda.arange(LEAST, MOST),
    "pad": lambda: F.pad(V, (MOST, 64)),
    "pad by least": lambda: F.pad(V, (LEAST, LEAST)),
    "pad replicate": lambda: F.pad(SIGNAL, (MOST, 1), "replicate"),
    "pad circular to nothing": lambda: F.pad(taeda.ones(1, 1, 4), (-4, 4), "circular"),
    "split_with_sizes": lambda: X.split_with_sizes([MOST, 5]),
    "unflatten": lambda: X.unflatten(0, (BIG, 4)),
    "max_pool1d": lambda: F.max_pool1d(SIGNAL, BIG, dilation=4),
    "max_pool2d": lambda: F.max_pool2d(IMAGE, 2, dilation=MOST),
    "avg_pool2d": lambda: F.avg_pool2d(IMAGE, MOST, padding=BIG),
    "conv1d padding": lambda: F.conv1d(SIGNAL, SIGNAL, padding=BIG),
    "conv1d padding and stride": lambda: F.conv1d(SIGNAL, SIGNAL, stride=MOST, padding=2**40),
    "conv1d dilation": lambda: F.conv1d(SIGNAL, SIGNAL, dilation=BIG),
    "conv_transpose1d stride": lambda: F.conv_transpose1d(SIGNAL, SIGNAL, stride=BIG),
    "conv_transpose1d padding": lambda: F.conv_transpose1d(SIGNAL, SIGNAL, padding=BIG),
    "group_norm": lambda: F.group_norm(taeda.empty(3, 0, 2), BIG),
    "chunk": lambda: taeda.ones(2, 0).chunk(2**40, 1),
    "tensor_split": lambda: X.tensor_split(2**31),
    "unbind": lambda: taeda.ones(1).expand(2**40).unbind(),
    "split": lambda: taeda.ones(1).expand(2**40).split(1),
    "combinations": lambda: taeda.combinations(V, 2**31, with_replacement=True),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_large_is_an_error(name):
    with pytest.raises((RuntimeError, MemoryError), match="."):
        TOO_LARGE[name]()


def test_numbers_that_lead_past_everything_are_fine():
    assert F.conv1d(SIGNAL, SIGNAL, stride=MOST, padding=1).tolist() == [[[2.0]]]
    assert X[::BIG].shape == (1, 4)
    assert X[::MOST].tolist() == X[:1].tolist()
    assert V.roll(LEAST).tolist() == V.tolist()
    x = taeda.arange(3.0).requires_grad_()
    x.roll(LEAST).dot(taeda.arange(3.0)).backward()
    assert x.grad.tolist() == taeda.arange(3.0).roll(-(LEAST % 3)).tolist()
    assert X.unfold(0, 2, BIG).shape == (1, 4, 2)
    assert X.tril(MOST).tolist() == X.tolist()
    assert X.diagonal(MOST).tolist() == []
    assert F.max_pool1d(SIGNAL, 1, stride=BIG, ceil_mode=True).tolist() == [[[1.0]]]
    assert F.conv1d(SIGNAL, taeda.ones(1, 1, 2), stride=BIG).tolist() == [[[2.0]]]
    assert len(taeda.ones(2, 0).chunk(5, 1)) == 5 and len(V.chunk(BIG)) == 3
    assert taeda.arange(LEAST, MOST, BIG).tolist() == [LEAST, -BIG, 0, BIG]
    assert F.conv_transpose1d(SIGNAL, taeda.ones(1, 1, 0), padding=0).shape == (1, 1, 2)


def test_windows_that_reach_past_everything():
    x = taeda.arange(3.0).double().view(1, 1, 3)
    for kernel in (5, 64, BIG, MOST):
        options = {"stride": kernel, "ceil_mode": True}
        mean = F.avg_pool1d(x, kernel, padding=1, **options)
        assert mean.tolist() == [[[3 / 5]]], kernel
        own = F.avg_pool1d(x, kernel, padding=1, count_include_pad=False, **options)
        assert own.tolist() == [[[1.0]]], kernel
        assert F.max_pool1d(x, kernel, padding=1, **options).tolist() == [[[2.0]]], kernel
    image = x.view(1, 1, 1, 3).requires_grad_()
    F.avg_pool2d(image, (1, MOST), stride=MOST, ceil_mode=True).sum().backward()
    assert image.grad.tolist() == [[[[1 / 3] * 3]]]


def test_a_kernel_without_elements_adds_nothing():
    window = [[1, 2], [1, 0], [1, 1], 2]
    x, empty, bias = taeda.ones(2, 4, 5, 5), taeda.ones(6, 2, 0, 3), taeda.arange(6.0)
    y = taeda._C.ops._conv(x, empty, bias, *window)
    assert y.shape[:2] == (2, 6) and (y == bias.view(6, 1, 1)).all()
    assert not taeda._C.ops._conv_input(y, empty, [5, 5], *window).any()
    assert taeda._C.ops._conv_weight(x, y, [0, 3], *window).shape == empty.shape


def test_integers_in_tensors_wrap_around():
    x = taeda.tensor([MOST, 1])
    assert x.sum().item() == LEAST and x.cumsum(0).tolist() == [MOST, LEAST]
    assert (x + 1).tolist() == [LEAST, 2] and (-taeda.tensor(LEAST)).item() == LEAST
    assert x.prod().item() == MOST and (x * 2).tolist() == [-2, 2]
    assert taeda.tensor(LEAST).abs().item() == LEAST
    assert taeda.ones(1, dtype=taeda.int64).index_add(0, taeda.tensor([0]), x[:1]).item() == LEAST
    for divide in (lambda a, b: a // b, lambda a, b: a % b, taeda.fmod, taeda.remainder):
        divide(taeda.tensor(LEAST), taeda.tensor(-1))


META = taeda.empty(3, 3, device="meta")
INDEX = taeda.empty(2, dtype=taeda.int64, device="meta")
MIXED = {
    "stack": lambda: taeda.stack([taeda.ones(3, 3), META]),
    "cat": lambda: taeda.cat([META, taeda.ones(3, 3)]),
    "add": lambda: taeda.ones(3, 3) + META,
    "mm": lambda: taeda.ones(3, 3) @ META,
    "index": lambda: taeda.ones(3)[INDEX],
    "index_add": lambda: taeda.ones(3).index_add(0, INDEX, taeda.ones(2)),
    "index_fill": lambda: taeda.ones(3).index_fill(0, INDEX, 1),
    "index_select": lambda: taeda.ones(3).index_select(0, INDEX),
    "gather": lambda: taeda.ones(3).gather(0, INDEX),
    "scatter": lambda: taeda.ones(3).scatter(0, INDEX, 1.0),
    "index_put": lambda: taeda.ones(3).index_put_((taeda.tensor([0, 1]),), META[0]),
    "embedding": lambda: F.embedding(INDEX, taeda.ones(3, 3)),
    "nll_loss": lambda: F.nll_loss(taeda.ones(2, 3), INDEX),
    "batch_norm": lambda: F.batch_norm(META, taeda.ones(3), taeda.ones(3)),
    "masked_scatter": lambda: taeda.ones(3, 3).masked_scatter(META > 0, taeda.ones(9)),
    "out": lambda: taeda.add(META, META, out=taeda.ones(3, 3)),
    "copy_": lambda: taeda.ones(3, 3).copy_(META),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_tensor_without_memory_is_not_read(name):
    with pytest.raises((RuntimeError, NotImplementedError), match="device|meta"):
        MIXED[name]()


def test_what_may_be_on_another_device():
    assert (META + taeda.tensor(1.0)).is_meta
    assert META[taeda.tensor([0, 1])].shape == (2, 3)
    assert taeda.ones(9).view_as(META).shape == (3, 3)
    assert META.copy_(taeda.ones(3, 3)).is_meta
    assert META.fill_(taeda.tensor(2.0)).is_meta
    assert taeda.bucketize(0.5, META[0]).is_meta
    assert taeda.isin(0, META).is_meta
    assert F.pad(META.view(1, 3, 3), (1, 1), "reflect").shape == (1, 3, 5)


def test_masked_scatter_does_not_write_past_self():
    mask = taeda.ones(4, 3, dtype=taeda.bool)
    with pytest.raises(RuntimeError, match="broadcast"):
        taeda.ones(3).masked_scatter_(mask, taeda.ones(12))
    assert taeda.ones(3).masked_scatter(mask, taeda.zeros(12)).shape == (4, 3)


def test_a_bool_may_hold_any_byte():
    """Memory from elsewhere: what is not 0 is true."""
    b = taeda.tensor([190, 2, 0], dtype=taeda.uint8).view(taeda.bool)
    assert b.tolist() == [True, True, False] and b[0].item() is True
    assert b.int().tolist() == [1, 1, 0] and b.float().tolist() == [1.0, 1.0, 0.0]
    assert b.sum().item() == 2 and (b + 1).tolist() == [2, 2, 1]
    assert (~b).view(taeda.uint8).tolist() == [0, 0, 1]
    assert (b & True).view(taeda.uint8).tolist() == [1, 1, 0]
    assert (b == taeda.tensor([True, True, False])).all()
    assert b.nonzero().tolist() == [[0], [1]] and taeda.arange(3)[b].tolist() == [0, 1]


def test_a_script_ends_well_with_a_graph_left_over():
    """The graph holds a parameter whose name is gone first, while the interpreter ends."""
    code = """if True:
        import taeda
        from taeda import nn
        a = nn.Parameter(taeda.ones(3))
        a.note = object()
        z_loss = (a * a).sum()
        model = nn.Linear(3, 1)
        z_out = model(taeda.ones(2, 3)).sum()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_a_result_of_integers_has_no_gradient():
    x = taeda.tensor([3.0, 0.3], requires_grad=True)
    mantissa, exponent = taeda.frexp(x * x)
    (first,) = taeda.autograd.grad(mantissa.sum(), x, create_graph=True)
    (second,) = taeda.autograd.grad(first.sum(), x)
    assert second.tolist() == [2.0 / 2**4, 2.0 / 2**-3]
    assert not exponent.requires_grad


@pytest.mark.parametrize("which", ["weight", "pos_weight"])
def test_weights_do_not_widen_a_loss(which):
    x = taeda.zeros(1, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="broadcast shape"):
        F.binary_cross_entropy_with_logits(x, x.detach(), **{which: taeda.ones(2, 3)})


def test_a_step_without_its_states():
    one, steps = [taeda.ones(2)], [taeda.ones(())]
    numbers = {"lr": 0.1, "lr_decay": 0.0, "weight_decay": 0.0, "eps": 1e-10, "maximize": False}
    with pytest.raises(ValueError, match="every list"):
        taeda._C.ops._fused_adagrad_(one, one, [], steps, **numbers)


def test_distances_of_batches_that_differ():
    with pytest.raises(RuntimeError, match="batches of rows that match"):
        taeda._C.ops._cdist(taeda.ones(()), taeda.ones(1, 1), 2.0, True)


def test_steps_past_every_size():
    for resize in (taeda._C.ops._resample, taeda._C.ops._resample_backward):
        with pytest.raises(ValueError, match="inf apart"):
            resize(SIGNAL, [3], [float("inf")], 4, True)
