"""nn.attention beside PyTorch's; flex_attention and its masks."""

import importlib
import math

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F
from taeda.nn.attention import SDPBackend, bias, flex_attention, sdpa_kernel
from taeda.nn.attention.flex_attention import create_block_mask, create_mask


@pytest.fixture
def theirs(torch):
    assert torch
    return importlib.import_module("torch.nn.attention.flex_attention")


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q - kv).abs() < 70


def by_head(b, h, q, kv):
    return (q + kv) % (h + b + 2) == 0


MASKS = [causal, window, by_head]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("size", [128, (64, 32)])
def test_block_masks(theirs, same, mask, size):
    ours = create_block_mask(mask, 2, 3, 200, 270, BLOCK_SIZE=size)
    other = theirs.create_block_mask(mask, 2, 3, 200, 270, device="cpu", BLOCK_SIZE=size)
    same(create_mask(mask, 2, 3, 200, 270), theirs.create_mask(mask, 2, 3, 200, 270, "cpu"))
    for name in ("kv_num_blocks", "full_kv_num_blocks"):
        same(getattr(ours, name), getattr(other, name))
    same(ours.to_dense(), other.to_dense())
    assert ours.shape == other.shape and ours.BLOCK_SIZE == other.BLOCK_SIZE
    assert ours.sparsity() == pytest.approx(other.sparsity())
    assert ours[1, 2].shape == other[1, 2].shape and ours.numel() == other.numel()
    assert repr(ours).startswith("BlockMask(shape=(2, 3, 200, 270), sparsity=")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mask", [None, *MASKS])
@pytest.mark.parametrize("score", [None, lambda s, b, h, q, kv: s + 0.1 * (q - kv) * (h + 1)])
def test_flex_attention(theirs, same, to_torch, compare, mask, score):
    q = taeda.randn(2, 4, 20, 8, requires_grad=True)
    k, v = (taeda.randn(2, 2, 30, 8, requires_grad=True) for _ in range(2))

    def run(module, *inputs):
        made = mask and module.create_block_mask(mask, 2, 4, 20, 30, device="cpu", BLOCK_SIZE=16)
        return module.flex_attention(
            *inputs, score_mod=score, block_mask=made, enable_gqa=True, return_lse=True
        )

    same(
        run(flex_attention, q, k, v),
        run(theirs, *to_torch((q.detach(), k.detach(), v.detach()))),
        1e-4,
        1e-5,
    )
    actual = run(flex_attention, q, k, v)[0]
    actual.square().sum().backward()
    full = mask and create_mask(mask, 2, 4, 20, 30)
    k2, v2 = (x.repeat_interleave(2, 1) for x in (k, v))
    scores = q @ k2.transpose(-2, -1) / math.sqrt(8)
    if score:
        scores = score(scores, *flex_attention._indices((2, 4, 20, 30), None))
    if mask:
        scores = scores.masked_fill(~full, -1e30)
    expected = scores.softmax(-1) @ v2
    grads = taeda.autograd.grad(expected.square().sum(), (q, k, v))
    for a, e in zip((q, k, v), grads, strict=True):
        assert taeda.allclose(a.grad, e, atol=1e-4)


def test_rows_that_see_nothing():
    q = taeda.randn(1, 1, 3, 2)
    made = create_block_mask(lambda b, h, q, kv: q > 1, None, None, 3, 3)
    output, lse = flex_attention.flex_attention(q, q, q, block_mask=made, return_lse=True)
    assert output[0, 0, 0].tolist() == [0.0, 0.0] and float(lse[0, 0, 0]) == -math.inf
    x = q.clone().requires_grad_()
    flex_attention.flex_attention(x, x, x, block_mask=made).sum().backward()
    assert bool(x.grad.isfinite().all())
    request = flex_attention.AuxRequest(lse=True, max_scores=True)
    aux = flex_attention.flex_attention(q, q, q, return_aux=request)[1]
    assert aux.max_scores.shape == (1, 1, 3) and bool((aux.lse >= aux.max_scores).all())


def test_masks_are_combined():
    both = flex_attention.and_masks(causal, lambda b, h, q, kv: kv > 0)
    either = flex_attention.or_masks(causal, lambda b, h, q, kv: kv > 0)
    assert create_mask(both, 1, 1, 2, 2).tolist() == [[[[False, False], [False, True]]]]
    assert create_mask(either, 1, 1, 2, 2).all()
    assert create_mask(flex_attention.and_masks(), 1, 1, 2, 2).all()
    assert create_mask(flex_attention.noop_mask, 1, 1, 2, 2).all()
    with pytest.raises(RuntimeError, match="callable"):
        flex_attention.and_masks(3)


