"""scikit-learn, XGBoost and LightGBM estimators, fitted to noise and exported by skl2onnx.

Only the shapes of the trained estimators matter here: 200 rows of 12 features, three classes.
"""

# The generators are no dependencies: see `foreign_models.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROWS, FEATURES = 200, 12
WORDS = ("red", "green", "blue", "violet")
NUMBERS = [f"number{i}" for i in range(4)]
COLUMNS = ["colour", "other"]
Spec = Callable[[], Any]
"""Makes an object of scikit-learn."""


def _a(title: str, *parts: Any, **settings: Any) -> Spec:
    """An object by class or function of scikit-learn, of arguments that may be such objects."""

    def make() -> Any:
        module, _, name = title.rpartition(".")
        kind = getattr(importlib.import_module(f"sklearn.{module}"), name)
        given = {key: _plain(value) for key, value in settings.items()}
        return kind(*map(_plain, parts), **given)

    return make


def _plain(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [_plain(each) for each in given]
    return given() if callable(given) else given


_pipeline = partial(_a, "pipeline.make_pipeline")
_FOREST = {"n_estimators": 20, "max_depth": 6, "random_state": 0}
_LOGISTIC = _a("linear_model.LogisticRegression")
_FORESTED = _a("ensemble.RandomForestClassifier", **_FOREST)
_BOTH = [("logistic_regression", _LOGISTIC), ("random_forest_classifier", _FORESTED)]


def _mixed(encoder: Spec) -> Spec:
    """Columns of numbers and of words."""
    numeric = _pipeline(_a("impute.SimpleImputer"), _a("preprocessing.MinMaxScaler"))
    parts = [("numbers", numeric, NUMBERS), ("words", encoder, COLUMNS)]
    forest = _a("ensemble.RandomForestClassifier", 5, max_depth=4)
    return _pipeline(_a("compose.ColumnTransformer", parts), forest)


MODELS: dict[str, dict[str, Spec]] = {
    "classes": {
        "logistic_regression": _LOGISTIC,
        "linear_svc": _a("svm.LinearSVC"),
        "svc_rbf": _a("svm.SVC"),
        "svc_polynomial": _a("svm.SVC", kernel="poly"),
        "decision_tree_classifier": _a("tree.DecisionTreeClassifier", max_depth=5),
        "random_forest_classifier": _FORESTED,
        "extra_trees_classifier": _a("ensemble.ExtraTreesClassifier", **_FOREST),
        "gradient_boosting_classifier": _a("ensemble.GradientBoostingClassifier", n_estimators=20),
        "ada_boost": _a("ensemble.AdaBoostClassifier", n_estimators=10),
        "bagging": _a("ensemble.BaggingClassifier", n_estimators=5),
        "mlp_classifier": _a(
            "neural_network.MLPClassifier", hidden_layer_sizes=[32, 16], max_iter=20
        ),
        "k_neighbours_classifier": _a("neighbors.KNeighborsClassifier"),
        "gaussian_naive_bayes": _a("naive_bayes.GaussianNB"),
        "linear_discriminant": _a("discriminant_analysis.LinearDiscriminantAnalysis"),
        "calibrated": _a("calibration.CalibratedClassifierCV", estimator=_LOGISTIC, cv=2),
        "calibrated_svc": _a(
            "calibration.CalibratedClassifierCV", estimator=_a("svm.SVC"), ensemble=False
        ),
        "stacking": _a("ensemble.StackingClassifier", estimators=_BOTH),
        "voting": _a(
            "ensemble.VotingClassifier", estimators=_BOTH, voting="soft", flatten_transform=False
        ),
        "scaled_pipeline": _pipeline(
            _a("preprocessing.StandardScaler"), _a("preprocessing.Normalizer"),
            _a("feature_selection.SelectKBest", k=6), _a("preprocessing.Binarizer", threshold=0.1),
            _LOGISTIC,
        ),
    },
    "values": {
        "linear_regression": _a("linear_model.LinearRegression"),
        "svr": _a("svm.SVR"),
        "random_forest_regressor": _a("ensemble.RandomForestRegressor", **_FOREST),
        "gradient_boosting_regressor": _a("ensemble.GradientBoostingRegressor", n_estimators=20),
        "hist_gradient_boosting": _a("ensemble.HistGradientBoostingRegressor", max_iter=20),
        "mlp_regressor": _a("neural_network.MLPRegressor", hidden_layer_sizes=[32], max_iter=20),
        "k_neighbours_regressor": _a("neighbors.KNeighborsRegressor"),
        "gaussian_process": _a("gaussian_process.GaussianProcessRegressor"),
        "k_means": _a("cluster.KMeans", n_clusters=4, n_init=1),
        "pca": _a("decomposition.PCA", n_components=4),
        "gaussian_mixture": _a("mixture.GaussianMixture", n_components=3),
        "isolation_forest": _a("ensemble.IsolationForest", n_estimators=10, random_state=0),
        "one_class_svm": _a("svm.OneClassSVM"),
        "local_outlier_factor": _a("neighbors.LocalOutlierFactor", novelty=True),
        "k_bins": _a("preprocessing.KBinsDiscretizer", n_bins=4, encode="onehot-dense"),
        "polynomial_features": _a("preprocessing.PolynomialFeatures", degree=2),
        "robust_scaler": _a("preprocessing.RobustScaler"),
    },
    "table": {
        "one_hot_columns": _mixed(_a("preprocessing.OneHotEncoder", sparse_output=False)),
        "ordinal_columns": _mixed(_a("preprocessing.OrdinalEncoder")),
    },
    "text": {"tfidf_text": _pipeline(_a("feature_extraction.text.TfidfVectorizer"), _LOGISTIC)},
    "words": {"word_labels": _LOGISTIC},
    "dictionaries": {"dictionary": _a("feature_extraction.DictVectorizer", sparse=False)},
}  # fmt: skip
"""Estimators by what they are fitted to, of `_data`."""


def _data(kind: str) -> tuple[Any, Any, Any]:
    """Inputs, what is learned of them, and an example or skl2onnx's `initial_types`."""
    from skl2onnx.common import data_types as types

    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, FEATURES)).astype(np.float32)
    y = x[:, :2].sum(axis=1) + 0.1 * rng.standard_normal(ROWS)
    classes = np.digitize(y, [-0.5, 0.5])
    if kind == "table":
        import pandas

        words = np.random.default_rng(1).choice(WORDS, (ROWS, 2))
        columns = {name: x[:, i] for i, name in enumerate(NUMBERS)}
        columns |= {name: words[:, i] for i, name in enumerate(COLUMNS)}
        given = [(name, types.FloatTensorType([None, 1])) for name in NUMBERS]
        given += [(name, types.StringTensorType([None, 1])) for name in COLUMNS]
        return pandas.DataFrame(columns), classes, given
    if kind == "text":
        rng = np.random.default_rng(2)
        texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(ROWS)]
        return texts, rng.integers(0, 2, ROWS), [("text", types.StringTensorType([None]))]
    if kind == "dictionaries":
        row = types.DictionaryType(types.StringTensorType([1]), types.FloatTensorType([1]))
        return [{word: float(i)} for i, word in enumerate(WORDS)], None, [("row", row)]
    learned = {
        "classes": classes,
        "values": y.astype(np.float32),
        "words": np.array(WORDS)[classes],
    }
    return x, learned[kind], x[:1]


