"""What graphs record beside plain kernels: random numbers, and the state of optimizers."""

from __future__ import annotations

from tests.cuda.test_runtime import printed


def test_random_numbers_go_on_from_replay_to_replay(libraries):
    code = """
def draw():
    x = torch.rand(1000, device="cuda")
    y = F.dropout(torch.ones(100, device="cuda"), 0.3)
    return x, y, torch.randn(7, device="cuda"), torch.randint(0, 9, (50,), device="cuda"), torch.randperm(20, device="cuda"), torch.empty(9, device="cuda").exponential_()
cuda.manual_seed(3)
draw()
state = cuda.get_rng_state()
g = cuda.CUDAGraph()
with cuda.graph(g): drawn = draw()
print(torch.equal(cuda.get_rng_state(), state))
found = []
for i in range(3):
    g.replay()
    found.append([t.clone() for t in drawn])
torch.rand(5, device="cuda")  # others draw in between
g.replay(); found.append([t.clone() for t in drawn])
end = cuda.get_rng_state()
cuda.set_rng_state(state)
expected = [draw() for i in range(3)]; torch.rand(5, device="cuda"); expected.append(draw())
print(all(torch.equal(a, b) for f, e in zip(found, expected) for a, b in zip(f, e)), torch.equal(end, cuda.get_rng_state()))
cuda.manual_seed(3); draw(); g.replay()
print(torch.equal(drawn[0], found[0][0]), torch.equal(found[0][0], found[1][0]))
"""
    assert printed(libraries, code) == ["True", "True True", "True False"]


def test_other_generators_are_registered(libraries):
    code = """
own = torch.Generator("cuda").manual_seed(5)
again = torch.Generator("cuda").manual_seed(5)
expected = [torch.rand(4, device="cuda", generator=again) for _ in range(2)]
g = cuda.CUDAGraph()
g.register_generator_state(own)
with cuda.graph(g): x = torch.rand(4, device="cuda", generator=own)
for e in expected:
    g.replay(); print(torch.equal(x, e))
try:
    with cuda.graph(cuda.CUDAGraph()): torch.rand(4, device="cuda", generator=own)
except RuntimeError as e: print("register_generator_state" in str(e))
try: g.register_generator_state(own)
except RuntimeError as e: print(e)
try: cuda.CUDAGraph().register_generator_state(torch.Generator())
except RuntimeError as e: print(e)
g.reset()
with cuda.graph(g): y = torch.rand(3, device="cuda")
g.replay(); print((y >= 0).all().item())
"""
    assert printed(libraries, code) == [
        "True",
        "True",
        "True",
        "cuda.CUDAGraph.register_generator_state: the graph has been recorded already",
        "cuda.CUDAGraph.register_generator_state: expected a generator of a cuda device, got one of cpu",
        "True",
    ]


def test_graphed_callables(libraries):
    code = """
import copy
torch.manual_seed(0)
def net(): return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
model = net().to("cuda"); twin = copy.deepcopy(model)
x = torch.randn(5, 3, device="cpu").to("cuda")
graphed = cuda.make_graphed_callables(model, (torch.zeros_like(x),))
print(graphed is model)
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, twin)]
for i in range(4):
    state = cuda.get_rng_state()
    for m, o in zip((model, twin), optimizers):
        cuda.set_rng_state(state)
        o.zero_grad()
        out = m(x)
        (out ** 2).sum().backward()
        o.step()
    x.add_(0.1)
for p, q in zip(model.parameters(), twin.parameters()): torch.testing.assert_close(p, q)
model.eval(), twin.eval()
torch.testing.assert_close(model(x), twin(x))  # as it was before
f, g = cuda.make_graphed_callables((lambda a, b: (a * b, a.detach() + 1), lambda a: {"y": a.exp()}), ((torch.ones(2, device="cuda", requires_grad=True), torch.ones(2, device="cuda")), (torch.ones(2, device="cuda", requires_grad=True),)))
a = torch.tensor([1.0, 2.0]).cuda().requires_grad_()
b = torch.tensor([3.0, 4.0], device="cuda")
product, shifted = f(a, b)
y = g(product)["y"]
y.sum().backward()
print(shifted.requires_grad, shifted.tolist())
torch.testing.assert_close(a.grad, b * (a.detach() * b).exp())
model = net().to("cuda"); model.register_forward_hook(lambda *a: None)
def fails(f):
    try: f()
    except Exception as e: return type(e).__name__ + " " + str(e)
print(fails(lambda: cuda.make_graphed_callables(model, (x,))))
print(fails(lambda: cuda.make_graphed_callables(torch.sin, (3,))))
with torch.autocast("cuda"): print(fails(lambda: cuda.make_graphed_callables(torch.sin, (x,))))
with torch.autocast("cuda", cache_enabled=False): h = cuda.make_graphed_callables(lambda t: t @ t.t(), (x,))
print(h(x).dtype)
"""
    lines = printed(libraries, code)
    assert lines[:2] == ["True", "False [2.0, 3.0]"]
    assert "must not have hooks" in lines[2]
    assert lines[3].endswith("sample_args must hold tensors only, got ['int']")
    assert "use cache_enabled=False" in lines[4]
    assert lines[5] == "taeda.float16"


