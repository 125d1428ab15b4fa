"""A package, so that no other `tests` that some library has installed comes first."""
