"""A neural ODE learns a spiral, with gradients from the adjoint equation."""

import torch
import torch.nn as nn

torch.manual_seed(9)
times = torch.linspace(0.0, 5.0, 26)
truth = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


def rk4(f, y, t, dt):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt / 2 * k1)
    k3 = f(t + dt / 2, y + dt / 2 * k2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class Adjoint(torch.autograd.Function):
    """Solve forward without a graph; solve the adjoint equation backward in time."""

    @staticmethod
    def forward(ctx, func, y0, t, *params):
        ctx.func, ctx.params = func, params
        ys = [y0]
        with torch.no_grad():
            for i in range(len(t) - 1):
                ys.append(rk4(func, ys[-1], t[i], t[i + 1] - t[i]))
        ys = torch.stack(ys)
        ctx.save_for_backward(t, ys)
        return ys

    @staticmethod
    def backward(ctx, grad):
        t, ys = ctx.saved_tensors
        adjoint = grad[-1]
        sums = [torch.zeros_like(p) for p in ctx.params]
        for i in range(len(t) - 1, 0, -1):
            with torch.enable_grad():
                y = ys[i - 1].detach().requires_grad_(True)
                end = rk4(ctx.func, y, t[i - 1], t[i] - t[i - 1])
            first, *rest = torch.autograd.grad(end, (y, *ctx.params), adjoint)
            adjoint = first + grad[i - 1]
            sums = [a + b for a, b in zip(sums, rest)]  # noqa: B905
        return None, adjoint, None, *sums


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


with torch.no_grad():
    path = [torch.tensor([[2.0, 0.0]])]
    for i in range(len(times) - 1):
        path.append(rk4(lambda t, y: y**3 @ truth, path[-1], times[i], times[i + 1] - times[i]))
    path = torch.stack(path)

func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=2e-3)
for step in range(40):
    starts = torch.randperm(len(times) - 6)[:8]
    y0 = path[starts].requires_grad_(True)
    wanted = torch.stack([path[starts + k] for k in range(6)])
    optimizer.zero_grad()
    ys = Adjoint.apply(func, y0, times[:6], *func.parameters())
    loss = (ys - wanted).abs().mean()
    loss.backward()
    optimizer.step()
    if step % 8 == 7:
        print(f"step {step} loss {loss.item():.4f} adjoint {y0.grad.norm().item():.4f}")
