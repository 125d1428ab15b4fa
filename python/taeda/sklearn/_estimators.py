"""``Classifier``, ``Regressor`` and ``Transformer``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

import taeda
from taeda import nn
from taeda.nn import functional as F
from taeda.sklearn._base import Estimator

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from taeda.optim import Optimizer
    from taeda.training import Callback

__all__ = ["Classifier", "Regressor", "Transformer"]

_PARAMETERS = """
Args:
    module: the network: a Module, which is copied, so that training begins at its weights; or a
        class or function that makes one. Of this, ``n_features`` and ``n_outputs`` are given
        as the data have them, where it takes them and they are not set.
    loss: a class, function or object that compares outputs with targets.
    optimizer: a class of ``taeda.optim``.
    lr: the learning rate; None leaves it to the optimizer.
    epochs: how many passes ``fit`` makes; ``partial_fit`` makes one.
    batch_size: of training and predicting; None takes all samples at once.
    shuffle: whether each pass has a new order.
    validation: the share of samples that training holds out, for the "validation loss" of
        ``history_`` and for ``EarlyStopping``.
    callbacks: of ``taeda.training``; each ``fit`` works on copies of them.
    dtype: of the inputs and the module. "auto" computes in float32 where the inputs are that, and
        otherwise in float64, as scikit-learn's own estimators do; None leaves inputs and module
        as they are, as for indices.
    random_state: a number, or a NumPy generator, for the weights, orders and dropout. With a
        number, what happens is what happens after ``taeda.manual_seed`` of it. None draws from
        the default stream.
    parts: arguments for the module, the loss and the optimizer: ``module__hidden=20``,
        ``optimizer__weight_decay=0.1``.

Attributes:
    module_: the trained network.
    trainer_: the ``taeda.Trainer`` that trained it.
    history_: for each epoch, its losses.
    dtype_: of the inputs and the module, as ``fit`` has found it.
    n_features_in_, feature_names_in_: as in scikit-learn.
