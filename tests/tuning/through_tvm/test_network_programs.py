"""Networks in TVM as programs: functions with their loops, calls in order, and their prices."""

import numpy as np
import pytest
from onnx_networks import convolutions, saved, two_layers

pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")

from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.machine_code.machine_numbers import MACHINE_NAMES
from go_rl.costs.programs.network_latency import DEFAULT, TUNED, network_latency, replayed
from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.tuners.program_guide import ProgramGuide
from go_rl.tuning.tvm.codegen import CodeTarget, levels_here
from go_rl.tuning.tvm.lowering import LoweredNetwork, lower
from go_rl.tuning.tvm.models.onnx_file import read_network
from go_rl.tuning.tvm.network_programs import network_programs

pytestmark = pytest.mark.skipif(not levels_here(), reason="not an x86-64 of level 2 or more")


def _lowered(tmp_path, model, **dims) -> LoweredNetwork:
    return lower(read_network(saved(model, tmp_path / "net.onnx"), dims), CodeTarget("x86-64-v2"))


def test_two_layers_are_called_one_after_the_other(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    found = network_programs(net, {}, "cpu")
    assert [program.name for program in found.programs] == [
        "matmul_add_relu 64x8 8x16 64x16", "matmul 64x16 16x4 64x4",
    ]  # fmt: skip
    assert found.called.tolist() == [0, 1]
    assert found.before == ((), (0,))
    assert {program.schedule for program in found.programs} == {DEFAULT}
    assert all(program.nest is not None and program.exact for program in found.programs)
    assert found.target.title == "cpu x86-64-v2"
    assert replayed(found, np.array([2.0, 3.0]), 0.5) == pytest.approx(6.0)


def test_compiled_functions_tell_their_machine_code(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    (first, second) = network_programs(net, {}, "cpu", compiled=True).programs
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
    prices = network_latency(found, ProgramPredictor.load("programs-1"))
    assert prices.reasons == ("", "")
    assert prices.total[1] < prices.total[0] < prices.total[2]
    assert prices.total[0] > prices.seconds.sum() > 0


def test_a_schedule_of_another_operator_is_no_price_but_a_reason(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    (candidate,) = _lowered(tmp_path, convolutions()).spaces[0].draw(1, np.random.default_rng(0))
    found = network_programs(net, {net.functions[0].operator.workload: candidate.document})
    assert found.programs[0].nest is None
    assert found.programs[0].reason.startswith("its schedule is not legal here: ")


def test_a_guide_ranks_candidates_of_tvm_and_learns_from_them(tmp_path):
    net = _lowered(tmp_path, two_layers(), batch=64)
    guide = ProgramGuide(ProgramPredictor.load("programs-1"), network_programs(net, {}).target)
    tuner = guide.tuners("evolution")(net.spaces[0], 0)
    drawn = net.spaces[0].draw(16, np.random.default_rng(0))
    nests = net.spaces[0].nests(drawn)
    before = guide.scores(nests)
    tuner.observe([Trial(each, 1e-5 * (1 + i), 1.0) for i, each in enumerate(drawn)])
    after = guide.scores(nests)
    assert np.isfinite(after).all()
    assert not np.allclose(before, after)
    assert len(tuner.propose(3)) == 3