def test_flex_attention_refuses():
    q = taeda.zeros(1, 2, 5, 4)
    run = flex_attention.flex_attention
    with pytest.raises(NotImplementedError, match="4D"):
        run(q[0], q, q)
    with pytest.raises(ValueError, match="enable_gqa=True"):
        run(taeda.zeros(1, 4, 5, 4), q, q)
    with pytest.raises(ValueError, match="block_mask was created for"):
        run(q, q, q, block_mask=create_block_mask(causal, None, None, 6, 5))
    with pytest.raises(ValueError, match="score_mod must return a tensor"):
        run(q, q, q, lambda *given: 1)
    with pytest.raises(ValueError, match="same dtype"):
        run(q, q.double(), q)
    with pytest.raises(TypeError, match="tensor of bools"):
        create_mask(lambda b, h, q, kv: q - kv, 1, 1, 2, 2)


def test_backends():
    q = taeda.ones(1, 1, 2, 4)
    with sdpa_kernel(SDPBackend.MATH), sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        F.scaled_dot_product_attention(q, q, q)
    for none in ([], SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(none), pytest.raises(RuntimeError, match="No viable backend"):
            F.scaled_dot_product_attention(q, q, q)
    with pytest.raises(AssertionError, match="SDPBackend"), sdpa_kernel(3):
        pass
    F.scaled_dot_product_attention(q, q, q)


def test_causal_bias():
    assert (
        bias.causal_lower_right(3, 5).tolist()
        == create_mask(lambda b, h, q, kv: q + 2 >= kv, 1, 1, 3, 5)[0, 0].tolist()
    )
    assert bias.causal_upper_left(3, 5).sum().item() == 6
    with pytest.raises(AssertionError, match="2D"):
        bias.causal_upper_left(3)


def test_scaled_dot_product_refuses():
    z = taeda.zeros(1, 1, 2, 3)
    for given, match in [
        ((z[0, 0, 0], z, z), "at least 2 dimensional"),
        ((z, z, z.double()), "same dtype"),
        ((z, z, z, taeda.zeros(2, 2, dtype=taeda.int32)), "attn_mask dtype"),
    ]:
        with pytest.raises(RuntimeError, match=match):
            F.scaled_dot_product_attention(*given)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_masked_rows_of_multihead_attention(torch, same, to_torch, need_weights, training):
    taeda.manual_seed(0)
    torch.manual_seed(0)
    ours = nn.MultiheadAttention(4, 2, batch_first=True).train(training)
    theirs = torch.nn.MultiheadAttention(4, 2, batch_first=True).train(training)
    x, mask = taeda.randn(2, 3, 4), taeda.tensor([[True] * 3, [False, True, False]])
    kwargs = {"need_weights": need_weights}
    actual = ours(x, x, x, key_padding_mask=mask, **kwargs)
    expected = theirs(*to_torch((x, x, x)), key_padding_mask=to_torch(mask), **kwargs)
    same(actual, expected)


def test_masks_of_given_blocks():
    made = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 2, 10, 12, BLOCK_SIZE=(4, 3))
    given = (
        made.kv_num_blocks, made.kv_indices, made.full_kv_num_blocks, made.full_kv_indices,
    )  # fmt: skip
    again = flex_attention.BlockMask.from_kv_blocks(
        *given, BLOCK_SIZE=(4, 3), mask_mod=made.mask_mod, seq_lengths=(10, 12)
    )
    assert (again.mask == made.mask).all() and again.shape == made.shape
    whole = flex_attention.BlockMask.from_kv_blocks(*given[:2], BLOCK_SIZE=(4, 3))
    assert whole.shape == (1, 2, 12, 12)
    for wrong in ((*given[:2], given[2]), (given[0][0, 0], given[1][0, 0])):
        with pytest.raises((AssertionError, RuntimeError), match="from_kv_blocks"):
            flex_attention.BlockMask.from_kv_blocks(*wrong)


@pytest.mark.parametrize(
    ("shapes", "mask"),
    [
        (((1, 2, 3), (1, 2, 4), (1, 2, 4)), None),
        (((1, 2, 3), (1, 5, 3), (1, 4, 3)), None),
        (((3, 2, 3), (2, 2, 3), (2, 2, 3)), None),
        (((1, 2, 3), (1, 2, 3), (1, 2, 3)), (5, 5)),
        (((1, 2, 3), (1, 2, 3), (1, 2, 3)), (1, 1, 1, 2, 2)),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, mask):
    given = [taeda.ones(shape) for shape in shapes]
    attend = taeda.nn.functional.scaled_dot_product_attention
    with pytest.raises(RuntimeError, match=r"^scaled_dot_product_attention: Expected a query"):
        attend(*given, attn_mask=None if mask is None else taeda.ones(mask))