"""


class Classifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """A network that tells classes apart, as a scikit-learn estimator.

    By default the loss is cross entropy, of outputs of shape (samples, classes). With NLLLoss
    outputs are logarithms of probabilities; with BCEWithLogitsLoss and BCELoss, for two classes,
    one number for each sample.
    {parameters}    classes_: the labels, in the order of ``predict_proba``'s columns.

    >>> import numpy, taeda
    >>> def perceptron(n_features, n_outputs, hidden=16):
    ...     return taeda.nn.Sequential(
    ...         taeda.nn.Linear(n_features, hidden),
    ...         taeda.nn.ReLU(),
    ...         taeda.nn.Linear(hidden, n_outputs),
    ...     )
    >>> X = numpy.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> y = ["same", "different", "different", "same"]
    >>> found = taeda.sklearn.Classifier(perceptron, epochs=200, random_state=0).fit(X, y)
    >>> found.score(X, y)
    1.0
    >>> found.set_params(module__hidden=4).get_params()["module__hidden"]
    4
    """

    _default_loss = nn.CrossEntropyLoss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._one_output()
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train from the beginning.

        Args:
            X: inputs, of shape (samples, features) or more dimensions.
            y: labels of any kind, of shape (samples,).
            sample_weight: of each sample; what counts is their ratio to their mean.

        Raises:
            ValueError: the data do not pass scikit-learn's checks.
        """
        return self._fit(X, y, sample_weight, None, True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train for one more pass, through these data.

        Args:
            X, y: inputs and labels.
            classes: all labels that there are, in the first call; those of ``y`` by default.
            sample_weight: of each sample; their scale counts.

        Raises:
            ValueError: there are labels that are not among the classes.
        """
        return self._fit(X, y, sample_weight, classes, False)

    def _fit(self, X: Any, y: Any, sample_weight: Any, classes: Any, whole: bool) -> Self:
        new = whole or not hasattr(self, "trainer_")
        X, y = self._checked(X, new, y, multi_output=True)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if new:
            self.classes_ = numpy.unique(y if classes is None else classes)
        elif classes is not None and not numpy.array_equal(self.classes_, numpy.unique(classes)):
            raise ValueError("Classifier.partial_fit: the classes are not those of the first call")
        place = numpy.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        if (self.classes_[place] != y).any():
            strange = sorted(set(y.tolist()) - set(self.classes_.tolist()))
            raise ValueError(
                f"Classifier: y has the labels {strange}, which are not among the classes "
                f"{self.classes_.tolist()}"
            )
        one = self._one_output()
        if one and len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}, of {len(self.classes_)} classes; Classifier's default loss "
                "takes any number of them"
            )
        weights = self._weights(sample_weight, X, whole)
        x = self._tensor(X)
        target = taeda.tensor(place, dtype=x.dtype if one else taeda.int64)
        self._train(x, target, weights, 1 if one else len(self.classes_), whole)
        return self

    def _loss_is(self, *kinds: Any) -> bool:
        loss = self._default_loss if self.loss is None else self.loss
        return any(
            loss is kind or (isinstance(kind, type) and isinstance(loss, kind)) for kind in kinds
        )

    def _one_output(self) -> bool:
        return self._loss_is(
            nn.BCELoss,
            nn.BCEWithLogitsLoss,
            F.binary_cross_entropy,
            F.binary_cross_entropy_with_logits,
        )

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in float64, of shape (samples, classes).

        It follows from the outputs as the loss says; of a loss that is not known, by a softmax.
        """
        output = self._outputs(X).double()
        if not self._one_output():
            if self._loss_is(nn.NLLLoss, F.nll_loss):
                return output.exp().numpy()
            return output.softmax(1).numpy()
        if self._loss_is(nn.BCEWithLogitsLoss, F.binary_cross_entropy_with_logits):
            output = output.sigmoid()
        second = output.reshape(-1)
        return taeda.stack([1 - second, second], 1).numpy()

    def predict(self, X: Any) -> Any:
        """The label of the class that is most probable, of shape (samples,)."""
        check_is_fitted(self, "trainer_")
        return self.classes_[self.predict_proba(X).argmax(1)]


class Regressor(RegressorMixin, Estimator):  # type: ignore[misc]
    """A network that predicts numbers, as a scikit-learn estimator.

    By default the loss is the mean squared error.
    {parameters}
    >>> import numpy, taeda
    >>> X = numpy.linspace(-1, 1, 100).reshape(-1, 1)
    >>> line = taeda.sklearn.Regressor(taeda.nn.LazyLinear(1), lr=0.1, epochs=50, random_state=0)
    >>> line.fit(X, 3 * X[:, 0] + 1).predict([[2.0]]).round(2)
    array([7.])
    """

    _default_loss = nn.MSELoss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train from the beginning.

        Args:
            X: inputs, of shape (samples, features) or more dimensions.
            y: numbers, of shape (samples,) or (samples, outputs).
            sample_weight: of each sample; what counts is their ratio to their mean.

        Raises:
            ValueError: the data do not pass scikit-learn's checks.
        """
        return self._fit(X, y, sample_weight, True)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train for one more pass, through these data; the scale of weights counts."""
        return self._fit(X, y, sample_weight, False)

    def _fit(self, X: Any, y: Any, sample_weight: Any, whole: bool) -> Self:
        new = whole or not hasattr(self, "trainer_")
        X, y = self._checked(X, new, y, multi_output=True, y_numeric=True)
        weights = self._weights(sample_weight, X, whole)
        x = self._tensor(X)
        target = taeda.tensor(y, dtype=x.dtype if x.is_floating_point() else taeda.float32)
        if new:
            self._shape_of_y = tuple(target.shape[1:])
        self._train(x, target, weights, target.size(1) if target.dim() > 1 else 1, whole)
        return self

    def predict(self, X: Any) -> Any:
        """The outputs in float64, of the shape of ``y`` in training."""
        output = self._outputs(X)
        return output.reshape(len(output), *self._shape_of_y).double().numpy()


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """A network whose outputs, or what a part of it computes, are features for other estimators.

    It is trained to reproduce its inputs, as an autoencoder, or to predict numbers. By default the
    loss is the mean squared error.
    {parameters}
    Beside the parameters above:
        part: the path of the submodule that ``transform`` applies to the inputs, such as
            ``"encoder"``; the whole module by default. With ``epochs=0`` a module stays as it is.
        supervised: predict the ``y`` that ``fit`` is given; by default it is ignored, as a Pipeline
            gives the labels to all of its steps.

    >>> import numpy, taeda
    >>> linear = taeda.nn.Linear
    >>> halves = taeda.nn.Sequential(linear(4, 2), linear(2, 4))
    >>> X = numpy.random.default_rng(0).normal(size=(50, 2)) @ numpy.ones((2, 4))
    >>> encoder = taeda.sklearn.Transformer(halves, part="0", random_state=0)
    >>> encoder.fit_transform(X).shape
    (50, 2)
    """

    _default_loss = nn.MSELoss

    def __init__(
        self,
        module: Any,
        *,
        part: str | None = None,
        supervised: bool = False,
        loss: Any = None,
        optimizer: type[Optimizer] = taeda.optim.Adam,
        lr: float | None = 0.01,
        epochs: int = 20,
        batch_size: int | None = 32,
        shuffle: bool = True,
        validation: float | None = None,
        callbacks: Iterable[Callback] = (),
        dtype: Any = "auto",
        random_state: Any = None,
        **parts: Any,
    ) -> None:
        super().__init__(
            module,
            loss=loss,
            optimizer=optimizer,
            lr=lr,
            epochs=epochs,
            batch_size=batch_size,
            shuffle=shuffle,
            validation=validation,
            callbacks=callbacks,
            dtype=dtype,
            random_state=random_state,
            **parts,
        )
        self.part = part
        self.supervised = supervised

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kept = ["float64", "float32"] if self.dtype in ("auto", None) else []
        tags.transformer_tags.preserves_dtype = kept
        tags.target_tags.required = self.supervised is True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train from the beginning.

        Args:
            X: inputs, of shape (samples, features) or more dimensions.
            y: numbers to predict, of shape (samples,) or (samples, outputs), if ``supervised``.

        Raises:
            ValueError: the data do not pass scikit-learn's checks.
        """
        return self._fit(X, y, True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Train for one more pass, through these data."""
        return self._fit(X, y, False)

    def _fit(self, X: Any, y: Any, whole: bool) -> Self:
        new = whole or not hasattr(self, "trainer_")
        if not self.supervised:
            x = target = self._tensor(self._checked(X, new))
        else:
            X, y = self._checked(X, new, y, multi_output=True, y_numeric=True)
            x = self._tensor(X)
            target = taeda.tensor(y, dtype=x.dtype if x.is_floating_point() else taeda.float32)
        self._train(x, target, None, target[0].numel(), whole)
        if new:
            example = self.trainer_.predict([(x[:1],)], model=self._part())
            self._n_features_out = example.numel()
        return self

    def _part(self) -> Any:
        return self.module_ if self.part is None else self.module_.get_submodule(self.part)

    def transform(self, X: Any) -> Any:
        """The features, of shape (samples, features); of more dimensions, flattened."""
        check_is_fitted(self, "trainer_")
        output = self._outputs(X, self._part())
        return output.reshape(len(output), -1).numpy()


for _kind in (Classifier, Regressor, Transformer):
    # From Python 3.13 on, docstrings lose their indentation when they are compiled.
    _kind.__doc__ = inspect.cleandoc(_kind.__doc__ or "").replace("{parameters}", _PARAMETERS)
