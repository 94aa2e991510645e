"""What every `Optimizer` must do, inherited by one test class for each kind of them.

A subclass says which optimizers it tests (`under_test`) and which objective they work on. Problems
are tiny, and chosen to be odd: one node, no edges, more chips than nodes, no work, ties, pins, no
room.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from reference.boxed_problems import random_problem
from reference.random_rings import random_ring
from reference.small_rings import ring_problem
from tied_weights import tied

from go_rl.core import (
    Budget,
    Objective,
    Optimizer,
    Plan,
    Problem,
    Status,
    Topology,
    proved_optimal,
    rule_set,
)
from go_rl.verify.check_plan import check_plan

SAMPLES = 24
BATCH = 16
"""Samples that a method may draw at a time."""
RULES = ("strict", "replicate", "relay", "default")


def under_test(*optimizers: Optimizer | Callable[[], Optimizer]) -> Any:
    """Return a fixture for a class of tests: each test runs with each of the optimizers, or with
    what a function makes."""

    @pytest.fixture(autouse=True, params=optimizers, ids=lambda each: getattr(each, "name", None))
    def chosen(self: OptimizerConformance, request: pytest.FixtureRequest) -> None:
        made = request.param
        self.optimizer = made() if callable(made) else made

    return chosen


class OptimizerConformance:
    """Inherit as ``Test<Name>`` and say what is under test."""

    optimizer: Optimizer
    """The one under test."""

    objective: ClassVar[Objective] = Objective.RING
    sampled: ClassVar[bool] = True
    """False: the method ignores samples and always takes seconds (CP-SAT)."""
    slack_seconds: ClassVar[float] = 3.0
    """What a method may take beyond its limit; compilation included."""

    def make(self, problem: Problem) -> Optimizer:
        """Return the optimizer for a problem."""
        return self.optimizer

    def solve(self, problem: Problem, samples: int = SAMPLES, seed: int = 0) -> Plan:
        budget = Budget(samples=samples) if self.sampled else Budget(seconds=1.0)
        return self.make(problem).optimize(problem, budget, seed)

    def problem(self, nodes: int, edges: list[tuple[int, int]], chips: int, **options) -> Problem:
        """The hand-made problem, for the objective under test."""
        problem = ring_problem(nodes, edges, chips, **options)
        return problem if self.objective is Objective.RING else self._boxed(problem)

    def random(self, seed: int, nodes: int = 9, chips: int = 4) -> Problem:
        if self.objective is Objective.RING:
            return random_ring(seed, nodes, chips)
        return random_problem(seed, self.objective, 2 + seed % nodes, 1 + seed % chips)

    def _boxed(self, problem: Problem) -> Problem:
        """The same on chips that are joined all to all."""
        links = replace(problem.hardware.links, topology=Topology.FULL)
        return replace(
            problem,
            objective=self.objective,
            hardware=replace(problem.hardware, links=links),
            rules=rule_set("default"),
            all_chips=False,
        )

    def holds(self, problem: Problem, plan: Plan) -> None:
        """What is true of every plan of any optimizer."""
        assert plan.optimizer == self.make(problem).name
        assert len(plan.device) == problem.graph.num_nodes
        status = plan.evaluation.status
        verdict = check_plan(plan, problem)
        assert verdict.status is status, verdict.sentence
        values = [point.seconds for point in plan.curve]
        counts = [point.samples for point in plan.curve]
        assert values == sorted(set(values), reverse=True)
        assert counts == sorted(counts)
        assert max(counts, default=0) <= plan.samples
        if status.ok:
            assert values[-1] == pytest.approx(plan.value, rel=1e-9)
            assert 0 <= plan.bound <= plan.value * (1 + 1e-9)
            assert not plan.optimal or plan.gap <= 1e-6
        else:
            assert plan.value == np.inf
            assert plan.evaluation.detail
        assert Plan.from_json(plan.to_json()).device.tolist() == plan.device.tolist()

    def planned(self, problem: Problem, **options: int) -> Plan:
        """The plan of a problem, which keeps what every plan must."""
        plan = self.solve(problem, **options)
        self.holds(problem, plan)
        return plan

    def test_random_problems(self):
        """Some are solved and some are not."""
        statuses = []
        for seed in range(10):
            plan = self.planned(self.random(seed), seed=seed)
            assert not self.sampled or plan.samples <= SAMPLES, seed
            statuses.append(plan.evaluation.status)
        assert statuses.count(Status.OK) >= 3
        assert set(statuses) <= set(Status) - {Status.ILLEGAL}

    def test_equal_seeds_and_samples_give_equal_plans(self):
        if not self.sampled:
            pytest.skip("a limit in seconds promises no equal plans")
        problem = self.problem(8, [(0, 1), (1, 2), (0, 3), (3, 4), (5, 6)], 4, rules="relay")
        one, two = (self.solve(problem, seed=5) for _ in range(2))
        assert one.device.tolist() == two.device.tolist()
        assert one.samples == two.samples
        assert [p.samples for p in one.curve] == [p.samples for p in two.curve]
        assert one.value == two.value

    def test_seconds_are_a_limit_too(self):
        problem = self.problem(8, [(0, 1), (1, 2), (0, 3), (3, 4), (5, 6)], 4, rules="default")
        self.solve(problem)
        started = time.perf_counter()
        plan = self.make(problem).optimize(problem, Budget(seconds=0.2), 0)
        assert time.perf_counter() - started < 5 * 0.2 + self.slack_seconds
        self.holds(problem, plan)
        assert plan.evaluation.status.ok

    @pytest.mark.parametrize("rules", RULES)
    @pytest.mark.parametrize("seconds", [0.0, 1.0])
    def test_an_easy_chain_is_solved_under_every_rule_set(self, seconds, rules):
        """With work and without."""
        chain = [(i, i + 1) for i in range(5)]
        plan = self.planned(self.problem(6, chain, 3, rules=rules, seconds=[seconds] * 6))
        assert plan.evaluation.status.ok

    def test_a_proved_optimum_ends_the_search(self):
        plan = self.solve(self.problem(6, [(i, i + 1) for i in range(5)], 1))
        assert plan.value == 6.0
        assert plan.optimal == proved_optimal(6.0, plan.bound)
        assert not plan.optimal or plan.samples <= plan.curve[-1].samples + BATCH

    @pytest.mark.parametrize("chips", [1, 5])
    def test_one_node(self, chips):
        assert self.planned(self.problem(1, [], chips)).value == 1.0

    @pytest.mark.parametrize(
        ("nodes", "edges", "chips"), [(5, [], 3), (3, [(0, 1), (1, 2)], 8)],
        ids=["no edges", "more chips than nodes"],
    )  # fmt: skip
    def test_odd_sizes_are_solved(self, nodes, edges, chips):
        assert self.planned(self.problem(nodes, edges, chips)).evaluation.status.ok

    def test_no_work_and_too_little_room_on_one_chip(self):
        weights = [60.0] * 2 + [30.0] * 2
        edges = [(0, 1), (2, 3)]
        self.planned(self.problem(4, edges, 3, rules="relay", seconds=[0.0] * 4, weights=weights))

    def test_pinned_nodes_stay(self):
        chain = [(i, i + 1) for i in range(4)]
        plan = self.planned(self.problem(5, chain, 3, fixed={1: 0, 3: 1}))
        assert plan.evaluation.status.ok
        assert (plan.device[1], plan.device[3]) == (0, 1)

    def test_pins_against_each_other(self):
        pinned = {"fixed": {0: 0, 1: 1}, "colocation": [0, 0, -1]}
        plan = self.planned(self.problem(3, [(0, 1), (1, 2)], 2, **pinned))
        assert not plan.evaluation.status.ok

    def test_tied_weights(self):
        problem = self.problem(4, [(0, 1), (1, 2), (2, 3)], 2, weights=[60.0] * 4, rules="relay")
        self.planned(tied(problem, [0, 1, 0, 1]))

    def test_no_chip_has_room(self):
        plan = self.planned(self.problem(3, [(0, 1), (1, 2)], 3, weights=[200.0, 1.0, 1.0]))
        assert plan.evaluation.status in (
            Status.OUT_OF_MEMORY, Status.INFEASIBLE, Status.GAVE_UP
        )  # fmt: skip

    def test_a_node_that_nothing_can_run(self):
        plan = self.planned(self.problem(3, [(0, 1), (1, 2)], 2, seconds=[1.0, np.inf, 1.0]))
        assert not plan.evaluation.status.ok


class RingConformance(OptimizerConformance):
    """What only the ring asks for."""

    @pytest.mark.parametrize("rules", RULES)
    def test_every_chip_is_used_where_asked(self, rules):
        edges = [(0, 1), (1, 2), (2, 3), (0, 4)]
        plan = self.planned(ring_problem(6, edges, 4, rules, all_chips=True, edge_bytes=0.01))
        assert plan.evaluation.status.ok
        assert set(plan.device.tolist()) == {0, 1, 2, 3}

    def test_live_tensors_count(self):
        """Weights fit one chip; weights and the received tensor do not."""
        problem = ring_problem(4, [(0, 1), (1, 2), (2, 3)], 2, "relay", weights=[40.0] * 4)
        plan = self.planned(replace(problem, edge_bytes=np.array([30.0, 30.0, 30.0])))
        if not plan.evaluation.status.ok:
            assert plan.evaluation.status in (Status.OUT_OF_MEMORY, Status.GAVE_UP)

    def test_proved_infeasible_is_called_so(self):
        """0 -> 1 with 1 pinned below 0."""
        plan = self.planned(ring_problem(2, [(0, 1)], 2, fixed={0: 1, 1: 0}))
        assert plan.evaluation.status is Status.INFEASIBLE
