"""Fusions to be tried are legal and distinct."""

import numpy as np
from tuning.xla.fakes import program, space

from go_rl.core import Objective
from go_rl.core.hardware.presets import load_hardware
from go_rl.costs.models.make_problem import ProblemOptions, make_problem
from go_rl.tuning.xla.fusions import GraphFusion
from go_rl.verify.kernel_rules import legal_kernels


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
