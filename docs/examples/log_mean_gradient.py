"""The gradient of a composed function, with no network in sight.

For g(f(x)) with f = log and g = mean over 15 elements, d/dx = 1 / (15 x). The seed makes the
printed numbers the same on every machine.
"""

import taeda


def f(x: taeda.Tensor) -> taeda.Tensor:
    return taeda.log(x)


def g(x: taeda.Tensor) -> taeda.Tensor:
    return taeda.mean(x)


def main() -> taeda.Tensor:
    taeda.manual_seed(0)
    x = taeda.rand((3, 5), requires_grad=True)
    output = g(f(x))
    output.backward()
    assert x.grad is not None
    print(x.grad)
    assert taeda.allclose(x.grad, 1 / (15 * x.detach()))
    return x.grad


if __name__ == "__main__":
    main()
