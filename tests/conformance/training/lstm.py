"""A language model with a two-layer LSTM on generated text."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.embed = nn.Embedding(size, 24)
        self.lstm = nn.LSTM(24, hidden, num_layers=2, dropout=0.2, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(hidden, size)

    def forward(self, tokens, state=None):
        output, state = self.lstm(self.embed(tokens), state)
        return self.head(self.drop(output)), state


torch.manual_seed(0)
steps = torch.randint(1, 4, (2000,))
text = (torch.cumsum(steps, 0) % 20).view(8, 250)
model = Model(20, 32)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
losses, state = [], None
for step in range(50):
    start = 12 * (step % 20)
    batch = text[:, start : start + 13]
    optimizer.zero_grad()
    if state is not None:
        state = tuple(part.detach() for part in state)
    logits, state = model(batch[:, :-1], state)
    loss = nn.functional.cross_entropy(logits.reshape(-1, 20), batch[:, 1:].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    losses.append(loss.item())
