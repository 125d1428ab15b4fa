"""Random numbers drawn on CUDA devices: PyTorch's for the same seed.

`random_numbers.json` has what PyTorch 2.11 drew on an H100 after `manual_seed(7)`: for each case some
elements of a first and a second tensor, and the offset of the generator's state after both.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cuda.shim import run

FILE = Path(__file__).parent / "random_numbers.json"
H100 = {"STUB_MULTIPROCESSORS": "132"}  # what numbers of large tensors depend on

# What is drawn for "NAME N DTYPE", "NAME N" and "NAME".
DRAW = """
import json, sys
import taeda as torch
F = torch.nn.functional
def empty(n, dtype=torch.float32): return torch.empty(n, device="cuda", dtype=dtype)
DRAWS = {
    "rand": lambda n, t: torch.rand(n, device="cuda", dtype=t),
    "randn": lambda n, t: torch.randn(n, device="cuda", dtype=t),
    "exponential": lambda n, t: empty(n, t).exponential_(),
    "bernoulli": lambda n, t: torch.bernoulli(torch.full((n,), 0.3, device="cuda", dtype=t)),
    "bernoulli_p": lambda n, t: empty(n, t).bernoulli_(0.3),
    "dropout": lambda n, t: F.dropout(torch.ones(n, device="cuda", dtype=t), 0.3),
    "cauchy": lambda n, t: empty(n, t).cauchy_(),
    "log_normal": lambda n, t: empty(n, t).log_normal_(),
    "geometric": lambda n, t: empty(n, t).geometric_(0.3),
    "randint10": lambda n, t: torch.randint(0, 10, (n,), device="cuda"),
    "randint_big": lambda n, t: torch.randint(0, 2**40, (n,), device="cuda"),
    "randint_i32": lambda n, t: torch.randint(-5, 100, (n,), device="cuda", dtype=torch.int32),
    "random_": lambda n, t: empty(n, torch.int64).random_(),
    "random_u8": lambda n, t: empty(n, torch.uint8).random_(),
    "random_f32": lambda n, t: empty(n).random_(),
    "randperm": lambda n, t: torch.randperm(n, device="cuda"),
    "bernoulli_bool": lambda n, t: empty(n, torch.bool).bernoulli_(0.3),
    "normal_ms": lambda n, t: torch.normal(2.0, 3.0, (n,), device="cuda"),
    "uniform_ab": lambda n, t: empty(n).uniform_(-2, 5),
    "poisson": lambda n, t: torch.poisson(torch.full((n,), 3.0, device="cuda")),
    "complex": lambda n, t: torch.randn(n, device="cuda", dtype=torch.complex64),
    "noncontig rand": lambda n, t: torch.empty(40, 50, device="cuda").t().uniform_(),
    "noncontig dropout": lambda n, t: F.dropout(torch.ones(40, 50, device="cuda").t(), 0.5),
    "dropout2d": lambda n, t: F.dropout2d(torch.ones(4, 50, 3, 3, device="cuda"), 0.5),
    "multinomial": lambda n, t: torch.multinomial(torch.arange(1., 101, device="cuda"), 50),
    "multinomial_r": lambda n, t: torch.multinomial(torch.arange(1., 101, device="cuda"), 500, replacement=True),
}
torch.set_fallback("cpu")
def draw(name):
    if name in DRAWS: return DRAWS[name](None, None)
    kind, n, *dtype = name.split()
    return DRAWS[kind](int(n), getattr(torch, dtype[0]) if dtype else None)
def values(t, at):
    picked = t.cpu().reshape(-1)[at]
    if picked.is_complex(): picked = torch.view_as_real(picked).reshape(-1)
    return (picked.double() if picked.is_floating_point() else picked.long()).tolist()
found = {}
for name, case in json.load(open(sys.argv[1])).items():
    torch.manual_seed(7)
    first, second = draw(name), draw(name)
    offset = int.from_bytes(bytes(torch.cuda.get_rng_state().tolist()[8:]), "little")
    found[name] = {"offset": offset, "at": case["at"], "first": values(first, case["at"])}
    if "second" in case: found[name]["second"] = values(second, case["at"])
