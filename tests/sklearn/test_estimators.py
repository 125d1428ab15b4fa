"""The estimators: what scikit-learn asks of them, and the numbers of an ordinary loop."""

from __future__ import annotations

import doctest
import inspect
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import taeda
from taeda import nn, optim
from taeda.training import EarlyStopping, Schedule
from tests.functional.cases import CASES, OPTIMIZERS, SPECIAL, F, Tied, assert_same, batches, train

sklearn = pytest.importorskip("sklearn", minversion="1.6")
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import make_blobs  # noqa: E402
from sklearn.exceptions import DataConversionWarning, NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from taeda.sklearn import Classifier, Regressor, Transformer, _estimators  # noqa: E402


def perceptron(n_features, n_outputs, hidden=32):
    return nn.Sequential(
        nn.Linear(n_features, hidden), nn.ReLU(), nn.Dropout(0.0), nn.Linear(hidden, n_outputs)
    )


def autoencoder(n_features, n_outputs, code=2):
    return nn.Sequential(nn.Linear(n_features, code), nn.Tanh(), nn.Linear(code, n_outputs))


def column(n_features):
    return nn.Sequential(nn.Linear(n_features, 1), nn.Sigmoid())


@pytest.fixture
def blobs():
    X, y = make_blobs(120, centers=3, n_features=4, random_state=0)
    return StandardScaler().fit_transform(X), y


EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
WHOLE = {"batch_size": None, "epochs": 60}


@pytest.mark.parametrize(
    ("estimator", "failing"),
    [
        (Classifier(perceptron), set()),
        (Regressor(perceptron), set()),
        (Classifier(perceptron, **WHOLE), set()),
        (Regressor(perceptron, **WHOLE, module__hidden=20), set()),
        (Classifier(column, loss=nn.BCELoss, **WHOLE), set()),
        # Weights are as good as repeated samples, but for rounding, which that check forbids.
        (Classifier(perceptron, dtype="float32"), {EQUIVALENCE}),
        (Regressor(perceptron, dtype="float32"), {EQUIVALENCE}),
        (Transformer(autoencoder, part="0"), set()),
        (Transformer(perceptron, part="0", supervised=True), set()),
    ],
)
def test_checks_of_scikit_learn(estimator, failing):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 40
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert set(failed) == failing, failed


def test_it_computes_in_the_precision_of_the_inputs(blobs):
    X, y = blobs
    kinds = [(numpy_dtype, dtype) for numpy_dtype in ("float64", "float32", "int64", "float16")
             for dtype in ("auto", "float32", "float64")]  # fmt: skip
    for given, dtype in kinds:
        Z = X.astype(given)
        found = Classifier(perceptron, dtype=dtype, epochs=1).fit(Z, y)
        wanted = ("float32" if given == "float32" else "float64") if dtype == "auto" else dtype
        assert found.dtype_ == next(found.module_.parameters()).dtype == getattr(taeda, wanted)
        codes = Transformer(autoencoder, part="0", dtype=dtype, epochs=1).fit_transform(Z)
        assert codes.dtype == wanted
        # What was trained does not change by later inputs of another kind.
        other = X.astype("float64" if given == "float32" else "float32")
        assert found.partial_fit(other, y).dtype_ == getattr(taeda, wanted)
        assert np.isfinite(found.predict_proba(other)).all()


def test_examples():
    failed, count = doctest.testmod(_estimators)
    assert not failed and count >= 12


def test_parameters_are_in_the_docstrings():
    for kind in (Classifier, Regressor, Transformer):
        said = inspect.getdoc(kind)
        assert "\nArgs:\n    module: the network" in said and "{" not in said.partition(">>>")[0]
    assert "\n    history_: for each" in inspect.getdoc(Classifier)
    assert "\n    classes_: the labels" in inspect.getdoc(Classifier)


