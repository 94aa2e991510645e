"""``ai.onnx.ml`` operators: result types by the specification, costs counted by hand."""

import pytest
from onnx import TensorProto
from onnx_models import array, shape_of, untyped_operator

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.onnx.reader import read_onnx_model

ML = "ai.onnx.ml"
FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING

pytestmark = pytest.mark.usefixtures("in_process")


def read_one(op, inputs, results=1, **attributes):
    """The graph of one operator on ``inputs``, (shape, element) pairs, and its node's number."""
    built = untyped_operator(op, inputs, results, ML, **attributes)
    graph = read_onnx_model(built, "m")
    return graph, graph.index["op"]


# Two trees on 3 features: a root with two leaves; a root with a leaf and an inner node.
TREES = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 0, 1, 0, 2, 0, 0],
    "nodes_values": [0.5] * 8,
    "nodes_modes": [
        "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF",
    ],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 3, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 0, 4, 0, 0],
}  # fmt: skip
MODES_BYTES = 3 * 10 + 5 * 4
TREE_BYTES = 8 * (5 * 8 + 4) + MODES_BYTES
TREE_RESULTS = {
    "target_treeids": [0, 0, 1, 1, 1],
    "target_nodeids": [1, 2, 1, 3, 4],
    "target_ids": [0] * 5,
    "target_weights": [1.0] * 5,
    "n_targets": 1,
}


FOREST_BYTES = TREE_BYTES + 5 * (3 * 8 + 4)
X = [([4, 3], FLOAT)]
SVM = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 3.0]}
VERSION_5 = {
    "n_targets": 2, "tree_roots": [0], "nodes_featureids": [0, 1], "nodes_truenodeids": [1, 0],
    "nodes_modes": array("modes", [0, 0], "uint8"), "nodes_trueleafs": [0, 1],
    "nodes_splits": array("splits", [0.5, 0.5], "float64"), "nodes_falsenodeids": [2, 1],
    "nodes_falseleafs": [1, 1], "leaf_targetids": [0, 1, 0],
    "leaf_weights": array("weights", [1.0, 2.0, 3.0], "float64"),
}  # fmt: skip
MODELS = {
    # operator, inputs, results, attributes; shape, bytes of results, FLOP, bytes of parameters
    "a forest down to its farthest leaves": (  # depths 1 and 2, a weight of each tree
        "TreeEnsembleRegressor", X, 1, {**TREES, **TREE_RESULTS},
        [4, 1], 4 * 4, 4 * (1 + 2 + 2), FOREST_BYTES,
    ),
    "labels and scores of a forest": (  # walk, weights, two sigmoids, the label
        "TreeEnsembleClassifier", X, 2,
        {**TREES, "class_treeids": [0, 0, 1, 1, 1], "class_nodeids": [1, 2, 1, 3, 4],
         "class_ids": [0] * 5, "class_weights": [1.0] * 5, "classlabels_int64s": [0, 1],
         "post_transform": "LOGISTIC"},
        [4], 4 * 8 + 4 * 2 * 4, 4 * (3 + 2 + 2 * 3 + 1), None,
    ),
    "a tree of version 5": (
        "TreeEnsemble", [([4, 3], TensorProto.DOUBLE)], 1, VERSION_5,
        [4, 2], 4 * 2 * 8, 4 * (2 + 1), 2 + 16 + 24 + (1 + 5 * 2 + 3) * 8,
    ),
    "two columns of two classes": (  # a string counts as one byte
        "LinearClassifier", X, 2,
        {"coefficients": [1.0] * 3, "intercepts": [0.0], "classlabels_strings": ["no", "yes"],
         "post_transform": "LOGISTIC"},
        [4], 4 * 1 + 4 * 2 * 4, 4 * (2 * 3 + 1 + 3), 3 * 4 + 4 + len("no") + len("yes"),
    ),
    "a linear regressor": (
        "LinearRegressor", X, 1,
        {"coefficients": [1.0] * 6, "intercepts": [0.0] * 2, "targets": 2},
        [4, 2], 32, 4 * (2 * 6 + 2), None,
    ),
    "votes by pairs of classes": (  # six pairs of four classes
        "SVMClassifier", X, 2,
        {**SVM, "support_vectors": [0.0] * 24, "coefficients": [0.0] * 24, "rho": [0.0] * 6,
         "vectors_per_class": [2, 2, 2, 2], "classlabels_ints": [0, 1, 2, 3]},
        [4], 4 * 8 + 4 * 6 * 4, 4 * (8 * (3 * 3 + 1) + 2 * 24 + 6 + 5), None,
    ),
    "a support vector regressor": (
        "SVMRegressor", X, 1,
        {**SVM, "kernel_type": "LINEAR", "support_vectors": [0.0] * 15, "coefficients": [0.0] * 5,
         "n_supports": 5, "rho": [0.0]},
        [4, 1], 16, 4 * (5 * 2 * 3 + 2 * 5 + 1), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_trained_models(name):
    op, inputs, results, attributes, shape, num_bytes, flops, parameters = MODELS[name]
    graph, node = read_one(op, inputs, results, **attributes)
    assert shape_of(graph, node) == shape
    assert (graph.output_bytes[node], graph.flops[node]) == (num_bytes, flops)
    assert parameters is None or graph.weight_bytes[node] == parameters
    assert graph.kind[node] == (OpKind.GATHER if op.startswith("Tree") else OpKind.MATMUL)


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("nodes_truenodeids", [9, 0, 0, 1, 0, 3, 0, 0],
         "a node of its trees leads to one that is not there"),
        ("nodes_falsenodeids", [0, 0, 0, 2, 0, 4, 0, 0], "a cycle, or branches that meet"),
        ("nodes_modes", ["BRANCH_LEQ"], "nodes_modes 1; all must have as many"),
    ],
)  # fmt: skip
def test_damaged_trees_are_refused(field, values, message):
    with pytest.raises(ReadError, match=message):
        read_one(
            "TreeEnsembleRegressor", [([4, 3], FLOAT)], **{**TREES, **TREE_RESULTS, field: values}
        )