print(json.dumps(found))
"""


# How far numbers may be off, which a GPU's fast units and its library compute otherwise than the host.
ROUNDED = {
    "exponential": 2e-6,
    "randn": 4e-6,
    "normal_ms": 8e-6,
    "complex": 4e-6,
    "log_normal": 1e-5,
    "cauchy": 5e-4,
}
# What is not even the last digit: the file has 9 and 5 digits of numbers that are not doubles.
EQUAL = {"float64": 1e-16, "float16": 2e-5, "bfloat16": 2e-5}


def tolerance(name: str) -> float:
    kind, dtype = name.split()[0], name.split()[-1]
    if kind not in ROUNDED:
        return EQUAL.get(dtype, 1e-8)
    return {"float64": 2e-13, "float16": 2e-3, "bfloat16": 1e-2}.get(dtype, ROUNDED[kind])


def test_same_as_pytorch(libraries):
    done = run(libraries, "-c", DRAW, FILE, **H100)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    wrong = []
    for name, case in json.loads(FILE.read_text()).items():
        assert found[name]["offset"] == case["offset"], name
        for which in ("first", "second"):
            want = case.get(which, [])
            off = tolerance(name)
            if want != pytest.approx(found[name].get(which, []), rel=off, abs=off):
                wrong.append((name, which, want, found[name][which]))
    assert wrong == []


def printed(libraries, code: str) -> list[str]:
    start = "import taeda as torch; cuda = torch.cuda; F = torch.nn.functional\n"
    done = run(libraries, "-c", start + code)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_each_device_has_a_generator(libraries):
    code = """
torch.manual_seed(3)
a, b = (torch.rand(3, device=f"cuda:{i}").tolist() for i in (0, 1))
print(a == b, torch.rand(3).tolist() != a, cuda.initial_seed())
print([g.device for g in cuda.default_generators], torch.default_generator.device)
cuda.manual_seed(4); print(cuda.default_generators[0].initial_seed(), cuda.default_generators[1].initial_seed())
cuda.manual_seed_all(5); print([g.initial_seed() for g in cuda.default_generators], torch.initial_seed())
with cuda.device(1): cuda.seed(); print(cuda.initial_seed() != 5)
print(torch.seed() == cuda.initial_seed() == torch.initial_seed())
"""
    assert printed(libraries, code) == [
        "True True 3",
        "[device(type='cuda', index=0), device(type='cuda', index=1)] cpu",
        "4 3",
        "[5, 5] 3",
        "True",
        "True",
    ]


def test_states(libraries):
    code = """
torch.manual_seed(3)
torch.rand(5, device="cuda")
state = cuda.get_rng_state()
print(state.tolist(), state.device)
first = torch.randn(4, device="cuda").tolist()
cuda.set_rng_state(state)
print(torch.randn(4, device="cuda").tolist() == first, [int(s[8]) for s in cuda.get_rng_state_all()])
cuda.set_rng_state_all([state, state])
print(torch.randn(4, device="cuda:1").tolist() == first)
with torch.random.fork_rng():
    torch.rand(9, device="cuda")
print(cuda.get_rng_state().equal(state))
with torch.random.fork_rng(devices=[1]):
    torch.rand(9, device="cuda"); torch.rand(9, device="cuda:1")
print([int(s[8]) for s in cuda.get_rng_state_all()])
for bad in (state[:8], torch.get_rng_state(), torch.tensor([1] * 16, dtype=torch.uint8)):
    try: cuda.set_rng_state(bad)
    except RuntimeError as e: print(e)
"""
    assert printed(libraries, code) == [
        "[3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0] cpu",
        "True [8, 0]",
        "True",
        "True",
        "[8, 8]",
        "Expected a generator state of size 16 but found the input RNG state size to be 8",
        "Expected a generator state of size 16 but found the input RNG state size to be 5056",
        "offset must be a multiple of 4, got 72340172838076673",
    ]


def test_generators(libraries):
    code = """
import pickle
g = torch.Generator("cuda").manual_seed(7)
torch.manual_seed(7)
same = lambda a, b: print(a.equal(b))
same(torch.rand(5, device="cuda"), torch.rand(5, device="cuda", generator=g))
same(torch.empty(5, device="cuda").normal_(), torch.empty(5, device="cuda").normal_(generator=g))
same(torch.randperm(9, device="cuda"), torch.randperm(9, device="cuda", generator=g))
twin, copied = g.clone_state(), pickle.loads(pickle.dumps(g))
print(g.device, twin.device, copied.device)
draws = [torch.rand(3, device="cuda", generator=s).tolist() for s in (g, twin, copied)]
print(draws[0] == draws[1] == draws[2])
for f in (lambda: torch.rand(2, device="cuda", generator=torch.Generator()),
          lambda: torch.rand(2, generator=g),
          lambda: torch.ones(2, device="cuda").exponential_(generator=torch.Generator()),
          lambda: torch.bernoulli(torch.ones(2), generator=g)):
    try: f()
    except RuntimeError as e: print(str(e).split("(): ")[-1])
