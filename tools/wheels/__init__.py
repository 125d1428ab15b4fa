"""Builds and checks what a release consists of: the sdist, and wheels for manylinux.

``python -m tools.wheels --help`` lists what it does; docs/releasing.md says when to do it.
"""
