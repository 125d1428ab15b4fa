"""Recurrent networks on CUDA as on the CPU, with gradients."""

from __future__ import annotations

from tests.cuda.compare import compared

CODE = """
from taeda.nn.utils.rnn import pack_padded_sequence
def run(kind, device, x, lengths, dtype, **how):
    torch.manual_seed(1)
    net = getattr(torch.nn, kind)(x.size(-1), 9, **how).to(dtype).to(device)
    x = x.to(dtype).to(device).requires_grad_()
    given = pack_padded_sequence(x, lengths, how.get("batch_first", False), enforce_sorted=False) if lengths else x
    y, state = net(given)
    y = y.data if lengths else y
    state = state if isinstance(state, tuple) else (state,)
    sum((t * t.detach().cos()).sum() for t in (y, *state)).backward()
    return [t.detach().cpu() for t in (y, *state, x.grad, *[p.grad for p in net.parameters()])]
def check(kind, x=None, lengths=None, dtype=torch.float32, tol=1e-4, **how):
    x = torch.randn(7, 4, 5) if x is None else x
    for g, w in zip(*[run(kind, d, x, lengths, dtype, **how) for d in ("cuda", "cpu")]):
        torch.testing.assert_close(g, w, rtol=tol, atol=tol)
    print("ok")
"""


def test_cells_and_layouts(libraries):
    code = """
for kind, how in [("RNN", {}), ("RNN", {"nonlinearity": "relu"}), ("LSTM", {}), ("LSTM", {"proj_size": 3}), ("GRU", {})]:
    check(kind, **how)
    check(kind, num_layers=2, bidirectional=True, **how)
    check(kind, bias=False, batch_first=True, **how)
    check(kind, lengths=[3, 7, 1, 5], bidirectional=True, **how)
    check(kind, x=torch.randn(6, 5), **how)
    check(kind, x=torch.randn(1, 1, 5), **how)
    check(kind, dtype=torch.float64, tol=1e-10, **how)
    check(kind, dtype=torch.bfloat16, tol=0.1, **how)
"""
    assert compared(libraries, CODE + code) == 5 * 8


def test_initial_state_and_output_alone(libraries):
    code = """
for kind in ("RNN", "LSTM", "GRU"):
    def f(x, h, *c):
        leaves = [t.detach().requires_grad_() for t in (x, h, *c)]
        torch.manual_seed(1)
        net = getattr(torch.nn, kind)(5, 9).to(x.device)
        y, s = net(leaves[0], tuple(leaves[1:]) if c else leaves[1])
        (y[2] if kind != "GRU" else s).sum().backward()
        return (y.detach(), *[t.grad for t in leaves])
    more = [torch.randn(1, 4, 9)] * (kind == "LSTM")
    same(f, torch.randn(3, 4, 5), torch.randn(1, 4, 9), *more, tol=1e-4)
"""
    assert compared(libraries, CODE + code) == 3
