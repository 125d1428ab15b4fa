"""A graph convolutional network labels the nodes of a graph from a few known ones."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)
nodes, classes, features = 150, 3, 16

labels = torch.arange(nodes) % classes
same = labels[:, None] == labels[None, :]
linked = torch.rand(nodes, nodes) < torch.where(same, 0.12, 0.01)
linked = torch.triu(linked, diagonal=1)
edges = (linked | linked.t() | torch.eye(nodes, dtype=torch.bool)).nonzero().t()
x = torch.randn(nodes, features) + F.one_hot(labels, features).float()


class GCNConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, edges):
        source, target = edges
        degree = torch.zeros(len(x)).index_add_(0, target, torch.ones(len(target)))
        norm = degree.rsqrt()
        norm = norm[source] * norm[target]
        messages = (x @ self.weight)[source] * norm.unsqueeze(1)
        out = torch.zeros(len(x), self.weight.size(1))
        return out.index_add(0, target, messages) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(features, 16)
        self.conv2 = GCNConv(16, classes)

    def forward(self, x, edges):
        x = F.relu(self.conv1(x, edges))
        x = F.dropout(x, 0.3, training=self.training)
        return self.conv2(x, edges)


print(f"edges: {edges.size(1)}")
known = torch.zeros(nodes, dtype=torch.bool)
known[torch.randperm(nodes)[:30]] = True
model = GCN()
optimizer = torch.optim.Adam(
    [
        {"params": model.conv1.parameters(), "weight_decay": 5e-3},
        {"params": model.conv2.parameters(), "weight_decay": 0.0},
    ],
    lr=2e-2,
)
for epoch in range(40):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, edges)[known], labels[known])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 9:
        model.eval()
        with torch.no_grad():
            right = (model(x, edges).argmax(1) == labels)[~known].float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {right:.3f}")
