"""The models that benchmarks.cuda trains, of the library `torch`: taeda or PyTorch."""

from __future__ import annotations

from typing import Any


def gpt(torch: Any, layers: int, width: int, heads: int) -> Any:
    """The decoder of GPT-2, its output tied to its embedding."""
    nn, f = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.n1(x)).view(b, t, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(f.gelu(self.up(self.n2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(50304, width), nn.Embedding(1024, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)

        def forward(self, x):
            places = torch.arange(x.shape[1], device=x.device)
            h = self.norm(self.blocks(self.tokens(x) + self.places(places)))
            return f.linear(h, self.tokens.weight)

    return Model()


def resnet18(torch: Any) -> Any:
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, c: int, k: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(c, k, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(k, k, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(k), nn.BatchNorm2d(k)
            same = c == k and stride == 1
            self.short = (
                nn.Identity()
                if same
                else nn.Sequential(nn.Conv2d(c, k, 1, stride, bias=False), nn.BatchNorm2d(k))
            )

        def forward(self, x):
            y = self.norm1(self.conv1(x)).relu()
            return (self.norm2(self.conv2(y)) + self.short(x)).relu()

    blocks, c = [], 64
    for k in (64, 128, 256, 512):
        blocks += [Block(c, k, 1 if k == 64 else 2), Block(k, k, 1)]
        c = k
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, 1000),
    )
