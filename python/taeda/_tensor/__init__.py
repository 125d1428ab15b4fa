"""The methods, the printing and the type names of Tensor that are written in Python."""
