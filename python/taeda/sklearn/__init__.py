"""Networks as scikit-learn estimators: ``Classifier``, ``Regressor`` and ``Transformer``.

They go where scikit-learn's own go: into a Pipeline, a GridSearchCV, ``clone``, a pickle. They need
scikit-learn 1.6 or newer: ``pip install taeda[sklearn]``. `docs/sklearn.md` introduces them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taeda.sklearn._estimators import Classifier as Classifier
    from taeda.sklearn._estimators import Regressor as Regressor
    from taeda.sklearn._estimators import Transformer as Transformer

__all__ = ["Classifier", "Regressor", "Transformer"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'taeda.sklearn' has no attribute {name!r}")
    try:
        from sklearn.utils.validation import validate_data  # of scikit-learn 1.6
    except ImportError as error:
        raise ImportError(
            f"taeda.sklearn.{name} needs scikit-learn 1.6 or newer: pip install taeda[sklearn]"
        ) from error
    from taeda.sklearn import _estimators

    return getattr(_estimators, name)
