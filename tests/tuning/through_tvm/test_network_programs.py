"""Networks in TVM as programs: their prices, candidates, and images with channels last."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_networks import convolutions, saved, two_layers

pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")

from go_rl.api.this_programs import predict_programs
from go_rl.core.hardware.processor import own_target
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.machine_code.machine_numbers import MACHINE_NAMES
from go_rl.costs.programs.network_latency import DEFAULT, TUNED, network_latency, replayed
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.tuners.program_guide import ProgramGuide
from go_rl.tuning.tvm.channels_last import channels_last
from go_rl.tuning.tvm.codegen import CodeTarget, levels_here
from go_rl.tuning.tvm.light_candidates import light_candidates
from go_rl.tuning.tvm.lowering import LoweredNetwork, lower
from go_rl.tuning.tvm.models.onnx_file import read_network
from go_rl.tuning.tvm.network_programs import network_programs
from go_rl.tuning.tvm.space import scheduled

pytestmark = pytest.mark.skipif(not levels_here(), reason="not an x86-64 of level 2 or more")


def _lowered(tmp_path, model, **dims) -> LoweredNetwork:
    return lower(read_network(saved(model, tmp_path / "net.onnx"), dims), CodeTarget("x86-64-v2"))


def test_two_layers_are_called_one_after_the_other(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    found = network_programs(net, {})
    assert [program.name for program in found.programs] == [
        "matmul_add_relu 64x8 8x16 64x16", "matmul 64x16 16x4 64x4",
    ]  # fmt: skip
    assert found.called.tolist() == [0, 1]
    assert found.before == ((), (0,))
    assert {program.schedule for program in found.programs} == {DEFAULT}
    assert all(program.nest is not None and program.exact for program in found.programs)
    assert found.target.title == f"{own_target()} x86-64-v2"
    assert replayed(found, np.array([2.0, 3.0]), 0.5) == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("rows", "operators", "said"),
    [
        (8, "Relu NonZero Transpose", r"the result of 'NonZero' \(node 'node1'\) depends on data"),
        (8, "Unique Relu", r"the result of 'Unique' \(node 'node0'\) depends on data"),
        (0, "Relu Neg", "the shape of the input 't0' is 0x4, which holds no number"),
    ],
)
def test_shapes_that_are_not_fixed_are_named(tmp_path, rows, operators, said):
    names = operators.split()
    nodes = [
        helper.make_node(name, [f"t{i}"], [f"t{i + 1}"], name=f"node{i}")
        for i, name in enumerate(names)
    ]
    kind = TensorProto.INT64 if "NonZero" in names else TensorProto.FLOAT
    ends = [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [rows, 4]),
            helper.make_tensor_value_info(f"t{len(names)}", kind, None)]  # fmt: skip
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    with pytest.raises(TuningError, match=f"net: .*{said}; programs are compiled for fixed sizes"):
        _lowered(tmp_path, model)


def test_a_constant_that_holds_nothing_is_compiled(tmp_path):
    net = _lowered(tmp_path, joined_to_nothing())
    assert [each.title for each in net.functions] == ["concatenate 8x4 0x4 8x4"]


def joined_to_nothing() -> onnx.ModelProto:
    """8x4 numbers and the rows of an empty constant."""
    node = helper.make_node("Concat", ["x", "none"], ["y"], axis=0)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 4]) for name in "xy"]
    none = numpy_helper.from_array(np.zeros((0, 4), np.float32), "none")
    graph = helper.make_graph([node], "net", ends[:1], ends[1:], [none])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_compiled_functions_tell_their_machine_code(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    (first, second) = network_programs(net, {}, compiled=True).programs
    place = MACHINE_NAMES.index("machine_operations")
    products = [2 * 64 * 8 * 16, 2 * 64 * 16 * 4]
    added = 2 * 64 * 16  # the bias, and the larger of it and nothing
    assert 2 ** second.machine[place] == pytest.approx(products[1], rel=0.01)
    assert 2 ** first.machine[place] == pytest.approx(products[0] + added, rel=0.15)


def test_candidates_take_the_place_of_default_schedules_and_are_priced(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    (candidate,) = net.spaces[0].draw(1, np.random.default_rng(0))
    given = {net.functions[0].operator.workload: candidate.document}
    found = network_programs(net, given)
    assert [program.schedule for program in found.programs] == [TUNED, DEFAULT]
    assert found.programs[0].nest != network_programs(net, {}).programs[0].nest
    prices = network_latency(found, ProgramPredictor.load("programs-5-cdmpp"))
    assert prices.reasons == ("", "")
    assert prices.total[1] < prices.total[0] < prices.total[2]
    assert prices.total[0] > prices.seconds.sum() > 0


def test_a_processor_that_was_not_learned_is_told(tmp_path, monkeypatch):
    pytest.importorskip("lightgbm", reason="an extra of go_rl")
    path = saved(two_layers(), tmp_path / "net.onnx")
    told = {}
    for device in ("genuineintel-family-6-model-167", "genuineintel-family-6-model-1"):
        monkeypatch.setattr(
            "go_rl.tuning.tvm.network_programs.own_target", lambda device=device: device
        )
        told[device] = predict_programs(path, "programs-5", dims={"batch": 64})
    known, strange = told.values()
    assert not any("was not learned" in note for note in known.notes)
    assert strange.notes[-1] == (
        "genuineintel-family-6-model-1 was not learned; priced as the geometric mean of the 4 "
        "learned, with an interval around all; run go-rl calibrate --device this --programs"
    )
    assert all(each.unlike for each in strange.operators)
    assert strange.low_ms < known.low_ms < known.high_ms < strange.high_ms


def test_a_schedule_of_another_operator_is_no_price_but_a_reason(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    (candidate,) = _lowered(tmp_path, convolutions()).spaces[0].draw(1, np.random.default_rng(0))
    found = network_programs(net, {net.functions[0].operator.workload: candidate.document})
    assert found.programs[0].nest is None
    assert found.programs[0].reason.startswith("its schedule is not legal here: ")


def test_a_guide_ranks_candidates_of_tvm_and_learns_from_them(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    target = network_programs(net, {}).target
    guide = ProgramGuide(ProgramPredictor.load("programs-5-cdmpp"), target)
    tuner = guide.tuners("evolution")(net.spaces[0], 0)
    drawn = net.spaces[0].draw(16, np.random.default_rng(0))
    nests = net.spaces[0].nests(drawn)
    before = guide.scores(nests)
    tuner.observe([Trial(each, 1e-5 * (1 + i), 1.0) for i, each in enumerate(drawn)])
    after = guide.scores(nests)
    assert np.isfinite(after).all()
    assert not np.allclose(before, after)
    assert len(tuner.propose(3)) == 3


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


RNG = np.random.default_rng(2)


def network(tmp_path, nodes: list[onnx.NodeProto], weights: dict[str, tuple[int, ...]]):
    """A network of ``x``, [1, 3, 12, 12], to ``y``."""
    initial = [
        numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], initial,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return read_network(saved(model, tmp_path / "net.onnx"))


def convolution(source: str, weight: str, result: str) -> onnx.NodeProto:
    return helper.make_node("Conv", [source, weight], [result], pads=[1, 1, 1, 1])


def transpositions(module) -> int:
    return str(module["main"]).count("R.permute_dims")


def test_between_convolutions_nothing_is_transposed(tmp_path):
    """One transposition of the image, one of each kernel, and one of the result."""
    from tvm.relax import transform

    nodes = [
        convolution("x", "w0", "a"), helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        convolution("p", "w1", "c"), helper.make_node("Add", ["c", "p"], ["d"]),
        helper.make_node("Concat", ["d", "p"], ["e"], axis=1),
        convolution("e", "w2", "y"),
    ]  # fmt: skip
    net = network(tmp_path, nodes, {"w0": (8, 3, 3, 3), "w1": (8, 8, 3, 3), "w2": (4, 16, 3, 3)})
    module = transform.DeadCodeElimination()(channels_last(net.relax()))
    assert str(module["main"]).count('data_layout="NHWC"') == 3
    assert transpositions(module) == 1 + 3 + 1