def _save(kind: str, spec: Spec, path: Path) -> None:
    from skl2onnx import to_onnx

    x, y, example = _data(kind)
    given = {"initial_types": example} if isinstance(example, list) else {"X": example}
    built = to_onnx(spec().fit(x, y), **given, target_opset={"": 21, "ai.onnx.ml": 3})
    path.write_bytes(built.SerializeToString())


def _boosted(path: Path) -> None:
    """XGBoost and LightGBM have converters of their own."""
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, classes, _ = _data("classes")
    types = [("x", FloatTensorType([None, FEATURES]))]
    if "xgboost" in path.stem:
        from xgboost import XGBClassifier

        model = XGBClassifier(n_estimators=20, max_depth=4).fit(x, classes)
        built = onnxmltools.convert_xgboost(model, initial_types=types)
    else:
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=20, max_depth=4, verbose=-1).fit(x, classes)
        built = onnxmltools.convert_lightgbm(model, initial_types=types, zipmap=False)
    path.write_bytes(built.SerializeToString())


def makers() -> dict[str, tuple[str, str, Callable[[Path], None]]]:
    """Return by name who wrote each model, its source (""), and what writes its file."""
    return {
        **{
            name: ("scikit-learn", "", partial(_save, kind, spec))
            for kind, specs in MODELS.items()
            for name, spec in specs.items()
        },
        **{name.lower(): (name, "", _boosted) for name in ("XGBoost", "LightGBM")},
    }
