"""Comparison with PyTorch, op by op, over PyTorch's own database of sample inputs."""
