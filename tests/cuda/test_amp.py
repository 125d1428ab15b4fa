"""Autocast on CUDA devices, and the scaling of losses."""

from __future__ import annotations

from tests.cuda.test_runtime import printed

LOWER, FLOAT32, WIDEST, AS_GIVEN = "lower", "float32", "widest", "as given"

# What PyTorch's documentation lists for CUDA, with calls of two float tensors.
CALLS = {
    LOWER: {
        "matmul": "m @ n",
        "mm": "torch.mm(m, n)",
        "mv": "torch.mv(m, n[0])",
        "bmm": "torch.bmm(m[None], n[None])",
        "addmm": "torch.addmm(m, m, n)",
        "addmv": "torch.addmv(m[0], m, n[0])",
        "addr": "torch.addr(m, m[0], n[0])",
        "baddbmm": "torch.baddbmm(m[None], m[None], n[None])",
        "addbmm": "torch.addbmm(m, m[None], n[None])",
        "chain_matmul": "torch.linalg.multi_dot([m, n, m])",
        "linear": "F.linear(m, n)",
        "einsum": "torch.einsum('ij,jk->ik', m, n)",
        "prelu": "F.prelu(m, n[0, :1])",
        "conv1d": "F.conv1d(m[None], n[:, :, None])",
        "conv2d": "F.conv2d(m[None, :, None], n[:, :, None, None])",
        "conv_transpose1d": "F.conv_transpose1d(m[None], n[:, :, None])",
        "attention": "F.scaled_dot_product_attention(m[None], n[None], m[None])",
        "vecdot": "torch.linalg.vecdot(m, n)",
    },
    FLOAT32: {
        **{
            name: f"m.abs().{name}()"
            for name in [
                "cosh",
                "exp",
                "expm1",
                "log",
                "log10",
                "log2",
                "log1p",
                "reciprocal",
                "rsqrt",
                "sinh",
                "tan",
            ]
        },
        "acos": "(m / 9).acos()",
        "pow": "m ** 2",
        "softplus": "F.softplus(m)",
        "layer_norm": "F.layer_norm(m, (4,))",
        "group_norm": "F.group_norm(m[None], 2)",
        "norm": "m.norm()",
        "vector_norm": "torch.linalg.vector_norm(m)",
        "softmax": "F.softmax(m, -1)",
        "log_softmax": "F.log_softmax(m, -1)",
        "cross_entropy": "F.cross_entropy(m, torch.tensor([0, 1, 2, 3]).cuda())",
        "nll_loss": "F.nll_loss(m, torch.tensor([0, 1, 2, 3]).cuda())",
        "mse_loss": "F.mse_loss(m, n)",
        "l1_loss": "F.l1_loss(m, n)",
        "smooth_l1_loss": "F.smooth_l1_loss(m, n)",
        "huber_loss": "F.huber_loss(m, n)",
        "kl_div": "F.kl_div(m, n, reduction='sum')",
        "with_logits": "F.binary_cross_entropy_with_logits(m, n)",
        "cosine_embedding_loss": "F.cosine_embedding_loss(m, n, torch.ones(4).cuda())",
        "margin_ranking_loss": "F.margin_ranking_loss(m, n, m)",
        "hinge_embedding_loss": "F.hinge_embedding_loss(m, n)",
        "poisson_nll_loss": "F.poisson_nll_loss(m, n)",
        "triplet_margin_loss": "F.triplet_margin_loss(m, n, m + 1)",
        "sum": "m.sum()",
        "sum_dim": "m.sum(0)",
        "prod": "m.prod()",
        "cumsum": "m.cumsum(0)",
        "cumprod": "m.cumprod(0)",
        "logsumexp": "m.logsumexp(0)",
        "cosine_similarity": "F.cosine_similarity(m, n)",
        "dist": "m.dist(n)",
        "renorm": "m.renorm(2, 0, 1.0)",
    },
    WIDEST: {
        "cat": "torch.cat([m, n])",
        "stack": "torch.stack([m, n])",
        "atan2": "torch.atan2(m, n)",
        "addcmul": "torch.addcmul(m, m, n)",
        "dot": "m[0].dot(n[0])",
        "scatter_add": "m.scatter_add(0, torch.zeros(4, 4, dtype=torch.int64).cuda(), n)",
    },
    AS_GIVEN: {
        "add": "m + m",
        "relu": "m.relu()",
        "mean": "m.mean()",
        "sqrt": "m.abs().sqrt()",
        "std": "m.std()",
        "sigmoid": "m.sigmoid()",
        "tanh": "m.tanh()",
        "gelu": "F.gelu(m)",
        "transpose": "m.t().contiguous()",
    },
}