def test_it_says_what_to_install():
    code = (
        "import sys, taeda; sys.modules['sklearn'] = None; assert 'sklearn' in dir(taeda)\n"
        "try: taeda.sklearn.Classifier\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Classifier needs scikit-learn" in done.stdout
    assert "pip install taeda[sklearn]" in done.stdout


# ---- the same numbers ---------------------------------------------------------------------------


class Flat(Tied):
    """Takes a column, as estimators are given no vectors."""

    def forward(self, x):
        return super().forward(x.reshape(-1))


def fitted(case, name, options, steps):
    data = batches(case)
    make = Flat if case.make is Tied else case.make
    X, y = (taeda.cat(parts).numpy() for parts in zip(*data, strict=True))
    outputs = case.make()(data[0][0]).shape[1]
    # Every class must be there for the network to have as many outputs as it has in the loop.
    assert set(y.tolist()) == set(range(outputs))
    made = Classifier(
        make,
        loss=F.cross_entropy,
        optimizer=getattr(optim, name),
        lr=None,
        epochs=steps // len(data),
        batch_size=len(data[0][0]),
        shuffle=False,
        dtype=None,
        random_state=2,
        **{f"optimizer__{option}": value for option, value in options.items()},
    ).fit(X.reshape(len(X), -1) if X.ndim == 1 else X, y)
    assert made.trainer_.updates == steps
    return made.module_.state_dict()


@pytest.mark.parametrize("network", CASES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_same_numbers_as_a_loop(name, network):
    case, options = CASES[network], OPTIMIZERS[name]
    assert_same(train(case, name, options), fitted(case, name, options, 100))


@pytest.mark.parametrize("name", SPECIAL)
def test_optimizers_with_needs_of_their_own(name):
    case, options = SPECIAL[name]
    assert_same(train(case, name, options), fitted(case, name, options, 100))


def test_seeds_and_partial_fits(blobs):
    def weights(estimator):
        return estimator.module_[0].weight

    whole = Classifier(perceptron, epochs=3, random_state=5).fit(*blobs)
    parts = Classifier(perceptron, random_state=5)
    state = taeda.get_rng_state()
    for _ in range(3):
        parts.partial_fit(*blobs)
        taeda.randn(1) if _ == 1 else None
    assert taeda.equal(weights(whole), weights(parts))
    assert len(parts.history_) == 3 and parts.history_ == whole.history_
    taeda.set_rng_state(state)
    taeda.manual_seed(5)
    assert taeda.equal(weights(whole), weights(Classifier(perceptron, epochs=3).fit(*blobs)))
    drawn = [Classifier(perceptron, random_state=np.random.RandomState(1)) for _ in range(2)]
    one, other = (weights(estimator.fit(*blobs)) for estimator in drawn)
    assert taeda.equal(one, other) and not taeda.equal(one, weights(whole))


# ---- as part of scikit-learn --------------------------------------------------------------------


def test_pipeline_search_clone_and_pickle(blobs):
    X, y = blobs
    y = np.array(["a", "b", "c"])[y]
    pipeline = make_pipeline(StandardScaler(), Classifier(perceptron, epochs=2, random_state=0))
    grid = {
        "classifier__module__hidden": [1, 16],
        "classifier__lr": [0.02],
        "classifier__optimizer": [optim.SGD, optim.Adam],
    }
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    best = search.best_estimator_[-1]
    assert best.module_[0].out_features == search.best_params_["classifier__module__hidden"] == 16
    assert search.best_params_["classifier__optimizer"] is optim.Adam and search.score(X, y) > 0.9
    other = pickle.loads(pickle.dumps(best))
    assert (other.predict_proba(X) == best.predict_proba(X)).all()
    for estimator in (other, best):
        estimator.partial_fit(X, y)
    assert (other.predict_proba(X) == best.predict_proba(X)).all()
    copied = clone(best)
    assert copied.get_params() == best.get_params() and not hasattr(copied, "module_")
    with pytest.raises(NotFittedError):
        copied.predict(X)
    assert "module__hidden=16" in repr(copied) and "epochs=2" in repr(copied)


def test_feature_names(blobs):
    pandas = pytest.importorskip("pandas")
    X, y = blobs
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    made = Classifier(perceptron, random_state=0).fit(table, y)
    assert list(made.feature_names_in_) == ["a", "b", "c", "d"] and made.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names should match"):
        made.predict(table.rename(columns={"a": "x"}))
    encoder = Transformer(autoencoder, part="0", module__code=3).set_output(transform="pandas")
    assert list(encoder.fit_transform(table).columns) == [f"transformer{i}" for i in range(3)]


def test_transformer(blobs):
    X, y = blobs
    features = Transformer(autoencoder, part="0", epochs=40, random_state=0)
    pipeline = make_pipeline(features, LogisticRegression()).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    assert features.history_[-1]["loss"] < 0.5 * features.history_[0]["loss"]
    net = autoencoder(4, 4)
    fixed = Transformer(net, epochs=0).fit(X)
    with taeda.no_grad():
        expected = net.double()(taeda.tensor(X))
    assert np.array_equal(fixed.transform(X), expected.numpy()) and fixed.module_ is not net
    targets = np.eye(3)[y]
    to_targets = Transformer(autoencoder, part="1", supervised=True, random_state=0).fit(X, targets)
    assert to_targets.module_[2].out_features == 3 and to_targets.transform(X).shape == (120, 4)
    images = Transformer(nn.Conv2d(1, 2, 3, padding=1), epochs=0).fit(np.ones((2, 1, 4, 4)))
    assert images.transform(np.ones((3, 1, 4, 4))).shape == (3, 32)
    assert len(features.partial_fit(X).history_) == 41


# ---- what is given ------------------------------------------------------------------------------


def test_sample_weights(blobs):
    X, y = blobs
    exact = Classifier(perceptron, **WHOLE, random_state=0)
    counts = np.random.RandomState(0).randint(0, 3, len(y))
    weighted = clone(exact).fit(X, y, sample_weight=5 * counts).predict_proba(X)
    repeated = clone(exact).fit(X.repeat(counts, 0), y.repeat(counts)).predict_proba(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-9)
    plain = clone(exact).fit(X, y).predict_proba(X)
    assert (clone(exact).fit(X, y, 2 * np.ones(120)).predict_proba(X) == plain).all()
    assert abs(weighted - plain).max() > 1e-3
    lines = Regressor(perceptron, **WHOLE, random_state=0, loss=F.l1_loss)
    pairs = np.stack([y, -y], 1)
    weighted = clone(lines).fit(X, pairs, counts).predict(X)
    repeated = clone(lines).fit(X.repeat(counts, 0), pairs.repeat(counts, 0)).predict(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="at least one non-zero"):
        exact.fit(X, y, sample_weight=np.zeros(120))
    with pytest.raises(TypeError, match="sample_weight takes a loss with a reduction"):
        Classifier(perceptron, loss=lambda out, y: F.cross_entropy(out, y)).fit(X, y, counts)


@pytest.mark.parametrize(
    ("module", "loss"),
    [
        (perceptron, nn.BCEWithLogitsLoss),
        (perceptron, F.binary_cross_entropy_with_logits),
        (column, nn.BCELoss),
        (lambda: nn.Sequential(nn.Linear(4, 2), nn.LogSoftmax(1)), nn.NLLLoss()),
        (nn.Linear(4, 2), partial(F.cross_entropy, label_smoothing=0.1)),
        (lambda: nn.Linear(4, 2), nn.CrossEntropyLoss),
    ],
)
def test_losses_and_probabilities(blobs, module, loss):
    X, y = blobs[0][blobs[1] < 2], blobs[1][blobs[1] < 2]
    made = Classifier(module, loss=loss, epochs=30, random_state=0, validation=0.2)
    made.fit(X, y, sample_weight=np.linspace(0.5, 1, len(y)))
    proba = made.predict_proba(X)
    assert made.score(X, y) > 0.9
    np.testing.assert_allclose(proba.sum(1), 1)
    assert -np.log(proba[np.arange(len(y)), y]).mean() == pytest.approx(
        made.trainer_.evaluate([(taeda.tensor(X), targets(made, y))])["loss"], abs=0.2
    )
    assert (made.classes_ == [0, 1]).all()


def targets(made, y):
    return taeda.tensor(y).double() if made._one_output() else taeda.tensor(y)


def test_kinds_of_modules(blobs):
    X, y = blobs
    lazy = Classifier(nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(3)), random_state=0)
    assert lazy.fit(X, y).score(X, y) > 0.9 and lazy.module_[0].in_features == 4
    net = perceptron(4, 3)
    before = net[0].weight.clone()
    warm = Classifier(net, epochs=1, optimizer=optim.SGD, lr=1e-6).fit(X, y)
    assert taeda.equal(net[0].weight, before)
    assert (warm.module_[0].weight - before).abs().max() < 1e-4
    images = Classifier(
        lambda n_outputs: nn.Sequential(nn.Flatten(), nn.LazyLinear(n_outputs)), random_state=0
    ).fit(X.reshape(-1, 2, 2), y)
    assert images.score(X.reshape(-1, 2, 2), y) > 0.9
    words = Regressor(
        lambda: nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(12, 1)),
        dtype=taeda.int64,
        epochs=100,
        random_state=0,
    )
    tokens = np.random.RandomState(0).randint(0, 5, (80, 3))
    assert words.fit(tokens, tokens.sum(1)).score(tokens, tokens.sum(1)) > 0.9
    assert words.predict(tokens).shape == (80,)
    pairs = Regressor(perceptron, random_state=0).fit(X, np.stack([y, 2 * y], 1))
    assert pairs.predict(X).shape == (120, 2)


