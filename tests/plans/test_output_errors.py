"""Differences of outputs: numbers that are not finite, floors, and tolerances by element type."""

import json
from itertools import permutations
from math import inf, nan
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from go_rl.core import ExecutionError
from go_rl.plans.pipeline.output_errors import HALF, SINGLE, output_error, rounding_of
from go_rl.plans.pipeline.pipeline import PipelineRun


def _error(found, expected, dtype: Any = np.float32):
    return output_error("y", np.asarray(found, dtype), np.asarray(expected, dtype))


@pytest.mark.parametrize(
    ("found", "expected", "absolute", "relative"),
    [
        ([1, 2], [1, 2], 0, 0),
        ([1, 3], [1, 2], 1, 0.5),
        ([1000, 0.5], [1000, 0], 0.5, 0.5),  # the floor is a thousandth of 1000
        ([], [], 0, 0),
        (3, 2, 1, 0.5),
        ([nan, 1], [nan, 1], 0, 0),
        ([nan, 1], [1, 1], inf, inf),
        ([1, 1], [nan, 1], inf, inf),
        ([inf, 1], [inf, 1], 0, 0),
        ([-inf, 1], [inf, 1], inf, inf),
        ([1, 1], [inf, 1], inf, inf),
        ([inf, 1], [1, 1], inf, inf),
        ([inf, 100, 3], [inf, 1, 2], 99, 99),
        ([nan, 100, 3], [nan, 1, 2], 99, 99),
        ([inf, nan], [inf, nan], 0, 0),
        (nan, 1, inf, inf),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, ml_dtypes.bfloat16])
def test_differences_by_hand(found, expected, absolute, relative, dtype):
    error = _error(found, expected, dtype)
    assert (error.max_absolute, error.max_relative) == (absolute, relative)
    assert error.is_finite == bool(np.isfinite(np.asarray(expected, np.float32)).all())


def test_truth_values_and_texts_differ_or_not():
    assert _error([True, False], [True, False], np.bool_).accepted()
    assert not _error(["a"], ["b"], np.object_).accepted()


def test_other_shapes_and_types_are_refused():
    for found, said in ((np.zeros(3), r"float64 \[3\]"), (np.zeros(2, "f"), r"float32 \[2\]")):
        with pytest.raises(ExecutionError, match=rf"'y' is {said}; the whole model makes float64"):
            output_error("y", found, np.zeros(2))


def _run(*outputs):
    return PipelineRun((), 1.0, None, outputs, 1.0)


def test_an_output_that_is_not_finite_is_rejected_in_any_order():
    errors = _error([1], [1]), _error([nan], [1]), _error([1.5], [1])
    for order in permutations(errors):
        run = _run(*order)
        assert run.max_relative_error == inf
        assert run.accepted() is run.accepted(0.9) is False
    assert _run(errors[0], errors[2]).accepted(0.5) is True


def test_json_has_null_for_an_infinite_difference_and_a_verdict():
    document = json.loads(json.dumps(_run(_error([nan], [1])).to_json(0.5), allow_nan=False))
    assert document["outputs"] == [
        {"output": "y", "max_absolute": None, "max_relative": None, "is_finite": True,
         "tolerance": 0.5, "accepted": False}
    ]  # fmt: skip
    assert (document["max_relative_error"], document["accepted"]) == (None, False)
    assert _run(_error([1], [1])).to_json()["accepted"] is True
    unknown = PipelineRun((), 1.0, None, None, None).to_json()
    assert unknown["outputs"] is unknown["max_relative_error"] is unknown["accepted"] is None


def test_the_coarsest_element_type_says_what_passes_for_rounding():
    assert rounding_of({"FLOAT"}) == rounding_of({"DOUBLE", "INT64"}) == rounding_of(()) == SINGLE
    assert rounding_of({"FLOAT", "FLOAT16"}) == HALF["FLOAT16"]
    assert rounding_of({"FLOAT16", "BFLOAT16"}) == HALF["BFLOAT16"]
    for name, dtype in (("FLOAT16", np.float16), ("BFLOAT16", ml_dtypes.bfloat16)):
        expected = np.linspace(-1, 1, 101).astype(dtype)
        eps = float(ml_dtypes.finfo(dtype).eps)
        for factor, accepted in ((1 + eps, True), (1 + 30 * eps, False)):
            found = (expected.astype(np.float32) * factor).astype(dtype)
            assert output_error("y", found, expected, HALF[name]).accepted() is accepted