def test_precisions(libraries):
    """Of float32 inputs, of lower ones, and of both."""
    code = f"""
calls = {CALLS!r}
a = torch.arange(16.0).reshape(4, 4).div(16).add(0.1).cuda()
b = a.flip(0) + 0.2
float32, wrong = torch.float32, []
for low in (torch.float16, torch.bfloat16):
    for m, n in ((a, b), (a.to(low), b.to(low)), (a.to(low), b)):
        widest = low if m.dtype is low and n.dtype is low else float32
        expected = {{"lower": low, "float32": float32, "widest": widest, "as given": m.dtype}}
        for kind, some in calls.items():
            for name, call in some.items():
                with torch.autocast("cuda", dtype=low):
                    found = eval(call).dtype
                if found is not expected[kind]: wrong.append((name, m.dtype, n.dtype, found))
print(wrong)
"""
    assert printed(libraries, code) == ["[]"]


def test_blocks(libraries):
    code = """
m, c = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
print(torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"), torch.amp.is_autocast_available("cuda"))
with torch.autocast("cuda"):
    print((m @ m).dtype, (c @ c).dtype, torch.is_autocast_enabled(), torch.is_autocast_enabled("cpu"))
    with torch.autocast("cpu"):
        print((m @ m).dtype, (c @ c).dtype)
    with torch.autocast("cuda", dtype=torch.bfloat16): print((m @ m).dtype)
    with cuda.amp.autocast(enabled=False): print((m @ m).dtype)
    print((m.double() @ m.double()).dtype, torch.mm(m, m, out=torch.empty_like(m)).dtype)
    try: F.binary_cross_entropy(m / 2, m)
    except RuntimeError as e: print(e)
print((m @ m).dtype)
layer = torch.nn.Linear(2, 2, device="cuda")
with torch.autocast("cuda"):
    y = layer(m); again = layer(m)
y.sum().backward()
print(y.dtype, layer.weight.grad.dtype, y.grad_fn is not None)
class Double(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x): return x * 2
    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, g): return g * 2
with torch.autocast("cuda"): print(Double.apply(m.half()).dtype, Double.apply(c.half()).dtype)
from taeda.utils.checkpoint import checkpoint
x = m.clone().requires_grad_()
with torch.autocast("cuda"): z = checkpoint(lambda t: (t @ t).sum(), x, use_reentrant=False)
z.backward(); print(x.grad.dtype, x.grad.tolist())
"""
    lines = printed(libraries, code)
    assert lines[:6] == [
        "False taeda.float16 True",
        "taeda.float16 taeda.float32 True False",
        "taeda.float16 taeda.bfloat16",
        "taeda.bfloat16",
        "taeda.float32",
        "taeda.float64 taeda.float32",
    ]
    assert "use binary_cross_entropy_with_logits" in lines[6]
    assert lines[7:] == [
        "taeda.float32",
        "taeda.float16 taeda.float32 True",
        "taeda.float32 taeda.float16",
        "taeda.float32 [[4.0, 4.0], [4.0, 4.0]]",
    ]


SCALER = """
import copy
def model_and_data(device):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(16, 4)
    return net.to(device), x.to(device)
"""


def test_the_scaler_is_that_of_the_cpu(libraries):
    code = """
def train(device):
    net, x = model_and_data(device)
    o = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler(device, init_scale=1024.0, growth_interval=2)
    seen = []
    for step in range(7):
        o.zero_grad()
        loss = net(x).square().mean() * (float("inf") if step == 3 else 1)
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(o)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(o)
        scaler.update()
        seen.append((scaler.get_scale(), scaler.state_dict()["_growth_tracker"]))
    return seen, [p.detach().cpu() for p in net.parameters()]
a, b = train("cpu"), train("cuda")
print(a[0] == b[0], a[0])
torch.testing.assert_close(a[1], b[1])
"""
    assert printed(libraries, SCALER + code) == [
        "True [(1024.0, 1), (2048.0, 0), (2048.0, 1), (1024.0, 0), (1024.0, 1), (2048.0, 0), (2048.0, 1)]"
    ]


def test_the_scaler_waits_once_a_step(libraries):
    code = """
net, x = model_and_data("cuda")
o = torch.optim.AdamW(net.parameters())
scaler = cuda.amp.GradScaler(growth_interval=2)
import warnings
def step():
    o.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = net(x).square().mean()
    scaler.scale(loss).backward()
    scaler.step(o)
    scaler.update()
step()
cuda.set_sync_debug_mode("warn")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    step(); step()
cuda.set_sync_debug_mode(0)
print(len(seen), scaler.get_scale(), scaler.state_dict()["scale"])
other = torch.amp.GradScaler("cuda"); other.load_state_dict(scaler.state_dict()); print(other.state_dict() == scaler.state_dict())
import pickle
print(pickle.loads(pickle.dumps(other)).get_scale())
scaler.update(8.0); print(scaler.get_scale())
"""
    assert printed(libraries, SCALER + code) == ["2 131072.0 131072.0", "True", "131072.0", "8.0"]