binomial = lambda s: torch.binomial(torch.full((9,), 20., device="cuda"), torch.full((9,), .5, device="cuda"), generator=s)
before = g.get_state()
first = binomial(g)
print(first.device, g.get_state().equal(before))
second = binomial(g)
same(first, second)
same(first, binomial(g.set_state(before)))
cpu = torch.get_rng_state()
binomial(None)
print(torch.get_rng_state().equal(cpu))
"""
    assert printed(libraries, code) == [
        *["True"] * 3,
        "cuda:0 cuda:0 cuda:0",
        "True",
        *[
            "Expected a 'cuda' device type for generator but found 'cpu'",
            "Expected a 'cpu' device type for generator but found 'cuda'",
        ]
        * 2,
        "cuda:0 False",
        "False",
        "True",
        "True",
    ]


def test_checkpoints_drop_the_same_elements(libraries):
    code = """
from taeda.utils.checkpoint import checkpoint
x = torch.ones(3, 40, device="cuda", requires_grad=True)
for reentrant in (False, True):
    y = checkpoint(lambda x: F.dropout(x, 0.5), x, use_reentrant=reentrant)
    torch.rand(7, device="cuda")
    x.grad = None
    y.sum().backward()
    print(x.grad.equal(y.detach()), bool((y == 0).any()))
"""
    assert printed(libraries, code) == ["True True"] * 2


def test_dropout_and_its_gradient(libraries):
    code = """
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    def some(*sizes): return torch.randn(sizes, device="cuda", dtype=dtype)
    for x in (some(64, 33), some(7, 5), some(33, 8, 4).transpose(0, 2), some(9, 40)[:, ::2]):
        x.requires_grad_()
        y = F.dropout(x, 0.25)
        kept = y != 0
        assert y.dtype == dtype and 0.4 < kept.float().mean().item() < 1
        torch.testing.assert_close(y, torch.where(kept, x / 0.75, 0), rtol=1e-2, atol=1e-2)
        y.backward(torch.ones_like(y))
        torch.testing.assert_close(x.grad, kept.to(dtype) / 0.75, rtol=1e-2, atol=1e-2)
        assert F.dropout(x, 1.0).abs().sum() == 0
    print("ok")
"""
    assert printed(libraries, code) == ["ok"] * 4


def test_distributions_of_many_samples(libraries):
    """What has no recorded numbers."""
    code = """
torch.manual_seed(0)
for rate in (0., 5., 63., 64., 300.):
    x = torch.poisson(torch.full((20_000,), rate, device="cuda", dtype=torch.float64))
    print(abs(x.mean().item() - rate) <= 0.05 * rate ** 0.5, abs(x.var().item() - rate) <= 0.05 * rate)
weights = torch.tensor([[0., 3, 1, 0], [2, 0, 0, 0]], device="cuda")
drawn = torch.multinomial(weights, 4000, replacement=True).cpu()
share = (drawn[0] == 1).double().mean().item()
print(drawn[0].unique().tolist(), drawn[1].unique().tolist(), abs(share - 0.75) < 0.03)
many = torch.multinomial(torch.ones(3000, device="cuda"), 20_000, replacement=True)
print(abs(many.double().mean().item() - 1499.5) < 30, int(many.min()) < 5, int(many.max()) > 2994)
for n in (0, 1, 2, 3, 2049, 5000):
    p = torch.randperm(n, device="cuda")
    print(p.cpu().sort()[0].equal(torch.arange(n)), p.dtype)
print(torch.randperm(6, device="cuda", dtype=torch.int32).dtype)
x = torch.empty(2000, device="cuda", dtype=torch.int8).random_(); print(int(x.min()) < 5, int(x.max()) > 122)
for bad in (lambda: torch.bernoulli(torch.tensor([0.5, 1.5], device="cuda")),
            lambda: torch.poisson(torch.tensor([-1.], device="cuda")),
            lambda: torch.multinomial(torch.tensor([1., -1.], device="cuda"), 1),
            lambda: torch.multinomial(torch.zeros(3, device="cuda"), 1)):
    try: bad()
    except RuntimeError as e: print(str(e).split("(): ")[-1][:40])
