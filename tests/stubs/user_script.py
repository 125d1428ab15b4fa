"""A program as a user writes it. tests/test_stubs.py checks its types, and runs it."""

from __future__ import annotations

import taeda
import taeda.nn.functional as F
from taeda import Tensor, nn
from taeda.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)
        self.scale = nn.Parameter(taeda.ones(outputs))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.second(F.relu(self.first(x)))
        return scores * self.scale


def accuracy(scores: Tensor, labels: Tensor) -> float:
    values, best = scores.max(dim=1)
    assert values.shape == best.shape
    right: Tensor = best == labels
    return float(right.to(taeda.float32).mean().item())


def batches(count: int) -> DataLoader[tuple[Tensor, ...]]:
    generator = taeda.Generator().manual_seed(0)
    inputs = taeda.randn(count, 4, generator=generator)
    labels = taeda.where(inputs.sum(1) > 0, 1, 0).long()
    return DataLoader(TensorDataset(inputs, labels), batch_size=8)


def main() -> float:
    taeda.manual_seed(0)
    model = Net(4, 8, 2)
    optimizer = taeda.optim.Adam(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    result = 0.0
    for _ in range(4):
        for inputs, labels in batches(32):
            optimizer.zero_grad()
            loss: Tensor = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            result = accuracy(model(inputs), labels)
    gradient = model.scale.grad
    assert gradient is not None and gradient.shape == (2,)

    table = taeda.arange(6, dtype=taeda.float64).reshape(2, 3)
    rows: tuple[Tensor, ...] = table.unbind(0)
    joined = taeda.cat([rows[0], rows[1]], dim=0) ** 2 - 1
    size: tuple[int, ...] = joined.size()
    assert size == (6,)
    assert taeda.zeros(2, 3).view(-1).add_(1).add(1, alpha=2).numel() == 6
    with taeda.no_grad():
        assert not (model.scale + 1).requires_grad
    low, high = taeda.aminmax(table)
    assert isinstance(low.item() + high.item(), float)
    return result


if __name__ == "__main__":
    print(main())
