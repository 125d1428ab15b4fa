"""CTC and sparse matrices on CUDA as on the CPU."""

from __future__ import annotations

from tests.cuda.compare import GRADIENTS, compared


def test_ctc(libraries):
    code = """
def loss(steps, classes, batch, lengths, inputs, target, blank=0, **how):
    gradients(lambda x: F.ctc_loss(x.log_softmax(2), target.to(x.device), inputs, lengths, blank, **how), (steps, batch, classes))
some = torch.randint(1, 7, (3, 5))
for reduction in ("mean", "sum", "none"):
    loss(12, 7, 3, [5, 2, 4], [12, 9, 12], some, reduction=reduction)
loss(12, 7, 3, [5, 2, 4], [12, 9, 10], torch.randint(1, 7, (11,)))
loss(12, 7, 3, [5, 0, 4], [12, 3, 10], some - 1, blank=6)
loss(9, 3, 2, [4, 4], [9, 9], torch.tensor([[1, 1, 2, 2], [1, 2, 1, 2]]))
loss(5, 4, 2, [5, 5], [5, 4], torch.randint(1, 4, (2, 5)), zero_infinity=True)
loss(70, 5, 150, [20] * 150, [70] * 150, torch.randint(1, 5, (150, 20)))
loss(100, 40, 1, [45], [100], torch.randint(1, 40, (1, 45)))
def infinite(x):
    x = x.detach().requires_grad_()
    y = F.ctc_loss(x.log_softmax(2), torch.ones(2, 4, dtype=torch.int64, device=x.device), [6, 7], [4, 4], reduction="none")
    y.sum().backward()
    return y.detach(), x.grad
same(infinite, torch.randn(7, 2, 3), tol=1e-4)
bad = torch.tensor([[1, 9]], device="cuda")
try:
    F.ctc_loss(torch.randn(5, 1, 3, device="cuda").log_softmax(2), bad, [5], [2]).item()
except IndexError as error:
    assert "9" in str(error), error
    print("ok")
"""
    assert compared(libraries, GRADIENTS + code) == 3 + 6 + 2


def test_sparse_products(libraries):
    code = """
def matrix(rows, columns, dtype=torch.float32):
    return (torch.randn(rows, columns) * (torch.rand(rows, columns) < 0.2)).to(dtype)
for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
    for rows, columns, width in [(1, 1, 1), (30, 50, 1), (50, 30, 7), (40, 40, 40), (5, 400, 3)]:
        a, x = matrix(rows, columns, dtype), torch.randn(columns, width, dtype=dtype)
        same(lambda a, x: a.to_sparse_csr() @ x, a, x, tol=1e-4)
        same(lambda a, x: torch.sparse.mm(a.to_sparse(), x), a, x, tol=1e-4)
gradients(lambda a, x: torch.sparse.mm((a * (a > 0.5)).to_sparse_csr(), x), (20, 30), (30, 9))
gradients(lambda a, x: torch.sparse.mm((a * (a > 0.5)).to_sparse(), x), (20, 30), (30, 9))
same(lambda a: a.to_sparse_csr().to_sparse().to_dense(), matrix(9, 12))
same(lambda a: torch.frexp(a), torch.tensor([0.0, -1.5, 1e30, float("inf"), float("nan"), 1e-40]))
"""
    assert compared(libraries, GRADIENTS + code) == 4 * 5 * 2 + 4


def test_sparse_tensors_are_on_a_device(libraries):
    code = """
a = torch.tensor([[0, 2.0], [3, 0]])
one = torch.ones(2, 1, device="cuda")
def there(*tensors): return all(t.device == one.device for t in tensors)
for layout in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
    made, moved = getattr(a.to("cuda"), layout)(), getattr(a, layout)().to("cuda")
    assert there(made, moved, moved.values(), made.to_dense(), moved @ one, torch.zeros_like(moved))
    assert made.cpu().device.type == "cpu" and torch.equal(made.cpu().to_dense(), a)
    assert (moved @ one).tolist() == [[2.0], [3.0]]
    print("ok")
block = a.repeat(2, 2).to("cuda").to_sparse_bsr((2, 2))
assert there(block, block.to_dense()) and torch.equal(block.to_dense().cpu(), a.repeat(2, 2))
listed = torch.sparse_coo_tensor([[0, 1]], [2.0, 3.0], (3,), device="cuda")
rows = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [2.0, 3.0], device="cuda")
assert there(listed, listed._indices(), rows, rows.col_indices())
assert listed.to_dense().tolist() == [2, 3, 0] and torch.equal(rows.to_dense().cpu(), a)
def trained(device):
    torch.manual_seed(0)
    table = torch.nn.Embedding(5, 3, sparse=True).to(device)
    for kind in (torch.optim.SGD, torch.optim.SparseAdam):
        table(torch.tensor([1, 1, 2], device=device)).square().sum().backward()
        kind(table.parameters(), lr=0.1).step()
    return table.weight.detach()
torch.testing.assert_close(trained("cuda").cpu(), trained("cpu"))
print("ok")
"""
    assert compared(libraries, GRADIENTS + code) == 4
