"""scikit-learn, XGBoost and LightGBM estimators, fitted to noise and exported by skl2onnx.

Only the shapes of the trained estimators matter here: 200 rows of 12 features, three classes.
"""

# The generators are no dependencies: see `foreign_models.INSTALL`.
# pyright: reportMissingImports=false

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROWS, FEATURES = 200, 12
WORDS = ("red", "green", "blue", "violet")
Settings = Mapping[str, Any]
Fitted = tuple[Any, Any]
"""A fitted estimator and its example input, or skl2onnx's `initial_types`."""


def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, FEATURES)).astype(np.float32)
    y = x[:, :2].sum(axis=1) + 0.1 * rng.standard_normal(ROWS)
    return x, np.digitize(y, [-0.5, 0.5]), y.astype(np.float32)


_FOREST = {"n_estimators": 20, "max_depth": 6, "random_state": 0}
CLASSIFIERS: dict[str, tuple[str, Settings]] = {
    "logistic_regression": ("linear_model.LogisticRegression", {}),
    "linear_svc": ("svm.LinearSVC", {}),
    "svc_rbf": ("svm.SVC", {}),
    "svc_polynomial": ("svm.SVC", {"kernel": "poly"}),
    "decision_tree_classifier": ("tree.DecisionTreeClassifier", {"max_depth": 5}),
    "random_forest_classifier": ("ensemble.RandomForestClassifier", _FOREST),
    "extra_trees_classifier": ("ensemble.ExtraTreesClassifier", _FOREST),
    "gradient_boosting_classifier": ("ensemble.GradientBoostingClassifier", {"n_estimators": 20}),
    "ada_boost": ("ensemble.AdaBoostClassifier", {"n_estimators": 10}),
    "bagging": ("ensemble.BaggingClassifier", {"n_estimators": 5}),
    "mlp_classifier": (
        "neural_network.MLPClassifier",
        {"hidden_layer_sizes": (32, 16), "max_iter": 20},
    ),
    "k_neighbours_classifier": ("neighbors.KNeighborsClassifier", {}),
    "gaussian_naive_bayes": ("naive_bayes.GaussianNB", {}),
    "linear_discriminant": ("discriminant_analysis.LinearDiscriminantAnalysis", {}),
}
"""Class of scikit-learn and its settings, by name of the model."""
OTHERS: dict[str, tuple[str, Settings]] = {
    "linear_regression": ("linear_model.LinearRegression", {}),
    "svr": ("svm.SVR", {}),
    "random_forest_regressor": ("ensemble.RandomForestRegressor", _FOREST),
    "gradient_boosting_regressor": ("ensemble.GradientBoostingRegressor", {"n_estimators": 20}),
    "hist_gradient_boosting": ("ensemble.HistGradientBoostingRegressor", {"max_iter": 20}),
    "mlp_regressor": (
        "neural_network.MLPRegressor",
        {"hidden_layer_sizes": (32,), "max_iter": 20},
    ),
    "k_neighbours_regressor": ("neighbors.KNeighborsRegressor", {}),
    "gaussian_process": ("gaussian_process.GaussianProcessRegressor", {}),
    "k_means": ("cluster.KMeans", {"n_clusters": 4, "n_init": 1}),
    "pca": ("decomposition.PCA", {"n_components": 4}),
    "gaussian_mixture": ("mixture.GaussianMixture", {"n_components": 3}),
    "isolation_forest": ("ensemble.IsolationForest", {"n_estimators": 10, "random_state": 0}),
    "one_class_svm": ("svm.OneClassSVM", {}),
    "local_outlier_factor": ("neighbors.LocalOutlierFactor", {"novelty": True}),
    "k_bins": ("preprocessing.KBinsDiscretizer", {"n_bins": 4, "encode": "onehot-dense"}),
    "polynomial_features": ("preprocessing.PolynomialFeatures", {"degree": 2}),
    "robust_scaler": ("preprocessing.RobustScaler", {}),
}
"""The same of what learns numbers, or nothing."""


def _made(title: str, settings: Settings) -> Any:
    module, _, name = title.partition(".")
    return getattr(importlib.import_module(f"sklearn.{module}"), name)(**settings)


def _fitted(table: Mapping[str, tuple[str, Settings]], name: str) -> Fitted:
    x, labels, values = _data()
    return _made(*table[name]).fit(x, labels if table is CLASSIFIERS else values), x[:1]


