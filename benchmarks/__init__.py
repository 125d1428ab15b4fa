"""Side by side with PyTorch: `python -m benchmarks --help`."""
