"""Result types of the ``ai.onnx.ml`` operators: what scikit-learn's exporters write.

ONNX's own inference leaves these open. A map from keys to numbers has the type of a tensor
of its values, one a key; a sequence of maps (`ZipMap`) that of a tensor with a row a map.

Source: the operator specification of ONNX (``docs/Operators-ml.md``), and ONNX Runtime where it is
silent: two columns of scores for two classes, even from one column of coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import onnx
from onnx import TensorProto

from go_rl.graphs.readers.onnx.shapes.rule import (
    Attributes,
    Inputs,
    Result,
    Rule,
    Shape,
    reshaped,
    retyped,
    types_by,
)
from go_rl.graphs.readers.onnx.values import static_shape
from go_rl.graphs.tables import by_name

ML_DOMAIN = "ai.onnx.ml"


def ml_result_types(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Return the result types of an ``ai.onnx.ml`` node; empty when not known."""
    rule = _RULES.get(node.op_type)
    first = types[node.input[0]] if node.input and node.input[0] else None
    if rule is None or first is None or static_shape(first) is None:
        return {}
    return types_by(rule, node, types)


def rows(shape: Shape) -> int:
    """Return how many samples a feature tensor has; one without a batch axis is one sample."""
    return shape[0] if len(shape) > 1 else 1


def class_count(attributes: Attributes) -> int:
    """Return how many labels a classifier knows."""
    names = ("classlabels_ints", "classlabels_int64s", "classlabels_strings")
    return max(len(attributes.get(name, ())) for name in names)


def _label(attributes: Attributes) -> int:
    return TensorProto.STRING if attributes.get("classlabels_strings") else TensorProto.INT64


def _classified(attributes: Attributes, x: Result, scores: int) -> Sequence[Result]:
    """Labels and scores; two classes have two columns of scores."""
    columns = 2 if scores == 1 and class_count(attributes) == 2 else scores
    samples = rows(x[1])
    return (_label(attributes), (samples,)), (TensorProto.FLOAT, (samples, columns))


def _linear_classifier(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    features = inputs[0][1][-1]
    return _classified(attributes, inputs[0], len(attributes["coefficients"]) // features)


def _tree_classifier(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    return _classified(attributes, inputs[0], class_count(attributes))


def _svm_classifier(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    """One column a class with probabilities or a linear model, else one a pair of classes."""
    classes = class_count(attributes)
    paired = not attributes.get("prob_a") and attributes.get("vectors_per_class")
    return _classified(attributes, inputs[0], classes * (classes - 1) // 2 if paired else classes)


def _regressor(count: str) -> Rule:
    """A row whose length is the attribute ``count``, else 1."""

    def rule(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
        targets = int(attributes.get(count, 1))
        return [(TensorProto.FLOAT, (rows(inputs[0][1]), targets))]

    return rule


def _extracted(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    (element, shape), (_, indices) = inputs
    before = shape[:-1] if len(shape) > 1 else (1,)
    return [(element, (*before, prod(indices)))]


def _encoded(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    """`LabelEncoder`: the type of its values; of version 1, the other of text and numbers."""
    if "values_tensor" in attributes:
        element = attributes["values_tensor"].data_type
    elif attributes.get("values_strings"):
        element = TensorProto.STRING
    elif attributes.get("values_floats"):
        element = TensorProto.FLOAT
    elif attributes.get("values_int64s"):
        element = TensorProto.INT64
    else:
        return _mapped(attributes, inputs)
    return [(element, inputs[0][1])]


def _mapped(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    text = inputs[0][0] == TensorProto.STRING
    return [(TensorProto.INT64 if text else TensorProto.STRING, inputs[0][1])]


def _vectorized(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    names = ("string_vocabulary", "int64_vocabulary")
    return [(inputs[0][0], (1, max(len(attributes.get(n, ())) for n in names)))]


def _cast_map(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    to = attributes.get("cast_to", b"TO_FLOAT")
    elements = {b"TO_STRING": TensorProto.STRING, b"TO_INT64": TensorProto.INT64}
    sparse = attributes.get("map_form", b"DENSE") == b"SPARSE"
    keys = int(attributes["max_map"]) if sparse else prod(inputs[0][1])
    return [(elements.get(to, TensorProto.FLOAT), (1, keys))]


def _joined_features(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    return [(TensorProto.FLOAT, (rows(inputs[0][1]), sum(attributes["inputdimensions"])))]


_RULES: dict[str, Rule] = by_name(
    {
        "ArrayFeatureExtractor": _extracted,
        "Imputer ZipMap": lambda attributes, inputs: [inputs[0]],
        "CastMap": _cast_map,
        "DictVectorizer": _vectorized,
        "FeatureVectorizer": _joined_features,
        "LabelEncoder": _encoded,
        "LinearClassifier": _linear_classifier,
        "LinearRegressor": _regressor("targets"),
        "Normalizer Scaler": retyped(TensorProto.FLOAT),
        "SVMClassifier": _svm_classifier,
        "SVMRegressor": _regressor("no attribute counts them"),
        "TreeEnsemble": reshaped(lambda a, shape: (rows(shape), int(a.get("n_targets", 1)))),
        "TreeEnsembleClassifier": _tree_classifier,
        "TreeEnsembleRegressor": _regressor("n_targets"),
    }
)