def _of_others(name: str) -> Fitted:
    """Classifiers that combine classifiers."""
    x, labels, _ = _data()
    parts = {n: _made(*CLASSIFIERS[n]) for n in ("logistic_regression", "random_forest_classifier")}
    settings: dict[str, tuple[str, Settings]] = {
        "calibrated": (
            "calibration.CalibratedClassifierCV",
            {"estimator": parts["logistic_regression"], "cv": 2},
        ),
        "calibrated_svc": (
            "calibration.CalibratedClassifierCV",
            {"estimator": _made("svm.SVC", {}), "ensemble": False},
        ),
        "stacking": ("ensemble.StackingClassifier", {"estimators": list(parts.items())}),
        "voting": (
            "ensemble.VotingClassifier",
            {"estimators": list(parts.items()), "voting": "soft", "flatten_transform": False},
        ),
    }
    return _made(*settings[name]).fit(x, labels), x[:1]


def _scaled_pipeline() -> Fitted:
    from sklearn import feature_selection, linear_model, pipeline, preprocessing

    x, labels, _ = _data()
    steps = [
        preprocessing.StandardScaler(),
        preprocessing.Normalizer(),
        feature_selection.SelectKBest(k=6),
        preprocessing.Binarizer(threshold=0.1),
        linear_model.LogisticRegression(),
    ]
    return pipeline.make_pipeline(*steps).fit(x, labels), x[:1]


def _table() -> tuple[Any, np.ndarray]:
    import pandas

    x, labels, _ = _data()
    words = np.random.default_rng(1).choice(WORDS, (ROWS, 2))
    columns = {f"number{i}": x[:, i] for i in range(4)}
    columns |= {"colour": words[:, 0], "other": words[:, 1]}
    return pandas.DataFrame(columns), labels


def _mixed_columns(encoder: str, **settings: Any) -> Fitted:
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn import compose, ensemble, impute, pipeline, preprocessing

    table, labels = _table()
    numbers = [c for c in table if c.startswith("number")]
    numeric = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.MinMaxScaler())
    columns = compose.ColumnTransformer(
        [("numbers", numeric, numbers), ("words", _made(encoder, settings), ["colour", "other"])]
    )
    model = pipeline.make_pipeline(columns, ensemble.RandomForestClassifier(5, max_depth=4))
    types = [(c, FloatTensorType([None, 1])) for c in numbers]
    types += [(c, StringTensorType([None, 1])) for c in ("colour", "other")]
    return model.fit(table, labels), types


def _text() -> Fitted:
    from skl2onnx.common.data_types import StringTensorType
    from sklearn import feature_extraction, linear_model, pipeline

    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(ROWS)]
    model = pipeline.make_pipeline(
        feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression()
    )
    return model.fit(texts, rng.integers(0, 2, ROWS)), [("text", StringTensorType([None]))]


def _word_labels() -> Fitted:
    from sklearn.linear_model import LogisticRegression

    x, labels, _ = _data()
    return LogisticRegression().fit(x, np.array(WORDS)[labels]), x[:1]


def _dictionary() -> Fitted:
    from skl2onnx.common.data_types import DictionaryType, FloatTensorType, StringTensorType
    from sklearn.feature_extraction import DictVectorizer

    rows = [{word: float(i)} for i, word in enumerate(WORDS)]
    kind = DictionaryType(StringTensorType([1]), FloatTensorType([1]))
    return DictVectorizer(sparse=False).fit(rows), [("row", kind)]


def _save(fitted: Callable[[], Fitted], path: Path) -> None:
    from skl2onnx import to_onnx

    model, example = fitted()
    given = {"initial_types": example} if isinstance(example, list) else {"X": example}
    built = to_onnx(model, **given, target_opset={"": 21, "ai.onnx.ml": 3})
    path.write_bytes(built.SerializeToString())


def _boosted(path: Path) -> None:
    """XGBoost and LightGBM have converters of their own."""
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType

    x, classes, _ = _data()
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


def makers() -> dict[str, Callable[[Path], None]]:
    """Return what writes each model's file, by name."""
    fits: dict[str, Callable[[], Fitted]] = {
        **{name: partial(_fitted, CLASSIFIERS, name) for name in CLASSIFIERS},
        **{name: partial(_fitted, OTHERS, name) for name in OTHERS},
        **{n: partial(_of_others, n) for n in ("calibrated", "calibrated_svc", "stacking")},
        "voting": partial(_of_others, "voting"),
        "scaled_pipeline": _scaled_pipeline,
        "one_hot_columns": partial(
            _mixed_columns, "preprocessing.OneHotEncoder", sparse_output=False
        ),
        "ordinal_columns": partial(_mixed_columns, "preprocessing.OrdinalEncoder"),
        "tfidf_text": _text,
        "word_labels": _word_labels,
        "dictionary": _dictionary,
    }
    saved = {name: partial(_save, fitted) for name, fitted in fits.items()}
    return {**saved, "xgboost": _boosted, "lightgbm": _boosted}
