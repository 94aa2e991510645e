"""A look-up is charged for the rows that it reads, in every format; its table must still fit."""

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from go_rl.core import Objective, OpKind
from go_rl.core.hardware.presets import load_hardware
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.costs.operators.launches import eager_launches
from go_rl.graphs.readers import load
from go_rl.graphs.readers.jax.reader import trace_jax

WORDS, WIDTH, ROWS = 1_000_000, 64, 32
TABLE, READ = 4 * WORDS * WIDTH, 4 * ROWS * WIDTH


def _arrays():
    table = jax.ShapeDtypeStruct((WORDS, WIDTH), jnp.float32)
    return table, jax.ShapeDtypeStruct((ROWS,), jnp.int32)


def _look_up(table, words):
    return jnp.tanh(table.at[words].get(mode="promise_in_bounds"))


def _onnx(folder):
    nodes = [helper.make_node("Gather", ["t", "i"], ["e"]), helper.make_node("Tanh", ["e"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [ROWS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, WIDTH])],
        [onnx.TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[WORDS, WIDTH])],
        value_info=[helper.make_tensor_value_info("e", TensorProto.FLOAT, [ROWS, WIDTH])],
    )
    onnx.save(helper.make_model(graph, ir_version=10), folder / "m.onnx")
    return load(folder / "m.onnx")


def _hlo(folder):
    text = jax.jit(_look_up).lower(*_arrays()).compile().as_text()
    (folder / "m.hlo").write_text(text)
    return load(folder / "m.hlo", weights=(0,))


@pytest.fixture(params=["onnx", "jax", "hlo"])
def graph(request, tmp_path):
    """Rows of a table, in three formats."""
    if request.param == "jax":
        return trace_jax(_look_up, *_arrays(), weights=(0,))
    return {"onnx": _onnx, "hlo": _hlo}[request.param](tmp_path)


def test_a_look_up_is_charged_for_the_rows_it_reads(graph):
    place = int(np.argmax(graph.weight_bytes))
    assert graph.weight_bytes[place] == TABLE
    assert graph.weight_bytes_read[place] == READ
    assert graph.kind[place] == OpKind.GATHER
    assert graph.bytes_accessed[place] < 4 * READ


def test_its_table_must_still_fit(graph):
    """A ring's devices are too small for the table: rows come from the host, not the table."""
    hardware = load_hardware("ring4")
    problem = make_problem(graph, hardware, ProblemOptions(objective=Objective.RING))
    place = int(np.argmax(graph.weight_bytes))
    assert max(device.memory_bytes for device in hardware.devices) < TABLE / 4
    assert problem.streamed_bytes[place] == READ / 4 * (hardware.element_bytes or 4)
    large = make_problem(
        graph, load_hardware("h100x1"), ProblemOptions(objective=Objective.MAKESPAN)
    )
    assert large.weight_bytes[place] == TABLE


def test_a_launch_reads_the_rows_only(graph):
    for launch in eager_launches(graph).each:
        assert launch.sizes["batch"] * launch.sizes["width"] <= 2 * ROWS * WIDTH
