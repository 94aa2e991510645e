"""The problems that a ring policy is pretrained on: graphs of the zoo on hardware under rules."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product

import numpy as np

from go_rl.core import Objective, TrainingError, load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.collect import Credit, TrainingCase, collect
from go_rl.policy.learn.config import RingTrainConfig
from go_rl.policy.learn.problems.curriculum import (
    KEPT,
    VALIDATION_SEED,
    Curriculum,
    graph_size,
    own_graphs,
    short_name,
    small_graphs,
    training_graph,
)
from go_rl.policy.learn.processes.group import ALONE, Group
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.ring.ring_policy import PLACEMENT

DULL = 2e-3
"""Standard deviation of the rewards of a problem that teaches nothing."""
PASSED_OVER = 0.9
"""Share of the draws of such a problem that are not used."""
VALIDATION_SIZES = {PLACEMENT: 20}
"""Samples of a validation problem."""


class RingProblems(Curriculum[RingTrainConfig]):
    """All problems of a run; solvers are built when a problem is first drawn."""

    def __init__(self, config: RingTrainConfig) -> None:
        super().__init__(config)
        if config.graphs:
            self.train = self.validation = own_graphs(config, Objective.RING)
        else:
            self.train = small_graphs(config.split, config.max_nodes)
            self.validation = small_graphs(config.validation, config.max_nodes)
        if not self.train or not self.validation:
            raise TrainingError(
                f"train: no graph of split {config.split!r} or {config.validation!r} has at most "
                f"max_nodes={config.max_nodes} nodes; raise max_nodes"
            )
        cached = lru_cache(KEPT)(ring_case)
        self._case = partial(cached, cost=config.cost)

    def draw(self, update: int, baseline: RunningBaseline) -> list[TrainingCase]:
        """Return the problems of one update; the same update and baseline give the same problems.

        A problem on which all plans were worth the same teaches nothing: it is mostly passed over.
        """
        config = self.config
        rng = np.random.default_rng((config.seed, update))
        chosen: list[TrainingCase] = []
        while len(chosen) < config.problems:
            name = self.train[int(rng.integers(len(self.train)))]
            hardware = config.hardware[int(rng.integers(len(config.hardware)))]
            rules = config.rules[int(rng.integers(len(config.rules)))]
            case = self._case(name, hardware, rules, solver=config.solver)
            passed_over = rng.random() < PASSED_OVER
            if passed_over and baseline.deviation(f"{case.name}/{PLACEMENT}") < DULL:
                continue
            if case.decoder.decides:
                chosen.append(case)
        return chosen

    def validate(self, agent: Agent, group: Group = ALONE) -> tuple[float, dict[str, float]]:
        """Return the score of the validation problems and its parts.

        Rewards are logarithms of the throughput relative to the compiler heuristic. The score adds
        the means, over problems, of a batch's best and its mean placement.
        """
        keys = list(product(self.validation, self.config.validation_hardware))
        share = group.share([graph_size(name) for name, _ in keys])
        found = share.compute(lambda mine: [self._judge(agent, *keys[i]) for i in mine])
        parts = {
            f"validation/{name}": float(np.mean([each[name] for each in found]))
            for name in found[0]
        }
        return sum(parts.values()), parts

    def _judge(self, agent: Agent, name: str, hardware: str) -> dict[str, float]:
        """Rewards of one problem by what they are of."""
        case = self._case(name, hardware, "strict", solver=self._validated_by)
        found = collect(agent, case, VALIDATION_SIZES, Credit(), VALIDATION_SEED).rollouts
        reward = found[PLACEMENT].reward
        return {"best placement": reward.max(), "mean placement": reward.mean()}

    @property
    def _validated_by(self) -> str:
        """Solver mode of validation: that of the run where it is SAMPLE."""
        mode = self.config.solver
        return mode if mode.startswith("sample") else "sample"


def ring_case(name: str, hardware: str, rules: str, cost: str, solver: str) -> TrainingCase:
    """Return a problem of the zoo."""
    chips = load_hardware(hardware)
    options = ProblemOptions(
        rules=rule_set(rules), memory=False, cost_model=named_cost(cost, chips)
    )
    problem = make_problem(training_graph(name), chips, options)
    decoder = RingPlans(problem, RingWorkspace(problem), solver)
    return TrainingCase(f"{short_name(name)}/{hardware}/{rules}", decoder)
