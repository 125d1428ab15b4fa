"""REINFORCE balances a pole, on physics of our own."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(5)


class CartPole:
    """A pole on a cart that is pushed left or right; an episode ends when it falls."""

    def reset(self):
        self.state = (torch.rand(4, dtype=torch.float64) * 0.1 - 0.05).tolist()
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        pull = push - 0.05 * turn * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn]
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return self.state, 1.0, done


policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
env = CartPole()

for episode in range(25):
    state, log_probs, rewards = env.reset(), [], []
    for _ in range(80):
        probs = F.softmax(policy(torch.tensor(state, dtype=torch.float32)), dim=-1)
        action = torch.multinomial(probs, 1).item()
        log_probs.append(torch.log(probs[action]))
        state, reward, done = env.step(action)
        rewards.append(reward)
        if done:
            break
    returns, value = [], 0.0
    for reward in reversed(rewards):
        value = reward + 0.99 * value
        returns.insert(0, value)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    loss = torch.stack([-lp * r for lp, r in zip(log_probs, returns)]).sum()  # noqa: B905
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 5 == 4:
        print(f"episode {episode} steps {len(rewards)} loss {loss.item():.4f}")
