"""The dtypes that are kept and converted: unsigned integers of 16 to 64 bits, floats of 8 bits."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

import taeda

UNSIGNED = ["uint16", "uint32", "uint64"]
FLOAT8 = ["float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu"]
STORED = UNSIGNED + FLOAT8
OTHERS = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def of(name):
    return getattr(taeda, name)


# ---- conversions --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNSIGNED)
@pytest.mark.parametrize(
    "other", ["int8", "uint8", "int16", "int32", "int64", "float32", "float64"]
)
def test_unsigned_integers_convert_as_numpys_do(name, other):
    values = np.array([0, 1, 2, 100, 127]).astype(other)
    there = taeda.from_numpy(values).to(of(name))
    assert there.dtype == of(name) and there.numpy().dtype == np.dtype(name)
    assert np.array_equal(there.numpy(), values.astype(name))
    assert np.array_equal(there.to(of(other)).numpy(), values)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers_wrap_around(name):
    bits = 8 * of(name).itemsize
    x = taeda.tensor([-1, -2, 2**40]).to(of(name))
    assert x.tolist() == [2**bits - 1, 2**bits - 2, 2**40 % 2**bits]
    largest = taeda.tensor([2**bits - 1], dtype=of(name))
    assert largest.tolist() == [2**bits - 1]
    assert largest.double().item() == float(2**bits - 1)
    assert taeda.tensor([2.0**33]).to(taeda.uint64).tolist() == [2**33]
    assert taeda.tensor([2.0**63, 3e19, float("nan")]).to(taeda.uint64).tolist() == [2**63, 0, 0]


def test_float8_values():
    numbers = taeda.tensor([0.0, -0.0, 1.0, -1.5, 3.3, 448.0, 500.0, 1e6, -1e6, 2.0**-9])
    want = {
        "float8_e4m3fn": [0, -0.0, 1, -1.5, 3.25, 448, 448, 448, -448, 2**-9],
        "float8_e5m2": [0, -0.0, 1, -1.5, 3.5, 448, 512, np.inf, -np.inf, 2**-9],
        "float8_e4m3fnuz": [0, 0, 1, -1.5, 3.25] + 4 * [np.nan] + [2**-9],
        "float8_e5m2fnuz": [0, 0, 1, -1.5, 3.5, 448, 512, np.nan, np.nan, 2**-9],
    }
    for name, values in want.items():
        got = numbers.to(of(name)).float().numpy()
        assert np.array_equal(got, np.array(values, np.float32), equal_nan=True), name
    powers = taeda.tensor([1.0, 1.4, 1.5, -3.0, 0.0, float("inf")]).to(taeda.float8_e8m0fnu).float()
    assert powers.tolist()[:5] == [1, 1, 2, 4, 2.0**-127] and powers[5].isnan()


@pytest.mark.parametrize("name", FLOAT8)
def test_every_code_survives(name):
    codes = taeda.arange(256).to(taeda.uint8)
    for wide in ("float32", "float64", "float16" if "e8m0" not in name else "bfloat16"):
        values = codes.view(of(name)).to(of(wide))
        back = values.to(of(name)).view(taeda.uint8)
        numbers = ~values.isnan()
        assert taeda.equal(back[numbers], codes[numbers])
        assert back.view(of(name))[~numbers].isnan().all()


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_conversions_agree_with_pytorch(name):
    torch = pytest.importorskip("torch")
    top = np.arange(65536, dtype=np.uint32) << 16
    bits = np.concatenate([top, top + 1, top + 0x7FFF, top + 0x8000, top + 0xFFFF])
    values = bits.view(np.float32)
    ours = taeda.from_numpy(values).to(of(name)).view(taeda.uint8).numpy()
    theirs = torch.from_numpy(values).to(getattr(torch, name)).view(torch.uint8).numpy()
    assert np.array_equal(ours, theirs)
    codes = np.arange(256, dtype=np.uint8)
    ours = taeda.from_numpy(codes).view(of(name)).float().numpy()
    theirs = torch.from_numpy(codes).view(getattr(torch, name)).float().numpy()
    assert np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("name", STORED)
def test_layouts(name):
    x = taeda.arange(24).reshape(2, 3, 4) % 7 + 1
    y = x.to(of(name))
    assert taeda.equal(y.transpose(0, 2).contiguous().float(), y.float().transpose(0, 2))
    assert taeda.equal(x.transpose(0, 2).to(of(name)).float(), y.float().transpose(0, 2))
    assert taeda.equal(y[:, ::2, 1::2].float(), y.float()[:, ::2, 1::2])
    assert taeda.equal(y[:1].expand(5, 3, 4).clone().float(), y[:1].float().expand(5, 3, 4))
    assert taeda.zeros(0, 3, dtype=of(name)).float().shape == (0, 3)
    long = (taeda.arange(5000) % 8 + 1).to(of(name))
    assert taeda.equal(long.float()[::3], long[::3].float())
    for first, second in itertools.pairwise(STORED):  # from one to the next
        a = taeda.tensor([1, 2, 4]).to(of(first))
        assert a.to(of(second)).tolist() == [1, 2, 4]


# ---- what works on them -------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORED)
def test_moves_and_reads(name):
    x = taeda.tensor([1, 2, 4, 8]).to(of(name))
    assert x[2].item() == 4 and x.tolist() == [1, 2, 4, 8] and int(x[1]) == 2
    assert taeda.cat([x, x]).tolist() == [1, 2, 4, 8, 1, 2, 4, 8]
    assert taeda.stack([x, x]).shape == (2, 4)
    assert x[taeda.tensor([3, 0])].tolist() == [8, 1]
    assert x[taeda.tensor([True, False, True, False])].tolist() == [1, 4]
    assert x.flip(0).tolist() == [8, 4, 2, 1] and x.repeat(2).shape == (8,)
    assert taeda.where(x == 2, x, taeda.zeros_like(x) + 1).tolist() == [1, 2, 1, 1]
    y = x.clone()
    y[0] = 2
    y[2:] = x[:2]
    assert y.tolist() == [2, 2, 1, 2]
    assert (x == x).all() and (x != 2).tolist() == [True, False, True, True]
    assert taeda.equal(x, x.clone()) and not taeda.equal(x, y)
    assert (x * x).tolist() == [1, 4, 16, 64] and (x * x).dtype == of(name)
    assert bool(x.any()) and bool(x.all())
    taeda.testing.assert_close(x, x.clone())
    assert f"dtype=taeda.{name}" in repr(x)
    assert taeda.full((2,), 2, dtype=of(name)).tolist() == [2, 2]
    assert taeda.empty(3, dtype=of(name), device="meta").dtype == of(name)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_arithmetic(name):
    largest = 2 ** (8 * of(name).itemsize) - 1
    x = taeda.tensor([largest, 1], dtype=of(name))
    assert (x + 2).tolist() == [1, 3] and (x - 2).tolist() == [largest - 2, largest]
    assert (x & 3).tolist() == [3, 1] and (~x).tolist() == [0, largest - 1]
    assert (x == largest).tolist() == [True, False]
    assert x[1:].sum().item() == 1 and x[1:].sum().dtype == taeda.int64
    assert (x + 0.5).dtype == taeda.float32 and x[1:].sqrt().tolist() == [1.0]
    if name == "uint64":  # nothing wider to compute in
        for refused in (lambda: x // 2, lambda: x < 2, lambda: taeda.maximum(x, x)):
            with pytest.raises(NotImplementedError, match="UInt64"):
                refused()
    else:
        assert (x > 1).tolist() == [True, False] and (x // 2).tolist() == [largest // 2, 0]


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_arithmetic_is_rounded_once(name):
    x = taeda.tensor([1.0, 2.0, 4.0]).to(of(name))
    assert (
        taeda.equal((x + x * 0.25).float(), (x.float() * 1.25).to(of(name)).float()) or "e8" in name
    )
    assert (x < 3).tolist() == [True, True, False]
    for refused in (lambda: x.sum(), lambda: x.sort(), lambda: taeda.rand(2, dtype=of(name))):
        with pytest.raises(NotImplementedError, match="Float8"):
            refused()


@pytest.mark.parametrize("name", STORED)
def test_promotion(name):
    for other in OTHERS:
        if name in UNSIGNED and of(other).is_floating_point:
            assert taeda.promote_types(of(name), of(other)) == of(other)
            assert taeda.promote_types(of(other), of(name)) == of(other)
            continue
        for pair in ((of(name), of(other)), (of(other), of(name))):
            with pytest.raises(RuntimeError, match="Promotion for .* not supported"):
                taeda.promote_types(*pair)
    assert taeda.promote_types(of(name), of(name)) == of(name)
    with pytest.raises(TypeError):
        taeda.set_default_dtype(of(name))


@pytest.mark.parametrize("name", FLOAT8)
def test_gradients_pass_through_a_conversion(name):
    x = taeda.tensor([1.0, 2.0], requires_grad=True)
    x.to(of(name)).float().mul(2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_uint64_of_2_to_the_63_and_more_as_numbers():
    big, most, u = 2**63, 2**64 - 1, taeda.uint64
    x = taeda.tensor([1, big, most], dtype=u)
    for t in (x[2], taeda.tensor(most, dtype=u), x[2:].reshape(1, 1)):
        assert t.item() == int(t) == t.__index__() == most
        assert float(t) == float(most) and bool(t)
    assert f"{x[2]} {x[1]:d}" == f"{most} {big}"
    assert repr(x[2].cpu()) == f"tensor({most}, dtype=taeda.uint64)"
    assert hex(x[1]) == hex(big) and range(most)[x[1]] == big
    assert np.array_equal(x.cpu().numpy(), np.array([1, big, most], np.uint64))
    assert (x == most).tolist() == [False, False, True] == (most == x).tolist()
    assert x.ne(other=big).tolist() == [True, False, True]
    assert big in x and big + 1 not in x
    for made in (
        taeda.full((2,), most, dtype=u), taeda.full((2,), fill_value=most, dtype=u),
        taeda.full_like(x[:2], most), x.new_full((2,), most), taeda.zeros(2, dtype=u).fill_(most),
        taeda.scalar_tensor(most, dtype=u).expand(2), taeda.ones(2, dtype=u) * most,
        taeda.empty(2, dtype=u).fill_(value=most),
    ):  # fmt: skip
        assert made.tolist() == [most, most] and made.dtype == u
    assert (x[:2] & big).tolist() == [0, big] and (most - x).tolist() == [most - 1, big - 1, 0]


def test_such_numbers_beside_other_dtypes():
    big = 2**63
    floats = taeda.ones(1, dtype=taeda.float64)
    assert (floats * big).tolist() == [float(big)] and (floats * (big + 2**12)).item() > big
    assert taeda.full((1,), 2**64 - 1, dtype=taeda.float32).item() == 2.0**64
    assert (taeda.ones(1) + big).dtype == taeda.float32
    for call in (
        lambda: taeda.full((1,), big), lambda: taeda.zeros(1, dtype=taeda.int64).fill_(big),
        lambda: taeda.arange(3) + big, lambda: taeda.full((1,), big, dtype=taeda.int32),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="int64_t without overflow"):
            call()
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError):
            taeda.zeros(1, dtype=taeda.uint64).fill_(value)


def test_values_that_do_not_fit():
    for value in (-70000, 70000, 1e9):
        with pytest.raises(RuntimeError, match="overflow"):
            taeda.full((1,), value, dtype=taeda.uint16)
    with pytest.raises(RuntimeError, match="overflow"):
        taeda.tensor([70000], dtype=taeda.uint16)
    for value in (-1, 2**64):
        with pytest.raises(OverflowError):
            taeda.tensor([value], dtype=taeda.uint64)
    assert taeda.tensor([1e9], dtype=taeda.float8_e4m3fn).tolist() == [448.0]


def test_what_only_works_on_other_floats_says_so():
    x = taeda.ones(64, 3).to(taeda.float8_e5m2)
    for call in (x.softmax, x.log_softmax, x.cumsum):
        with pytest.raises(NotImplementedError, match="'Float8_e5m2'"):
            call(0)


# ---- limits, files, other libraries -------------------------------------------------------------


@pytest.mark.parametrize("name", STORED)
def test_limits_agree_with_pytorch(name):
    torch = pytest.importorskip("torch")
    kind = "finfo" if name in FLOAT8 else "iinfo"
    ours, theirs = getattr(taeda, kind)(of(name)), getattr(torch, kind)(getattr(torch, name))
    fields = ["bits", "max", "min", "dtype"]
    for field in fields + (["eps", "tiny", "resolution"] if kind == "finfo" else []):
        assert getattr(ours, field) == getattr(theirs, field), field
    traits = [getattr(lib, name) for lib in (taeda, torch)]
    for field in ("is_floating_point", "is_signed", "is_complex", "itemsize"):
        assert getattr(traits[0], field) == getattr(traits[1], field), field


@pytest.mark.parametrize("name", STORED)
def test_files(name, tmp_path):
    x = taeda.tensor([[1, 2], [4, 8]]).to(of(name))
    taeda.save({"x": x}, tmp_path / "x.pt")
    loaded = taeda.load(tmp_path / "x.pt")["x"]
    assert loaded.dtype == of(name) and taeda.equal(loaded, x)
    if "fnuz" not in name and "e8m0" not in name:
        taeda.save({"x": x}, tmp_path / "x.safetensors")
        assert taeda.equal(taeda.load(tmp_path / "x.safetensors")["x"], x)


@pytest.mark.parametrize("name", STORED)
def test_files_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    x = taeda.tensor([[1, 2], [4, 8]]).to(of(name))
    file = io.BytesIO()
    taeda.save({"x": x}, file)
    file.seek(0)
    theirs = torch.load(file)["x"]
    assert theirs.dtype == getattr(torch, name) and theirs.float().tolist() == x.float().tolist()
    file = io.BytesIO()
    torch.save({"x": theirs}, file)
    file.seek(0)
    assert taeda.equal(taeda.load(file)["x"], x)


def test_arrays():
    for name in UNSIGNED:
        array = np.array([[1, 2], [3, np.iinfo(name).max]], name)
        x = taeda.from_numpy(array)
        assert x.dtype == of(name) and x.data_ptr() == array.ctypes.data
        assert np.array_equal(x.numpy(), array) and np.array_equal(np.from_dlpack(x), array)
        assert taeda.tensor(array).dtype == taeda.from_dlpack(array).dtype == of(name)
    with pytest.raises(TypeError, match="float8_e5m2"):
        taeda.zeros(1).to(taeda.float8_e5m2).numpy()
    for name in FLOAT8:
        x = taeda.ones(2).to(of(name))
        assert taeda.equal(taeda.from_dlpack(x), x)
