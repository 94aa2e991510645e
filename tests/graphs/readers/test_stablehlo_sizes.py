"""StableHLO with unknown sizes: read with sizes that are given, or told which one is missing."""

import jax
import jax.numpy as jnp
import pytest
from jax import export

from go_rl.core import ReadError
from go_rl.graphs.readers import load

pytestmark = pytest.mark.usefixtures("in_process")


def _exported(function, *shapes):
    names = sorted({name for shape in shapes for name in shape if isinstance(name, str)})
    variables = dict(zip(names, export.symbolic_shape(",".join(names)), strict=True))
    arguments = [
        jax.ShapeDtypeStruct([variables.get(size, size) for size in shape], jnp.float32)
        for shape in shapes
    ]
    return export.export(jax.jit(function))(*arguments).mlir_module()


def _both(x, y):
    return jnp.tanh(x @ x.T), y.sum()


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory):
    path = tmp_path_factory.mktemp("dynamic") / "dynamic.mlir"
    path.write_text(_exported(_both, ("b", 4), ("2*c", "b")))
    return path


@pytest.mark.parametrize(
    "dims", [{"b": 8, "c": 3}, {"arg0.0": 8, "arg1.0": 6, "arg1.1": 8}, {"b": 8, "arg1.0": 6}]
)
def test_read_with_sizes_by_name_or_place(dynamic, dims):
    graph = load(dynamic, dims=dims)
    assert graph.flops.sum() == 2 * 8 * 8 * 4 + (6 * 8 - 1)
    assert graph.meta["dims"] == dims
    parameters = [op == "parameter" for op in graph.op_type]
    assert graph.output_shape[parameters].tolist() == [[8, 4], [6, 8]]


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        (None, r"size 0 of argument 0, b, is unknown; give it, such as --dim b=8"),
        ({"b": 8}, r"size 0 of argument 1, 2\*c, is unknown; give it, such as --dim c=8"),
        ({"b": 8, "cc": 8}, r"no size of the module is called 'cc'; did you mean 'c'\?.*are b, c"),
    ],
)
def test_what_is_missing_is_named(dynamic, dims, message):
    with pytest.raises(ReadError, match=message) as error:
        load(dynamic, dims=dims)
    assert "malformed" not in str(error.value)


def test_sizes_that_contradict_each_other_are_refused(dynamic):
    with pytest.raises(ReadError, match="cannot read this StableHLO text"):
        load(dynamic, dims={"b": 8, "arg1.0": 7})
