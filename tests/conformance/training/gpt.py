"""A small GPT (Radford et al., 2019) with dropout, tied embeddings and AdamW."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, size, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        batch, length, size = x.shape
        q, k, v = self.qkv(x).split(size, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.drop(self.out(y.transpose(1, 2).reshape(batch, length, size)))


class Block(nn.Module):
    def __init__(self, size, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = Attention(size, heads, dropout)
        self.feed = nn.Sequential(
            nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size), nn.Dropout(dropout)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary, length, size, heads, layers, dropout):
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, size), nn.Embedding(length, size)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([Block(size, heads, dropout) for _ in range(layers)])
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, vocabulary, bias=False)
        self.token.weight = self.head.weight
        self.apply(self.start)
        for name, parameter in self.named_parameters():
            if name.endswith(("out.weight", "feed.2.weight")):
                nn.init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * layers))

    def start(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, 0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens, targets):
        x = self.drop(self.token(tokens) + self.place(torch.arange(tokens.shape[1])))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


torch.manual_seed(0)
text = torch.cumsum(torch.randint(1, 4, (4000,)), 0) % 27
model = GPT(27, 32, 32, 4, 2, 0.1)
decay = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
    lr=3e-3, betas=(0.9, 0.95),
)  # fmt: skip
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
losses = []
for _ in range(50):
    starts = torch.randint(0, 4000 - 33, (8,)).tolist()
    tokens = torch.stack([text[i : i + 32] for i in starts])
    targets = torch.stack([text[i + 1 : i + 33] for i in starts])
    loss = model(tokens, targets)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warmup.step()
    losses.append(loss.item())
