"""An LSTM learns a text letter by letter, then writes some of its own."""

import torch
import torch.nn as nn

torch.manual_seed(3)

text = (
    "the pine stood on the hill and the wind went over the hill and through the pine. "
    "in the night the wind was still, and the pine was still, and the hill slept on. "
) * 4
letters = sorted(set(text))
index = {c: i for i, c in enumerate(letters)}
data = torch.tensor([index[c] for c in text])


class CharRNN(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.LSTM(hidden, hidden, num_layers=2, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, x, state=None):
        output, state = self.rnn(self.encoder(x), state)
        return self.decoder(output), state


model = CharRNN(len(letters), 48)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
length, batch = 32, 8

for step in range(60):
    starts = torch.randint(0, len(data) - length - 1, (batch,))
    x = torch.stack([data[s : s + length] for s in starts])
    y = torch.stack([data[s + 1 : s + length + 1] for s in starts])
    scores, _ = model(x)
    loss = criterion(scores.reshape(-1, len(letters)), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 15 == 14:
        print(f"step {step} loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    written, state = ["t"], None
    x = torch.tensor([[index["t"]]])
    for _ in range(40):
        scores, state = model(x, state)
        x = scores[:, -1].argmax(dim=1, keepdim=True)
        written.append(letters[x.item()])
print(f"written: {len(''.join(written))} letters")
