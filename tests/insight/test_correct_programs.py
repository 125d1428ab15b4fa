"""Loops as researchers write them: strict finds nothing in any of them."""

from __future__ import annotations

import copy

import pytest

import taeda
from taeda import nn, optim
from taeda.nn import functional as F
from taeda.utils.checkpoint import checkpoint

STEPS = 70  # so that most are made with the quick checks alone
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def mlp(inputs=4, outputs=1):
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs))


def data(*shape):
    return taeda.randn(*(shape or (8, 4)))


def adam(*modules):
    return optim.Adam([p for m in modules for p in m.parameters()], lr=0.01)


@program
def gradients_cleared_by_way_of_data(steps):
    net = mlp()
    opt = adam(net)
    for _ in range(steps):
        for p in net.parameters():
            if p.grad is not None:
                p.grad.data.zero_()
        net(data()).square().mean().backward()
        opt.step()


@program
def reptile(steps):
    net = mlp()
    opt = adam(net)
    for _ in range(steps):
        fast = copy.deepcopy(net)
        inner = optim.SGD(fast.parameters(), lr=0.05)
        for _ in range(3):
            inner.zero_grad()
            fast(data()).square().mean().backward()
            inner.step()
        for p, q in zip(net.parameters(), fast.parameters(), strict=True):
            if p.grad is None:
                p.grad = taeda.zeros_like(p)
            p.grad.data.copy_(p.data - q.data)
        opt.step()


@program
def evolution_strategy(steps):
    net = mlp()
    opt = adam(net)
    for _ in range(steps):
        with taeda.no_grad():
            for p in net.parameters():
                noise = taeda.randn_like(p)
                p.grad = noise if p.grad is None else p.grad.copy_(noise)
        opt.step()


@program
def gradient_penalty(steps):
    critic = mlp()
    opt = adam(critic)
    for _ in range(steps):
        x = data().requires_grad_()
        out = critic(x)
        (slope,) = taeda.autograd.grad(out.sum(), x, create_graph=True)
        opt.zero_grad()
        (out.mean() + 10 * (slope.norm(dim=1) - 1).square().mean()).backward()
        opt.step()


@program
def contrastive(steps):
    net = mlp(outputs=8)
    opt = adam(net)
    for _ in range(steps):
        a, b = F.normalize(net(data()), dim=1), F.normalize(net(data()), dim=1)
        opt.zero_grad()
        F.cross_entropy(a @ b.T / 0.1, taeda.arange(8)).backward()
        opt.step()


@program
def ranking_of_all_pairs(steps):
    net = mlp()
    opt = adam(net)
    for _ in range(steps):
        score, y = net(data()).squeeze(1), data(8)
        better = (y[:, None] > y[None, :]).float()
        opt.zero_grad()
        F.binary_cross_entropy_with_logits(score[:, None] - score[None, :], better).backward()
        opt.step()


@program
def quantiles_of_returns(steps):
    net = mlp(outputs=8)
    opt = adam(net)
    for _ in range(steps):
        error = data(1, 8)[:, None, :] - net(data(1, 4))[:, :, None]
        opt.zero_grad()
        error.abs().mean().backward()
        opt.step()


@program
def quantile_regression(steps):
    net, q = mlp(outputs=5), taeda.linspace(0.1, 0.9, 5)
    opt = adam(net)
    for _ in range(steps):
        error = data(5, 1) - net(data(5, 4))
        opt.zero_grad()
        taeda.maximum(q * error, (q - 1) * error).mean().backward()
        opt.step()


@program
def q_learning(steps):
    net = mlp(outputs=3)
    target = copy.deepcopy(net).eval()
    opt = adam(net)
    for step in range(steps):
        with taeda.no_grad():
            value = data(8, 1) + 0.9 * target(data()).amax(1, keepdim=True)
        opt.zero_grad()
        chosen = net(data()).gather(1, taeda.randint(0, 3, (8, 1)))
        F.smooth_l1_loss(chosen, value).backward()
        opt.step()
        if step % 10 == 0:
            target.load_state_dict(net.state_dict())


