"""The version: the build reads this file, and so does the package."""

__version__ = "0.1.0"
