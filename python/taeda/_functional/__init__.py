"""Functions of the top level that are written in Python, imported on first use."""
