"""The errors of taeda's kernels and of PyTorch's, each beside references of more digits."""
