"""Lines as programs have them. tests/test_stubs.py checks their types, and runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn
from taeda.optim.lr_scheduler import CosineAnnealingLR, StepLR
from taeda.utils.data import DataLoader, Dataset, TensorDataset, random_split

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value, kind):
        return value


# ---- tensors ------------------------------------------------------------------------------------


def creation() -> None:
    device = taeda.device("cuda" if taeda.cuda.is_available() else "cpu")
    assert_type(device, taeda.device)
    assert_type(taeda.manual_seed(0), taeda.Generator)
    x = taeda.randn(8, 3, dtype=taeda.float32, device=device)
    assert_type(x, Tensor)
    assert_type(taeda.zeros_like(x), Tensor)
    assert_type(taeda.arange(0, 10, 2), Tensor)
    assert_type(taeda.linspace(0, 1, steps=5), Tensor)
    assert_type(taeda.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), Tensor)
    assert_type(taeda.full((2, 3), 7.0), Tensor)
    assert_type(taeda.eye(3), Tensor)
    assert_type(taeda.randint(0, 10, (4,)), Tensor)
    assert_type(taeda.randperm(5), Tensor)
    assert_type(x.new_zeros(2, 2), Tensor)
    assert_type(taeda.empty(0).numel(), int)


def shapes() -> None:
    x = taeda.rand(2, 3, 4)
    assert_type(x.shape[0], int)
    batch, rows, columns = x.shape
    assert_type(batch * rows * columns, int)
    assert_type(x.size(-1), int)
    assert_type(x.dim(), int)
    assert_type(x.view(2, -1), Tensor)
    assert_type(x.reshape(-1), Tensor)
    assert_type(x.permute(2, 0, 1).contiguous(), Tensor)
    assert_type(x.transpose(1, 2), Tensor)
    assert_type(x.unsqueeze(0).squeeze(0), Tensor)
    assert_type(x.flatten(start_dim=1), Tensor)
    assert_type(x.expand(5, 2, 3, 4), Tensor)
    assert_type(taeda.cat([x, x], dim=0), Tensor)
    assert_type(taeda.stack((x, x)), Tensor)
    first, second = x.split(1)
    assert_type(first, Tensor)
    for part in x.chunk(2, dim=2):
        assert_type(part, Tensor)
    assert_type(x[0], Tensor)
    assert_type(x[:, 1:, None], Tensor)
    assert_type(x[x > 0.5], Tensor)
    x[0, 0] = 1.0
    assert_type(second.shape, taeda.Size)


def arithmetic() -> None:
    x, y = taeda.rand(3, 3), taeda.rand(3, 3)
    assert_type(x + y, Tensor)
    assert_type(2 * x - 1, Tensor)
    assert_type(x @ y, Tensor)
    assert_type(x.T.mm(y), Tensor)
    assert_type(-x / (y + 1e-8), Tensor)
    assert_type(x**2, Tensor)
    assert_type(x.exp().log().sqrt().clamp(min=0.0, max=1.0), Tensor)
    assert_type(taeda.where(x > y, x, y), Tensor)
    assert_type(taeda.where(x > 0.5, 1.0, 0.0), Tensor)
    assert_type(taeda.where(x > 0.5), tuple[Tensor, ...])
    assert_type(taeda.einsum("ij,jk->ik", x, y), Tensor)
    assert_type(taeda.bmm(x[None], y[None]), Tensor)
    assert_type(x.sum(), Tensor)
    assert_type(x.mean(dim=0, keepdim=True), Tensor)
    assert_type(x.std(dim=1), Tensor)
    assert_type(x.argmax(dim=-1), Tensor)
    values, indices = x.max(dim=1)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    top, places = x.topk(2, dim=1)
    assert_type(top, Tensor)
    assert_type(x.sort(descending=True).indices, Tensor)
    assert_type(x.softmax(dim=-1), Tensor)
    assert_type(x.add_(1).mul_(2), Tensor)
    assert_type(x.norm(), Tensor)
    assert_type(taeda.linalg.inv(taeda.eye(2)), Tensor)
    assert_type(taeda.fft.rfft(x[0]), Tensor)
    assert_type((x == y).all(), Tensor)
    assert_type(bool((x == y).any()), bool)
    assert_type(places.dtype, taeda.dtype)


def numbers() -> None:
    x = taeda.rand(3)
    assert_type(x.sum().item(), int | float)
    total: float = x.sum().item()
    total += x.mean().item() * x.numel()
    assert_type(float(x[0]), float)
    assert_type(int(x.argmax()), int)
    names = [f"{value:.3f}" for value in x.tolist()]
    assert_type(names, list[str])
    assert_type(x.numpy(), Any)
    assert_type(taeda.from_numpy(x.numpy()), Tensor)
    assert_type(x.to(taeda.float64), Tensor)
    assert_type(x.to("cpu", non_blocking=True), Tensor)
    assert_type(x.float().cpu().detach().clone(), Tensor)
    assert_type(x.long(), Tensor)
    assert_type(x.is_floating_point(), bool)
    assert_type(x.requires_grad, bool)
    assert total > 0


# ---- gradients ----------------------------------------------------------------------------------


def gradients() -> None:
    w = taeda.ones(3, requires_grad=True)
    loss = (w * w).sum()
    loss.backward()
    if w.grad is not None:
        assert_type(w.grad, Tensor)
    with taeda.no_grad():
        w -= 0.1
    with taeda.enable_grad(), taeda.set_grad_enabled(True):
        (g,) = taeda.autograd.grad((w**3).sum(), w, create_graph=True)
        assert_type(g, Tensor)
    with taeda.inference_mode():
        assert_type(w.is_leaf, bool)
    assert_type(evaluate(w), float)
    assert_type(scaled(w, 2), Tensor)
    for number in counted(2):
        assert_type(number, int)


@taeda.no_grad()
def evaluate(x: Tensor) -> float:
    return float(x.sum())


@taeda.no_grad
def scaled(x: Tensor, by: int) -> Tensor:
    return x * by


@taeda.inference_mode()
def counted(n: int) -> Iterator[int]:
    yield from range(n)


class Double(taeda.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return 2 * grads[0]


# ---- modules ------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(width, 1)})
        self.dropout = nn.Dropout(dropout)
        self.scale = nn.Parameter(taeda.ones(width))
        self.register_buffer("steps", taeda.zeros(1))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.norm(x)
        h, _ = self.attention(h, h, h, attn_mask=mask)
        for layer in self.layers:
            h = F.gelu(layer(h))
        x = x + self.dropout(h) * self.scale
        return x


def modules(folder: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    model.append(nn.Linear(64, 2))
    assert isinstance(model[0], nn.Module) and isinstance(model[:2], nn.Sequential)
    print(model[0].weight.shape, model[-1].out_features)
    assert_type(model[1:3], nn.Sequential)
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert_type(count, int)
    for name, parameter in model.named_parameters():
        assert_type(name, str)
        assert parameter.shape
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
            assert module.bias is not None
            nn.init.zeros_(module.bias)
    state = model.state_dict()
    assert_type(state, dict[str, Any])
    taeda.save({"model": state, "epoch": 3}, folder / "model.pt")
    saved = taeda.load(folder / "model.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(saved["model"])
    assert_type(model.eval(), nn.Sequential)
    assert_type(model.train(False).to(taeda.device("cpu")), nn.Sequential)
    assert_type(model.training, bool)
    block = Block(4)
    assert_type(block.layers[0:1], nn.ModuleList)
    print(block.layers[0].weight.mean().item(), block.heads["a"].bias)
    out: Tensor = block(taeda.rand(2, 3, 4))
    handle = block.register_forward_hook(lambda module, inputs, output: None)
    handle.remove()
    assert out.shape == (2, 3, 4) and Double.apply(out).shape == out.shape
    model.apply(lambda m: None).requires_grad_(False)
    assert_type(list(model.children())[0].training, bool)


# ---- training -----------------------------------------------------------------------------------


class Squares(Dataset[tuple[Tensor, int]]):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return taeda.tensor([float(index)]), index % 2


def training() -> list[float]:
    data = TensorDataset(taeda.rand(32, 4), taeda.randint(0, 2, (32,)))
    train, valid = random_split(data, [24, 8], generator=taeda.Generator().manual_seed(1))
    loader = DataLoader(train, batch_size=8, shuffle=True, num_workers=0, drop_last=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = taeda.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    scheduler = CosineAnnealingLR(optimizer, T_max=2)
    other = StepLR(taeda.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), step_size=1)
    scaler = taeda.amp.GradScaler("cpu", enabled=False)
    losses: list[float] = []
    for _ in range(2):
        model.train()
        running, correct = 0.0, 0
        for inputs, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            with taeda.autocast("cpu", dtype=taeda.bfloat16, enabled=False):
                scores: Tensor = model(inputs)
                loss: Tensor = criterion(scores, labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            running += loss.item() * inputs.size(0)
            correct += int((scores.argmax(1) == labels).sum())
            assert norm.isfinite()
        scheduler.step()
        losses.append(running / len(train))
    assert len(scheduler.get_last_lr()) == 1
    assert len(valid) + len(Squares()) == 24 and optimizer.param_groups[0]["lr"] >= 0
    assert F.cross_entropy(scores, labels).item() > 0 and other.last_epoch == 0
    assert_type(F.mse_loss(scores, scores), Tensor)
    assert_type(F.softmax(scores, dim=1), Tensor)
    assert_type(F.one_hot(labels, 2), Tensor)
    assert_type(F.pad(scores, (1, 1)), Tensor)
    assert_type(F.interpolate(taeda.rand(1, 1, 2, 2), scale_factor=2), Tensor)
    return losses


def main(folder: Path) -> None:
    creation()
    shapes()
    arithmetic()
    numbers()
    gradients()
    modules(folder)
    assert len(training()) == 2