@program
def actor_and_critic(steps):
    actor, critic = mlp(outputs=2), mlp()
    of_actor, of_critic = adam(actor), adam(critic)
    for _ in range(steps):
        x = data()
        policy = taeda.distributions.Categorical(logits=actor(x))
        advantage = data(8) - critic(x).squeeze(-1)
        loss = -(policy.log_prob(policy.sample()) * advantage.detach()).mean()
        of_actor.zero_grad()
        of_critic.zero_grad()
        (loss + advantage.square().mean()).backward()
        of_actor.step()
        of_critic.step()


@program
def mixed_precision_with_a_scaler(steps):
    net = mlp()
    opt, scaler = adam(net), taeda.amp.GradScaler("cpu", init_scale=2.0**60)  # it overflows first
    for _ in range(steps):
        opt.zero_grad()
        with taeda.autocast("cpu", dtype=taeda.float16):
            loss = net(data()).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()


@program
def line_search(steps):
    net, x = mlp(), data()
    opt = optim.LBFGS(net.parameters(), lr=0.1)

    def closure():
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    for _ in range(steps // 10):
        opt.step(closure)


@program
def layers_kept_in_evaluation_mode(steps):
    class Tuned(nn.Sequential):
        def train(self, mode=True):
            super().train(mode)
            self[1].eval()
            return self

    net = Tuned(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)).train()
    opt = adam(net)
    for _ in range(steps):
        opt.zero_grad()
        net(data()).square().mean().backward()
        opt.step()


@program
def moving_average_as_teacher(steps):
    net = mlp()
    teacher, opt = optim.swa_utils.AveragedModel(net).eval(), adam(net)
    for _ in range(steps):
        x = data()
        opt.zero_grad()
        (net(x) - teacher(x).detach()).square().mean().backward()
        opt.step()
        teacher.update_parameters(net)


@program
def meta_learning(steps):
    net = mlp()
    opt = adam(net)
    for _ in range(steps):
        weights, x = dict(net.named_parameters()), data()
        loss = taeda.func.functional_call(net, weights, (x,)).square().mean()
        grads = taeda.autograd.grad(loss, weights.values(), create_graph=True)
        fast = {n: w - 0.1 * g for (n, w), g in zip(weights.items(), grads, strict=True)}
        opt.zero_grad()
        taeda.func.functional_call(net, fast, (x,)).square().mean().backward()
        opt.step()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(reentrant):
    def checkpointed(steps):
        first, second = nn.Linear(4, 8), nn.Linear(8, 1)
        opt = adam(first, second)
        for _ in range(steps):
            opt.zero_grad()
            hidden = checkpoint(first, data().requires_grad_(), use_reentrant=reentrant)
            second(hidden).square().mean().backward()
            opt.step()

    with taeda.strict():
        checkpointed(STEPS)


@program
def sparse_and_dense(steps):
    table, head = nn.Embedding(10, 4, sparse=True), nn.Linear(4, 1)
    of_table, of_head = optim.SparseAdam(table.parameters()), adam(head)
    for _ in range(steps):
        of_table.zero_grad()
        of_head.zero_grad()
        head(table(taeda.randint(0, 10, (8,)))).square().mean().backward()
        of_table.step()
        of_head.step()


@program
def truncated_backward_through_time(steps):
    net, head, state = nn.LSTM(4, 8), nn.Linear(8, 1), None
    opt = adam(net, head)
    for _ in range(steps):
        out, state = net(data(5, 2, 4), state)
        state = tuple(s.detach() for s in state)
        opt.zero_grad()
        head(out).square().mean().backward()
        opt.step()


@program
def sharpness_aware(steps):
    net = mlp()
    opt = adam(net)
    for _ in range(steps):
        x, moves = data(), []
        opt.zero_grad()
        net(x).square().mean().backward()
        with taeda.no_grad():
            for p in net.parameters():
                moves.append(0.05 * p.grad / (p.grad.norm() + 1e-12))
                p.add_(moves[-1])
        opt.zero_grad()
        net(x).square().mean().backward()
        with taeda.no_grad():
            for p, move in zip(net.parameters(), moves, strict=True):
                p.sub_(move)
        opt.step()


@program
def layers_frozen_in_turns(steps):
    net = mlp()
    opt = adam(net)
    for step in range(steps):
        net[0].requires_grad_(step % 2 == 0)
        opt.zero_grad()
        net(data()).square().mean().backward()
        opt.step()


@pytest.mark.parametrize("every", [None, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_found(name, every):
    taeda.manual_seed(0)
    with taeda.strict(every=every):
        PROGRAMS[name](STEPS)