PLAIN = [
    # operator, inputs, attributes, result shape, bytes of the result, FLOP
    ("ArrayFeatureExtractor", [([4, 9], FLOAT), ([1, 2], INT64)], {}, [4, 2], 32, 0),
    ("ArrayFeatureExtractor", [([9], FLOAT), ([5], INT64)], {}, [1, 5], 20, 0),
    ("Binarizer", [([4, 9], FLOAT)], {"threshold": 0.5}, [4, 9], 144, 36),
    ("CategoryMapper", [([4], STRING)], {"cats_strings": ["a"], "cats_int64s": [0]}, [4], 32, 0),
    ("FeatureVectorizer", [([4, 2], FLOAT), ([4, 3], FLOAT)], {"inputdimensions": [2, 3]}, [4, 5],
     80, 0),
    ("Imputer", [([4, 9], FLOAT)], {"imputed_value_floats": [0.0]}, [4, 9], 144, 72),
    ("LabelEncoder", [([4], STRING)], {"keys_strings": ["a"], "values_int64s": [1]}, [4], 32, 0),
    ("LabelEncoder", [([4], INT64)], {"keys_int64s": [1], "values_strings": ["a"]}, [4], 4, 0),
    ("LabelEncoder", [([4], INT64)], {"classes_strings": ["a", "b"]}, [4], 4, 0),
    ("Normalizer", [([4, 9], INT64)], {"norm": "L2"}, [4, 9], 144, 108),
    ("OneHotEncoder", [([4, 1], STRING)], {"cats_strings": ["a", "b", "c"]}, [4, 1, 3], 48, 12),
    ("Scaler", [([4, 9], INT64)], {"offset": [0.0], "scale": [1.0]}, [4, 9], 144, 72),
    ("ZipMap", [([4, 3], FLOAT)], {"classlabels_int64s": [0, 1, 2]}, [4, 3], 48, 0),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "shape", "num_bytes", "flops"), PLAIN)
def test_encoders_and_scalers(op, inputs, attributes, shape, num_bytes, flops):
    graph, node = read_one(op, inputs, **attributes)
    assert shape_of(graph, node) == shape
    assert graph.output_bytes[node] == num_bytes
    assert graph.flops[node] == flops