"""
    assert printed(libraries, code) == [
        *["True True"] * 5,
        "[1, 2] [0] True",
        "True True True",
        *["True taeda.int64"] * 6,
        "taeda.int32",
        "True True",
        "Expected p_in >= 0 && p_in <= 1 to be tr",
        "invalid Poisson rate, expected rate to b",
        "probability tensor contains either `inf`",
        "invalid multinomial distribution (sum of",
    ]


def test_gamma_dirichlet_and_binomial(libraries):
    code = """
import math
from taeda import distributions as D
from taeda._C import ops
torch.manual_seed(0)
n = 1_500
def full(x, dtype=torch.float64): return torch.full((n,), x, device="cuda", dtype=dtype)
def near(x, mean, variance):
    return abs(x.mean().item() - mean) < 5 * (variance / n) ** 0.5 and abs(x.var().item() / variance - 1) < 0.35
for dtype in (torch.float32, torch.float64):
    for shape in (0.3, 1., 20., 700.):
        assert near(torch._standard_gamma(full(shape, dtype)), shape, shape), shape
    for count, p in ((7., 0.2), (1000., 0.003), (60., 0.5), (1e6, 0.9)):
        x = torch.binomial(full(count, dtype), full(p, dtype))
        assert x.floor().equal(x) and 0 <= x.min() and x.max() <= count and near(x, count * p, count * p * (1 - p)), (count, p)
    assert torch.binomial(full(5., dtype), full(0., dtype)).sum() == 0 and (torch.binomial(full(5., dtype), full(1., dtype)) == 5).all()
    assert torch.binomial(full(math.nan, dtype), full(0.5, dtype)).isnan().all()
    x = torch._sample_dirichlet(torch.tensor([1., 2, 5], device="cuda", dtype=dtype).expand(n, 3))
    assert near(x[:, 1].double(), 0.25, 2 / 8 * 6 / 8 / 9) and (x.sum(1) - 1).abs().max() < 1e-5
    x = torch._sample_dirichlet(torch.full((3, 300), 1e-3, device="cuda", dtype=dtype))
    assert (x > 0).all() and (x < 1).all() and (x.double().sum(1) - 1).abs().max() < 1e-4
    assert (torch._standard_gamma(full(1e-4, dtype)) > 0).all() and torch._standard_gamma(full(0., dtype)).max() < 1e-37
for f in (lambda: torch._standard_gamma(full(2.)), lambda: torch._sample_dirichlet(full(2.).view(-1, 4)), lambda: torch.binomial(full(30.), full(0.4))):
    torch.manual_seed(3); a, b = f(), f()
    torch.manual_seed(3); assert f().equal(a) and f().equal(b) and not a.equal(b)
for name, arguments in (("Gamma", (2., 3.)), ("Beta", (0.5, 2.)), ("Dirichlet", (torch.tensor([0.5, 2, 3]),)), ("StudentT", (4.,)), ("Chi2", (3.,))):
    given = [(a if isinstance(a, torch.Tensor) else torch.tensor(a)).double().cuda().requires_grad_() for a in arguments]
    x = getattr(D, name)(*given).rsample()
    x.sum().backward() if name != "Dirichlet" else x[0].backward()
    assert x.is_cuda and all(g.grad.is_cuda and g.grad.isfinite().all() for g in given), name
shapes = torch.rand(80, dtype=torch.float64) * 20
x = torch._standard_gamma(shapes)
gradients = ops._standard_gamma_grad(shapes.cuda(), x.cuda())
torch.testing.assert_close(gradients.cpu(), ops._standard_gamma_grad(shapes, x))
x = torch._sample_dirichlet(shapes.view(20, 4) + 0.1)
arguments = x, shapes.view(20, 4) + 0.1, (shapes.view(20, 4) + 0.1).sum(1, keepdim=True).expand(20, 4)
gradients = ops._dirichlet_grad(*(a.cuda() for a in arguments))
torch.testing.assert_close(gradients.cpu(), ops._dirichlet_grad(*arguments))
print(torch._standard_gamma(torch.empty(0, 3, device="cuda")).shape, torch._sample_dirichlet(torch.empty(0, 3, device="cuda")).shape)
"""
    assert printed(libraries, code) == ["taeda.Size([0, 3]) taeda.Size([0, 3])"]
