"""Packages of scientific computing for PyTorch, run unchanged in processes of their own.

Each test needs its package, and compares with what can be computed by hand.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import textwrap

import numpy as np
import pytest


def run(package, program, folder):
    """The numbers that a program prints under the drop-in, if its package is installed."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "taeda.torch", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def test_torchdiffeq_solves_and_differentiates(tmp_path):
    program = """
        import torch
        from torchdiffeq import odeint, odeint_adjoint

        class Decay(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.rate = torch.nn.Parameter(torch.tensor(-0.5, dtype=torch.float64))

            def forward(self, t, y):
                return self.rate * y

        times = torch.tensor([0.0, 2.0], dtype=torch.float64)
        for solve in (odeint, odeint_adjoint):
            decay, start = Decay(), torch.ones(1, dtype=torch.float64, requires_grad=True)
            end = solve(decay, start, times, rtol=1e-9, atol=1e-9)[-1]
            end.sum().backward()
            print(float(end), float(start.grad), float(decay.rate.grad))
    """
    e = np.exp(-1.0)
    assert run("torchdiffeq", program, tmp_path) == pytest.approx([e, e, 2 * e] * 2, rel=1e-6)


def test_gpytorch_regression(tmp_path):
    program = """
        import gpytorch, torch

        torch.set_default_dtype(torch.float64)

        class Model(gpytorch.models.ExactGP):
            def __init__(self, x, y, likelihood):
                super().__init__(x, y, likelihood)
                self.mean, self.kernel = gpytorch.means.ZeroMean(), gpytorch.kernels.RBFKernel()

            def forward(self, x):
                return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

        x = torch.linspace(0, 1, 6)
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        model = Model(x, torch.sin(6 * x), likelihood)
        model.kernel.lengthscale, likelihood.noise = 0.3, 0.01
        loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(x), torch.sin(6 * x))
        loss.backward()
        print(float(loss))
        model.eval()
        at = model(torch.tensor([0.25]))
        print(float(at.mean), float(at.variance))
    """
    x = np.linspace(0, 1, 6)

    def kernel(a, b):
        return np.exp(-0.5 * ((a[:, None] - b) / 0.3) ** 2)

    y, noisy, at = np.sin(6 * x), kernel(x, x) + 0.01 * np.eye(6), np.array([0.25])
    inverse = np.linalg.inv(noisy)
    fit = y @ inverse @ y + np.linalg.slogdet(noisy)[1] + 6 * np.log(2 * np.pi)
    mean = kernel(at, x) @ inverse @ y
    variance = 1 - kernel(at, x) @ inverse @ kernel(x, at)
    expected = [fit / 12, mean.item(), variance.item()]
    assert run("gpytorch", program, tmp_path) == pytest.approx(expected, rel=1e-6)


def test_pyro_infers_a_coins_bias(tmp_path):
    program = """
        import pyro, torch
        import pyro.distributions as dist
        from pyro.infer import MCMC, NUTS, SVI, Trace_ELBO
        from pyro.infer.autoguide import AutoNormal

        tosses = torch.tensor([1.0] * 14 + [0.0] * 6)

        def model():
            bias = pyro.sample("bias", dist.Beta(2.0, 2.0))
            with pyro.plate("tosses", 20):
                pyro.sample("toss", dist.Bernoulli(bias), obs=tosses)

        pyro.set_rng_seed(0)
        guide = AutoNormal(model)
        step = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO(num_particles=4)).step
        for _ in range(200):
            step()
        print(float(guide.median()["bias"]))
        chain = MCMC(NUTS(model), num_samples=200, warmup_steps=100, disable_progbar=True)
        chain.run()
        print(float(chain.get_samples()["bias"].mean()))
    """
    assert run("pyro", program, tmp_path) == pytest.approx([16 / 24] * 2, abs=0.05)


def test_pyro_modules_state_their_parameters(tmp_path):
    program = """
        import pyro, torch
        from pyro.nn import PyroModule

        layer = PyroModule[torch.nn.Linear](2, 1)
        with pyro.poutine.trace(param_only=True) as seen:
            layer(torch.ones(1, 2))
        print(len(seen.trace.nodes))
    """
    assert run("pyro", program, tmp_path) == [2]


def test_zuko_flows_invert(tmp_path):
    program = """
        import torch, zuko

        torch.manual_seed(0)
        flow = zuko.flows.NSF(3, context=2, transforms=2, hidden_features=(8,))
        given = flow(torch.ones(2))
        x, log_prob = given.rsample_and_log_prob((5,))
        log_prob.sum().backward()
        print(float((given.log_prob(x) - log_prob).abs().max()))
        print(float((given.transform.inv(given.transform(x)) - x).abs().max()))
    """
    assert run("zuko", program, tmp_path) == pytest.approx([0, 0], abs=1e-4)


def test_message_passing_of_torch_geometric(tmp_path):
    program = """
        import torch
        from torch_geometric.nn import GCNConv

        edges = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]])
        layer, x = GCNConv(2, 2, bias=False), torch.eye(4, 2)
        torch.nn.init.eye_(layer.lin.weight)
        print(*layer(x, edges).flatten().tolist())
    """
    adjacency = np.eye(4)
    for source, target in ((0, 1), (1, 0), (1, 2), (2, 1), (3, 0)):
        adjacency[target, source] += 1
    scale = np.diag(adjacency.sum(1) ** -0.5)
    expected = (scale @ adjacency @ scale @ np.eye(4, 2)).ravel()
    assert run("torch_geometric", program, tmp_path) == pytest.approx(list(expected), abs=1e-6)


def test_e3nn_is_equivariant(tmp_path):
    """Its tensor products are graphs of torch.fx."""
    program = """
        import copy, pickle, torch
        from e3nn import nn, o3

        torch.manual_seed(0)
        irreps = o3.Irreps("4x0e+3x1o+2x2e")
        x, y = irreps.randn(5, -1), irreps.randn(5, -1)
        product = o3.FullyConnectedTensorProduct(irreps, irreps, "3x0e+2x1o+1x2e")
        rotation = o3.rand_matrix()
        before = irreps.D_from_matrix(rotation)
        after = product.irreps_out.D_from_matrix(rotation)
        out = product(x, y)
        print(float((product(x @ before.T, y @ before.T) - out @ after.T).abs().max() < 1e-4))
        for other in (copy.deepcopy(product), pickle.loads(pickle.dumps(product))):
            print(float(torch.equal(other(x, y), out)))
        out.square().sum().backward()
        print(float(product.weight.grad.abs().sum() > 0))
        gate = nn.Gate("2x0e", [torch.relu], "3x0e", [torch.sigmoid], "3x1o")
        print(*gate(gate.irreps_in.randn(2, -1)).shape)
        angles = o3.spherical_harmonics_alpha_beta([0, 1], torch.zeros(1), torch.zeros(1))
        print(*angles.flatten().abs().tolist())
    """
    got = run("e3nn", program, tmp_path)
    assert got[:6] == [1.0, 1.0, 1.0, 1.0, 2.0, 11.0]
    assert sum(x * x for x in got[6:]) == pytest.approx(1 / np.pi, rel=1e-5)
