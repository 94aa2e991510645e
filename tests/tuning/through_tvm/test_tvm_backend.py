"""Networks in TVM: their operators, candidates and compiled modules."""

import json

import numpy as np
import pytest
from onnx_networks import convolutions, lone, saved, two_layers

from go_rl.costs.programs.features import compact_ast, pack_asts
from go_rl.tuning.config import TuningError

pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")

from go_rl.tuning.tvm import lowering
from go_rl.tuning.tvm.codegen import CodeTarget, levels_here
from go_rl.tuning.tvm.compiled import export_network, max_relative_error, run_network
from go_rl.tuning.tvm.lowering import LoweredNetwork, lower
from go_rl.tuning.tvm.models.onnx_file import OnnxNetwork, read_network
from go_rl.tuning.tvm.space import TvmSpace, scheduled

pytestmark = pytest.mark.skipif(not levels_here(), reason="not an x86-64 of level 2 or more")
CODE = CodeTarget("x86-64-v2")


def lowered(tmp_path, model, **dims) -> tuple[OnnxNetwork, LoweredNetwork]:
    network = read_network(saved(model, tmp_path / "net.onnx"), dims)
    return network, lower(network, CODE)


def test_operators_of_two_layers(tmp_path):
    """A product of (128, 8) by 16, an addition and a maximum; then one of (128, 16) by 4."""
    _, net = lowered(tmp_path, two_layers(), batch=128)
    first, second = (function.operator for function in net.tuned)
    assert (first.name, first.repeats) == ("matmul_add_relu 128x8 8x16 128x16", 1)
    assert first.flops == 128 * 16 * (2 * 8 + 2)
    assert (second.name, second.flops) == ("matmul 128x16 16x4 128x4", 2 * 128 * 16 * 4)
    assert first.workload != second.workload


def test_candidates_of_a_seed_are_the_same_and_rebuilt_from_json(tmp_path):
    _, net = lowered(tmp_path, two_layers(), batch=64)
    module = net.tuned[0].module
    space = TvmSpace(module, CODE)
    drawn = space.draw(4, np.random.default_rng(3))
    assert [s.key for s in drawn] == [
        s.key for s in TvmSpace(module, CODE).draw(4, np.random.default_rng(3))
    ]
    assert len({candidate.key for candidate in drawn}) == 4
    changed = space.neighbour(drawn[0], np.random.default_rng(0))
    assert changed is not None
    assert changed.key != drawn[0].key
    features = space.features([drawn[0], drawn[1], drawn[0]])
    assert features.shape == (3, 164)
    assert (features[0] == features[2]).all()
    assert (features[0] != features[1]).any()
    again = scheduled(module, json.loads(json.dumps(drawn[1].document)))
    assert str(again.mod) == str(scheduled(module, drawn[1].document).mod)
    assert space.adapted(drawn[1].document) == drawn[1]
    nests = [nest for nest in space.nests(drawn[:2]) if nest is not None]
    sums = pack_asts([compact_ast(nest) for nest in nests]).sums()
    np.testing.assert_allclose(sums, features[:2], rtol=1e-4)


def test_candidates_of_other_operators_are_adapted_or_do_not_fit(tmp_path):
    """A product of 96 rows takes over tiles of one of 64 rows; it has no place for tiles of a
    convolution."""
    spaces = []
    for batch in (64, 96):
        _, net = lowered(tmp_path, two_layers(), batch=batch)
        spaces.append(TvmSpace(net.tuned[0].module, CODE))
    drawn = spaces[0].draw(6, np.random.default_rng(0))
    made = [spaces[1].adapted(candidate.document) for candidate in drawn]
    assert sum(candidate is not None for candidate in made) >= 3
    _, net = lowered(tmp_path, convolutions())
    other = TvmSpace(net.tuned[0].module, CODE).draw(2, np.random.default_rng(0))
    assert [spaces[1].adapted(candidate.document) for candidate in other] == [None, None]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "dims"), [(two_layers, {"batch": 64}), (convolutions, {})])
def test_compiled_networks_compute_what_the_model_does(tmp_path, model, dims):
    network, net = lowered(tmp_path, model(), **dims)
    rng = np.random.default_rng(5)
    for candidates in (
        {},
        {
            number: TvmSpace(function.module, CODE).draw(1, rng)[0]
            for number, function in enumerate(net.tuned)
        },
    ):
        path = tmp_path / "module.so"
        export_network(net, candidates, path)
        operands = [each.random(rng) for each in network.inputs]
        found = run_network(path, operands)
        assert max_relative_error(found, network.results(operands)) < 1e-5
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".so"] == ["module.so"]


def test_an_operator_without_a_design_space_is_left_untuned(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("no sketch\nfor it")

    monkeypatch.setattr(lowering, "TvmSpace", refuse)
    _, net = lowered(tmp_path, two_layers(), batch=128)
    assert net.tuned == ()
    assert {each.untuned for each in net.functions if each.flops} == {
        "TVM finds no schedules for it: no sketch"
    }


def test_an_operator_that_tvm_lacks_is_named(tmp_path):
    with pytest.raises(
        TuningError, match=r"net: TVM lacks the operator 'RandomUniformLike' \(node 'only'\)"
    ):
        lowered(tmp_path, lone("RandomUniformLike"))