def test_the_trainer_computes_in_lower_precision(libraries):
    code = """
net, x = model_and_data("cuda")
seen = []
net[0].register_forward_hook(lambda module, args, out: seen.append(out.dtype))
o = torch.optim.SGD(net.parameters(), lr=0.1)
trainer = torch.Trainer(net, F.mse_loss, o, callbacks=[torch.training.MixedPrecision(torch.float16)])
trainer.step(x, torch.zeros(16, 1).cuda())
print(seen[0], net[0].weight.dtype)
"""
    assert printed(libraries, SCALER + code) == ["taeda.float16 taeda.float32"]


def test_unscaling_many_gradients(libraries):
    code = """
unscale = torch._C.ops._amp_foreach_non_finite_check_and_unscale_
for device in ("cpu", "cuda"):
    for bad in (None, 0, 299, 300):
        grads = [torch.full((n % 37,), 8.0, dtype=d, device=device) for n, d in zip(range(301), [torch.float32, torch.bfloat16, torch.float64, torch.float16] * 80)]
        grads.append(torch.full((5, 6), 8.0, device=device).t()[::2])
        grads.append(torch.full((5000,), 8.0, device=device)[1:])
        if bad is not None: grads[bad + 1 if grads[bad].numel() == 0 else bad][-1] = float("nan" if bad else "inf")
        versions = [g._version for g in grads]
        found, factor = torch.zeros((), device=device), torch.tensor(0.25, device=device)
        unscale(grads, found, factor)
        wrong = sum(int((g != 2).sum()) for g in grads)
        assert all(g._version == v + 1 for g, v in zip(grads, versions))
        print(device, found.item(), wrong)
try: unscale([torch.ones(2, device="cuda")], torch.zeros(()), torch.ones((), device="cuda"))
except RuntimeError as e: print(e)
"""
    lines = printed(libraries, "torch = __import__('taeda')\n" + code)
    expected = ["0.0 0", "1.0 1", "1.0 1", "1.0 1"]
    assert lines[:8] == [f"{d} {e}" for d in ("cpu", "cuda") for e in expected]
    assert "at least two devices, cuda:0 and cpu" in lines[8]


def test_fused_optimizers_scale_by_themselves(libraries):
    """As on the CPU, and without waiting for the device."""
    code = """
O = torch.optim
makers = {
    "sgd": lambda p: O.SGD(p, lr=0.1, fused=True),
    "momentum": lambda p: O.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "adam": lambda p: O.Adam(p, lr=0.1, weight_decay=0.1, fused=True),
    "adamw": lambda p: O.AdamW(p, lr=0.1, amsgrad=True, fused=True),
    "adagrad": lambda p: O.Adagrad(p, lr=0.1, lr_decay=0.1, fused=True),
}
def train(device, make, bad):
    net, x = model_and_data(device)
    o = make(net.parameters())
    scaler = torch.amp.GradScaler(device, init_scale=1000.0, growth_interval=2)
    seen = []
    for i in range(5):
        o.zero_grad()
        loss = net(x).square().mean() * (float("inf") if i == bad else 1)
        scaler.scale(loss).backward()
        if device == "cuda": cuda.set_sync_debug_mode("error")
        if i == 3: scaler.unscale_(o)
        scaler.step(o)
        scaler.update()
        cuda.set_sync_debug_mode(0)
        seen.append([t.detach().cpu().clone() for p in net.parameters() for t in (p, p.grad)])
    steps = [s["step"] for s in o.state.values() if "step" in s]
    return seen, scaler.get_scale(), {(t.device.type, t.item()) for t in steps}
for name, make in makers.items():
    for bad in (0, 2):
        a, b = train("cpu", make, bad), train("cuda", make, bad)
        torch.testing.assert_close(a[0], b[0], rtol=1e-5, atol=1e-6, equal_nan=True)
        print(name, a[1] == b[1], sorted(a[2] | b[2]))
"""
    counts = "[('cpu', 4.0), ('cuda', 4.0)]"
    expected = [("sgd", "[]"), ("momentum", "[]")]
    expected += [(name, counts) for name in ("adam", "adamw", "adagrad")]
    assert printed(libraries, SCALER + code) == [f"{n} True {c}" for n, c in expected for _ in "ab"]


def test_fused_steps_are_resumed(libraries):
    code = """
p = torch.ones(3, device="cuda").requires_grad_()
def step(o):
    p.grad = torch.full_like(p, 0.5)
    o.step()
o = torch.optim.Adam([p], lr=torch.tensor(0.1, device="cuda"), fused=True)
step(o)
saved = o.state_dict()
other = torch.optim.Adam([p], lr=0.1, fused=True); other.load_state_dict(saved); step(other)
print(other.state[p]["step"], other.state[p]["step"].device)
plain = torch.optim.Adam([p], lr=0.1); step(plain)
again = torch.optim.Adam([p], lr=0.1, fused=True); again.load_state_dict({**plain.state_dict(), "param_groups": again.state_dict()["param_groups"]})
step(again); print(again.state[p]["step"].device, again.state[p]["step"].item())
"""
    assert printed(libraries, code) == ["tensor(2., device='cuda:0') cuda:0", "cuda:0 2.0"]
