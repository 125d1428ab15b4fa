"""How loss, optimizer and model are tied together: through the parameters' `.grad`.

The loss function knows neither the model nor the optimizer. Its result remembers how it was
computed, so `loss.backward()` can add to the `.grad` of every parameter on the way; the optimizer
holds references to the same parameters, and `step()` reads those gradients. The script prints what
each call leaves behind, then trains a binary classifier in the usual loop.
"""

from __future__ import annotations

import taeda
from taeda import nn, optim
from taeda.utils.data import DataLoader, TensorDataset


def make_points(count: int = 208, features: int = 60) -> tuple[taeda.Tensor, taeda.Tensor]:
    """Points of two classes: the label says on which side of a random plane a point lies."""
    x = taeda.randn(count, features)
    normal = taeda.randn(features, 1)
    return x, (x @ normal > 0).float()


def make_model() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(60, 60),
        nn.ReLU(),
        nn.Linear(60, 30),
        nn.ReLU(),
        nn.Linear(30, 1),
        nn.Sigmoid(),
    )


def show_the_ties(model: nn.Module, x: taeda.Tensor, y: taeda.Tensor) -> None:
    """One training step, looked at from the outside."""
    first = next(model.parameters())
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    assert optimizer.param_groups[0]["params"][0] is first, "the optimizer holds the model's own"

    print("before backward: grad is", first.grad)
    loss = nn.BCELoss()(model(x), y)
    loss.backward()
    assert first.grad is not None
    once = first.grad.clone()
    print(f"after backward: the gradient's norm is {once.norm():.4f}")

    nn.BCELoss()(model(x), y).backward()
    assert taeda.allclose(first.grad, 2 * once), "a second backward adds to the first"
    print(f"after another: {first.grad.norm():.4f}, twice as much, for gradients add up")

    optimizer.zero_grad()
    nn.BCELoss()(model(x), y).backward()
    before = first.detach().clone()
    optimizer.step()
    assert first.grad is not None
    assert taeda.allclose(first, before - 0.1 * first.grad), "step() reads .grad, nothing else"
    optimizer.zero_grad()
    print("after zero_grad: grad is", first.grad)


def train(model: nn.Module, x: taeda.Tensor, y: taeda.Tensor, epochs: int = 200) -> float:
    """Plain stochastic gradient descent; returns the accuracy on the training data."""
    loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
    loss_fn = nn.BCELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for _ in range(epochs):
        for x_batch, y_batch in loader:
            y_pred = model(x_batch)
            loss = loss_fn(y_pred, y_batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with taeda.no_grad():
        return ((model(x) > 0.5) == (y > 0.5)).float().mean().item()


def main(epochs: int = 200) -> float:
    taeda.manual_seed(0)
    x, y = make_points()
    show_the_ties(make_model(), x, y)
    reached = train(make_model(), x, y, epochs)
    print(f"accuracy after {epochs} epochs: {reached:.2%}")
    return reached


if __name__ == "__main__":
    main()