def test_optimizers_that_count_on_the_device(libraries):
    """Each replay is another step, the same as outside of a graph."""
    code = """
import copy
makers = [
    ("Adam", dict(weight_decay=0.1)), ("AdamW", dict(amsgrad=True, maximize=True)), ("Adamax", {}),
    ("RAdam", dict(weight_decay=0.1, decoupled_weight_decay=True)), ("RMSprop", dict(momentum=0.9, centered=True)), ("Adadelta", {}),
    ("Rprop", {}), ("NAdam", dict(weight_decay=0.1, decoupled_weight_decay=True, momentum_decay=0.3)), ("NAdam", dict(momentum_decay=0)),
    ("ASGD", dict(t0=4, lambd=0.1, weight_decay=0.1)),
]
for name, options in makers:
    for rate in (0.05, torch.tensor(0.05)):
        torch.manual_seed(0)
        params = [torch.randn(5, 3).cuda().requires_grad_() for _ in range(3)]
        twins = [p.detach().clone().requires_grad_() for p in params]
        lr = rate.cuda() if isinstance(rate, torch.Tensor) and name != "Rprop" else 0.05
        o = getattr(torch.optim, name)(params, lr=lr, capturable=True, **options)
        plain = getattr(torch.optim, name)(twins, lr=0.05, **options)
        grads = [torch.randn(5, 3).cuda() for _ in params]
        for p, t, g in zip(params, twins, grads): p.grad, t.grad = g, g
        for _ in range(2): o.step(); plain.step()
        g = cuda.CUDAGraph()
        with cuda.graph(g): o.step()
        for i in range(6):
            for x in grads: x.mul_(-0.9)
            if i == 3 and isinstance(lr, torch.Tensor):
                lr.fill_(0.02); plain.param_groups[0]["lr"] = 0.02
            g.replay(); plain.step()
        for p, t in zip(params, twins): torch.testing.assert_close(p, t, rtol=1e-5, atol=1e-6)
        count = o.state[params[0]]["step"]
        assert count.is_cuda and count.item() == 8, (name, count)
        again = getattr(torch.optim, name)(twins, lr=0.05, capturable=True, **options)
        again.load_state_dict(plain.state_dict() | {"param_groups": [{**plain.state_dict()["param_groups"][0], "capturable": True}]})
        assert again.state[twins[0]]["step"].is_cuda and again.state[twins[0]]["step"].item() == 8
        again.step(); assert again.state[twins[0]]["step"].item() == 9
print("same")
p = torch.ones(2, device="cuda", requires_grad=True); p.grad = torch.ones_like(p)
cuda.set_sync_debug_mode("error")
o = torch.optim.AdamW([p], capturable=True)
g = cuda.CUDAGraph()
try:
    with cuda.graph(g): o.step()
except RuntimeError as e: print("step once before" in str(e))
o.step()
g.reset()
with cuda.graph(g): o.step()
g.replay(); g.replay()
cuda.set_sync_debug_mode(0)
print(o.state[p]["step"].item())
"""
    assert printed(libraries, code) == ["same", "True", "3.0"]
