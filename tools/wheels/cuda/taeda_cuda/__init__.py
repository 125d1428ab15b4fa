"""Holds libtaeda_cuda.so, which :mod:`taeda.cuda` loads."""