def test_callbacks_and_validation(blobs):
    X, y = blobs
    stopping = EarlyStopping(patience=2, least=0.001)
    made = Classifier(
        perceptron,
        optimizer=optim.SGD,
        lr=0.3,
        epochs=50,
        validation=0.25,
        callbacks=[stopping, Schedule(partial(optim.lr_scheduler.StepLR, step_size=1, gamma=0.5))],
        random_state=0,
    )
    for _ in range(2):
        made.fit(X, y)
        assert 3 <= len(made.history_) < 50 and "validation loss" in made.history_[0]
        rate = made.trainer_.optimizer.param_groups[0]["lr"]
        assert rate == 0.3 * 0.5 ** len(made.history_)
    assert stopping.best is None  # a copy was used
    made.partial_fit(X, y)
    assert cross_val_score(made, X, y, cv=3).mean() > 0.9


def test_what_is_refused(blobs):
    X, y = blobs
    with pytest.raises(TypeError, match="no parameter 'hidden'"):
        Classifier(perceptron, hidden=3).fit(X, y)
    with pytest.raises(ValueError, match="Invalid parameter 'hidden'"):
        Classifier(perceptron).set_params(hidden=3)
    with pytest.raises(TypeError, match="'hiden'"):
        Classifier(perceptron, module__hiden=3).fit(X, y)
    with pytest.raises(ValueError, match="module__hidden is for a class or function"):
        Classifier(perceptron(4, 3), module__hidden=3).fit(X, y)
    with pytest.raises(TypeError, match="module must be a Module"):
        Classifier(dict).fit(X, y)
    with pytest.raises(ValueError, match="leaves none to train on"):
        Classifier(perceptron, validation=1.0).fit(X, y)
    with pytest.raises(TypeError, match="must return a tensor"):
        Regressor(Recurrent, epochs=0).fit(X, y).predict(X)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        Classifier(perceptron, loss=nn.BCELoss).fit(X, y)
    made = Classifier(perceptron).partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"labels \[7\], which are not among the classes"):
        made.partial_fit(X, np.where(y == 1, 7, y))
    with pytest.raises(ValueError, match="not those of the first call"):
        made.partial_fit(X, y, classes=[0, 1])
    with pytest.warns(DataConversionWarning):
        made.fit(X, y[:, None])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x), None
