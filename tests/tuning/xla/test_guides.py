"""Fusions of XLA and guides of their tuning."""

from functools import cache

import numpy as np
import pytest
from costs.kernels.kernels import weights
from tuning.xla.fakes import program, space

from go_rl.core import Objective
from go_rl.core.hardware.presets import load_hardware
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.kernel_cache import kernel_work
from go_rl.costs.models.make_problem import ProblemOptions, make_problem
from go_rl.tuning.config import TuneConfig, TuningError
from go_rl.tuning.xla.fusions import GraphFusion
from go_rl.tuning.xla.guides import guide_of
from go_rl.tuning.xla.priced_fusions import PricedFusions
from go_rl.verify.kernel_rules import legal_kernels


@cache
def both() -> list[GraphFusion]:
    """Everything fused that XLA would fuse, and nothing."""
    return [space().default, space().none]


def test_a_fusion_costs_the_sum_of_its_kernels_and_each_is_priced_once():
    asked: list[int] = []

    def price(kernels):
        asked.append(kernels.num_kernels)
        return np.bincount(kernels.kernel).astype(np.float64)  # operators and operands

    priced = PricedFusions(price)
    # Fused: 2 x (x, w, dot, tanh, mul). Apart: 2 x (x, w, dot), 4 x (operand, operator).
    operands = [int(np.sum(f.kernels.graph.kind == 0)) for f in both()]
    assert priced.order(both()).tolist() == [6 + operands[0], 6 + operands[1]]
    priced.order(both())
    assert asked == [2, 6]


def test_the_analytical_guide_sums_its_model_and_says_what_it_cannot():
    guide = guide_of(TuneConfig(guide="analytical", target="cpu-1"))
    from go_rl.tuning.xla.guides import _device

    chip, _ = _device("cpu-1")
    expected = [Analytical().seconds(kernel_work(f.kernels), chip).sum() for f in both()]
    np.testing.assert_allclose(guide.fusions.order(both()), expected)
    assert expected[0] < expected[1]
    assert any("does not tell settings apart" in note for note in guide.notes)


def test_weights_of_another_target_or_none_at_all_are_named(tmp_path):
    path = tmp_path / "w.npz"
    weights().save(path)
    assert guide_of(TuneConfig(cost=f"learned:{path}")).name == "learned"
    with pytest.raises(
        TuningError, match=r"kernels of 'cpu-1'.*called 'gpu-9'.*--guide analytical"
    ):
        guide_of(TuneConfig(cost=f"learned:{path}", target="gpu-9"))
    with pytest.raises(
        TuningError, match=r"--target gpu-9: no kernel cost weights ship.*go-rl train kernels"
    ):
        guide_of(TuneConfig(target="gpu-9"))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def assert_legal_and_distinct(fusions: list[GraphFusion]) -> None:
    options = ProblemOptions(objective=Objective.MAKESPAN, decisions="fusion")
    problem = make_problem(program().graph, load_hardware("host"), options)
    device = np.zeros(program().graph.num_nodes, np.int64)
    assert len({fusion.key for fusion in fusions}) == len(fusions)
    for fusion in fusions:
        assert legal_kernels(problem, device, None, fusion.leader) == ()


def test_a_pool_is_legal_and_distinct_and_begins_with_the_default():
    pool = space().pool(12, rng())
    assert len(pool) > 4
    assert [fusion.origin for fusion in pool[:2]] == ["default", "none"]
    assert_legal_and_distinct(pool)
    assert [f.key for f in pool] == [f.key for f in space().pool(12, rng())]


def test_mutants_are_legal_and_distinct_and_others_than_their_parent():
    mutants = space().mutants([space().default], 4, rng())
    assert any(fusion.key != space().default.key for fusion in mutants)
    assert_legal_and_distinct(mutants)
