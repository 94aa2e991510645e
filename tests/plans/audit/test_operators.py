"""Operators and the kernels that onnxruntime makes of them; a profile that is none."""

import pytest
from onnx import TensorProto, helper

from go_rl.core import ExecutionError
from go_rl.plans.audit import Kernel, operator_fates, read_profile
from go_rl.plans.audit.profile import operator_runs

CPU = "CPUExecutionProvider"


def _graph(nodes, weights=()):
    """A graph of ``(type, name, reads, makes)``."""
    made = [helper.make_node(op, reads, makes, name=name) for op, name, reads, makes in nodes]
    held = [helper.make_tensor(name, TensorProto.FLOAT, (), [1.0]) for name in weights]
    return helper.make_graph(made, "g", [], [], held)


MODEL = _graph(
    [
        ("Conv", "conv", ["x", "w"], ["c"]),
        ("Relu", "relu", ["c"], ["r"]),
        ("Add", "constants", ["k", "w"], ["kk"]),
        ("Add", "add", ["r", "kk"], ["a"]),
        ("Identity", "same", ["a"], ["i"]),
        ("MatMul", "product", ["i", "w"], ["m"]),
        ("Add", "bias", ["m", "w"], ["y"]),
        ("Neg", "unread", ["m"], ["z"]),
    ],
    ["w", "k"],
)
OPTIMISED = _graph(
    [
        ("Conv", "r_nchwc", ["x", "packed"], ["token"]),
        ("ReorderOutput", "ReorderOutput", ["token"], ["r"]),
        ("Add", "add", ["r", "kk"], ["a"]),
        ("Gemm", "product/MatMulAddFusion", ["a", "w", "w"], ["y"]),
    ],
    ["w", "kk", "packed"],
)


def test_an_operator_is_in_the_kernel_whose_results_need_it():
    fates = operator_fates(MODEL, OPTIMISED)
    assert fates.kernels == {0: (0,), 1: (0,), 3: (2,), 4: (3,), 5: (3,), 6: (3,)}
    assert fates.joined == {0: [0, 1], 2: [3], 3: [4, 5, 6]}
    assert fates.folded == {2}
    assert fates.removed == {7}


def test_what_ran_is_found_by_name_and_type_or_by_type_and_number():
    model = _graph(
        [
            ("Relu", "", ["x"], ["a"]),
            ("Neg", "neg", ["a"], ["b"]),
            ("Relu", "", ["b"], ["c"]),
            ("Neg", "absent", ["c"], ["y"]),
        ]
    )
    profile = [
        Kernel("Relu_7", "Relu", CPU, 1, 5),
        Kernel("neg", "Neg", CPU, 2, 5),
        Kernel("Relu_2", "Relu", "CUDAExecutionProvider", 1, 5),
        Kernel("absent", "Abs", CPU, 1, 5),
    ]
    runs = operator_runs(model, model, profile)
    assert [[kernel.name for kernel in runs.of(n)] for n in range(4)] == [
        ["Relu_2"], ["neg"], ["Relu_7"], [],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("[{", r"is no whole profile of onnxruntime .*session.end_profiling\(\)"),
        ("{}", "is a list of events"),
        ("[]", "holds no kernel; set enable_profiling"),
    ],
)
def test_what_is_no_profile_is_said(tmp_path, text, words):
    path = tmp_path / "p.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ExecutionError, match=words):
        read_profile(path)
