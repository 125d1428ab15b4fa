"""Whole training steps."""

from __future__ import annotations

from benchmarks.cases.table import case


def step_of(fw, model, optimizer, x, labels):
    criterion = fw.nn.CrossEntropyLoss()

    def run():
        loss = criterion(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return run


@case("training", "digits network: one step, batch of 32")
def digits_step(fw):
    nn = fw.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 16, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    optimizer = fw.optim.AdamW(model.parameters(), lr=2e-3)
    return step_of(fw, model, optimizer, fw.rand(32, 1, 8, 8), fw.randint(0, 10, (32,)))


@case("training", "perceptron 784-256-10: one step, batch of 64")
def perceptron_step(fw):
    nn = fw.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return step_of(fw, model, optimizer, fw.rand(64, 784), fw.randint(0, 10, (64,)))


@case("training", "perceptron 64-128-10: one step, batch of 32")
def small_perceptron_step(fw):
    nn = fw.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = fw.optim.Adam(model.parameters(), lr=1e-3)
    x, labels = fw.rand(32, 64), fw.randint(0, 10, (32,))
    return step_of(fw, model, optimizer, x, labels)


@case("training", "LeNet on 28x28: one step, batch of 64")
def lenet_step(fw):
    nn = fw.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return step_of(fw, model, optimizer, fw.rand(64, 1, 28, 28), fw.randint(0, 10, (64,)))


@case("training", "residual network on 32x32: one step, batch of 16")
def resnet_step(fw):
    nn = fw.nn

    class Block(nn.Module):
        def __init__(self, inside, outside, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outside)
            self.short = nn.Sequential()
            if stride != 1 or inside != outside:
                self.short = nn.Sequential(
                    nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
                )

        def forward(self, x):
            y = self.bn2(self.conv2(fw.relu(self.bn1(self.conv1(x)))))
            return fw.relu(y + self.short(x))

    layers = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    width = 32
    for outside, stride in ((32, 1), (64, 2), (128, 2), (256, 2)):
        layers += [Block(width, outside, stride), Block(outside, outside, 1)]
        width = outside
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
    optimizer = fw.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return step_of(fw, model, optimizer, fw.rand(16, 3, 32, 32), fw.randint(0, 10, (16,)))


@case("training", "GPT, 4 layers of width 128: one step, batch of 8 x 64")
def gpt_step(fw):
    nn = fw.nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            n, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(c, dim=2)
            q, k, v = (z.view(n, t, self.heads, -1).transpose(1, 2) for z in (q, k, v))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(256, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(*(Block(128, 4) for _ in range(4)))
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 256)

        def forward(self, x):
            h = self.tokens(x) + self.places(fw.arange(x.shape[1]))
            return self.head(self.norm(self.blocks(h))).flatten(0, 1)

    model = GPT()
    optimizer = fw.optim.AdamW(model.parameters(), lr=1e-3)
    x, labels = fw.randint(0, 256, (8, 64)), fw.randint(0, 256, (8 * 64,))
    return step_of(fw, model, optimizer, x, labels)


@case("training", "LSTM language model, width 128: one step, batch of 16 x 32")
def lstm_step(fw):
    nn = fw.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(256, 128)
            self.lstm = nn.LSTM(128, 128, batch_first=True)
            self.head = nn.Linear(128, 256)

        def forward(self, x):
            return self.head(self.lstm(self.tokens(x))[0]).flatten(0, 1)

    model = Model()
    optimizer = fw.optim.Adam(model.parameters(), lr=1e-3)
    x, labels = fw.randint(0, 256, (16, 32)), fw.randint(0, 256, (16 * 32,))
    return step_of(fw, model, optimizer, x, labels)
