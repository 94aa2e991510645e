"""What users may say of a model besides its name: sizes, inputs, trips, weights."""

import inspect

import numpy as np
import onnx
import pytest
from onnx_models import parsed

from go_rl.core import ReadError
from go_rl.graphs.readers import load

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture
def symbolic(tmp_path):
    """``y = relu(x) + z`` with a dimension that an exporter named, and one that it did not."""
    made = parsed(
        """(float[unk__397,3] x, float[unk__397,?] z) => (float[unk__397,3] y) <float[] r>
        { r = Relu(x) y = Add(r, z) }"""
    )
    onnx.save(made, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


load_unchecked = inspect.unwrap(load)
"""As users call it: without the type checker that watches over tests."""


def dims(graph):
    return graph.meta["dims"]


def test_inputs_give_the_sizes_that_exporters_named(symbolic):
    told = load(symbolic, {"unk__397": 2, "z_1": 3})
    shaped = load(symbolic, inputs={"x": (2, 3), "z": (2, 3)})
    assert shaped.digest == told.digest
    assert dims(shaped) == dims(told) == {"unk__397": 2, "z_1": 3}
    given = {"unk__397": np.int64(2)}, {"z": [2, np.int64(3)]}
    assert dims(load_unchecked(symbolic, given[0], inputs=given[1])) == dims(told)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dims": 5}, "dims must be sizes by name"),
        ({"dims": {"batch": "8"}}, "dimension 'batch' must be a whole number >= 1, not '8'"),
        ({"dims": {"batch": True}}, "dimension 'batch' must be a whole number >= 1, not True"),
        ({"dims": {"batch": 10**30}}, "no more than 2\\^62"),
        ({"unknown": "skip"}, "unknown must be 'error' or 'bytes', not 'skip'"),
        ({"training": 1}, "training must be True, False, 'sgd' or 'adam', not 1"),
        ({"trip_count": "7"}, "trip_count must be a whole number >= 1, not '7'"),
        ({"trip_count": 3, "dims": {"trip_count": 4}},
         "trip_count is 3, and among the dims it is 4"),
        ({"micro_batches": 1, "dims": {"micro_batches": 4}},
         "micro_batches is 1, and among the dims it is 4"),
        ({"micro_batches": 0}, "micro_batches must be at least 1"),
        ({"micro_batches": "2"}, "micro_batches must be a whole number >= 1, not '2'"),
        ({"micro_batches": 2}, "micro_batches=2 splits .* ONNX is traced already"),
        ({"weights": 0}, r"weights must list positions of arguments, such as \(0, 2\), not 0"),
        ({"weights": (-1,)}, "weights must list positions of arguments, 0 or more, not -1"),
        ({"weights": (0,)}, "does not apply to ONNX"),
        ({"inputs": {"xx": (2, 3)}}, r"no input 'xx' \(it has: x, z\); did you mean 'x'"),
        ({"inputs": {"x": (2, 3, 4)}}, "input 'x' has 2 dimensions, not the 3 of 2x3x4"),
        ({"inputs": {"x": (2, 4)}},
         "input 'x', axis 1: its size is 3 in the file, and 4 was given"),
        ({"inputs": {"x": (2, 3), "z": (5, 3)}},
         "input 'z', axis 0: its size is 2 as dimension 'unk__397', and 5 was given"),
        ({"inputs": {"x": (2, 3)}},
         r"give --dim 'z_1=<size>', or whole shapes: --input 'x=<unk__397>x3' --input 'z="),
        ({"inputs": {"x": (2, 0)}}, "'x': the size of axis 1 must be at least 1"),
        ({"inputs": {"x": "2x3"}}, r"'x' must have a shape, such as .*not '2x3'"),
        ({"inputs": {"x": (2, "3")}},
         "'x': the size of axis 1 must be a whole number >= 1, not '3'"),
        ({"inputs": [("x", 3)]}, "inputs must be shapes by name"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(symbolic, options, message):
    with pytest.raises(ReadError, match=message):
        load_unchecked(symbolic, **options)


def test_what_is_no_name_of_a_model_is_refused():
    for thing in (5, None, b"m.onnx"):
        with pytest.raises(ReadError, match="a model is named by a file or module:function"):
            load_unchecked(thing)
    with pytest.raises(ReadError, match="cannot be read \\(File name too long\\)"):
        load("a" * 5000)
    with pytest.raises(ReadError, match="not a regular file"):
        load("/dev/null")
