"""Candidates of functions that are not tuned: they compute what the loops as they are compute."""

import numpy as np
import pytest

pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")

from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.tvm.codegen import CodeTarget, levels_here
from go_rl.tuning.tvm.light_candidates import light_candidates
from go_rl.tuning.tvm.space import scheduled

pytestmark = pytest.mark.skipif(not levels_here(), reason="not an x86-64 of level 2 or more")
LEVEL = "x86-64-v2"
"""Vectors of four numbers."""


def sums_of_squares(rows, columns):
    """Of [rows, columns] numbers, the sum of squares of each row."""
    tvm = import_tvm()
    te = tvm.te
    given = te.placeholder((rows, columns), name="given")
    squares = te.compute((rows, columns), lambda i, j: given[i, j] * given[i, j], name="squares")
    k = te.reduce_axis((0, columns), name="k")
    sums = te.compute((rows,), lambda i: te.sum(squares[i, k], axis=k), name="sums")
    function = te.create_prim_func([given, sums]).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


def transposed(rows, columns):
    """Of [rows, columns] numbers, twice the transpose."""
    tvm = import_tvm()
    te = tvm.te
    given = te.placeholder((rows, columns), name="given")
    twice = te.compute((rows, columns), lambda i, j: 2.0 * given[i, j], name="twice")
    result = te.compute((columns, rows), lambda i, j: twice[j, i], name="result")
    function = te.create_prim_func([given, result]).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("make", "shape", "expected", "candidates"),
    [
        (sums_of_squares, (3, 32), lambda x: (x * x).sum(1), 2),
        (sums_of_squares, (3, 6), lambda x: (x * x).sum(1), 1),  # no multiple of four
        (transposed, (8, 5), lambda x: 2 * x.T, 2),
    ],
)
def test_they_compute_what_the_loops_compute(make, shape, expected, candidates, cores):
    tvm, code = import_tvm(), CodeTarget(LEVEL, cores)
    module, given = make(*shape), np.random.default_rng(0).standard_normal(shape, np.float32)
    found = light_candidates(module, code)
    assert len(found) == len({each.key for each in found}) == candidates
    for each in found:
        made = scheduled(module, each.document).mod
        wanted = expected(given)
        result = tvm.runtime.tensor(np.zeros(wanted.shape, np.float32))
        tvm.compile(made, target=code.tvm()).jit()["main"](tvm.runtime.tensor(given), result)
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-5)
        assert not any(name in str(made) for name in ("squares", "twice"))  # computed where read
