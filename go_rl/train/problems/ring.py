"""The problems that a ring policy is pretrained on: graphs of the zoo on hardware under rules."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from go_rl.core import TrainingError, load_hardware, rule_set
from go_rl.cost import ProblemOptions, make_problem, named_cost
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.plan_decoders.ring_decoder import RingDecoder
from go_rl.train.advantage import RunningBaseline
from go_rl.train.collect import Credit, TrainingCase, collect
from go_rl.train.config import RingTrainConfig
from go_rl.train.problems.curriculum import KEPT, VALIDATION_SEED, Curriculum, small_graphs
from go_rl.zoo import zoo_graph

DULL = 2e-3
"""Standard deviation of the rewards of a problem that teaches nothing."""
PASSED_OVER = 0.9
"""Share of the draws of such a problem that are not used."""


class RingProblems(Curriculum[RingTrainConfig]):
    """All problems of a run; solvers are built when a problem is first drawn."""

    def __init__(self, config: RingTrainConfig) -> None:
        super().__init__(config)
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

        A problem on which all orders were worth the same teaches nothing: it is mostly passed over.
        """
        config = self.config
        rng = np.random.default_rng((config.seed, update))
        chosen: list[TrainingCase] = []
        while len(chosen) < config.graphs:
            name = self.train[int(rng.integers(len(self.train)))]
            hardware = config.hardware[int(rng.integers(len(config.hardware)))]
            rules = config.rules[int(rng.integers(len(config.rules)))]
            case = self._case(name, hardware, rules, solver=config.samples.solver)
            passed_over = rng.random() < PASSED_OVER
            if passed_over and baseline.deviation(f"{case.name}/order") < DULL:
                continue
            if case.decoder.decides:
                chosen.append(case)
        return chosen

    def validate(self, agent: Agent) -> tuple[float, dict[str, float]]:
        """Return the score of the validation problems and its parts.

        Rewards are logarithms of the throughput relative to the compiler heuristic. The score adds
        the means, over problems, of a batch's best order, its mean order and its mean placement.
        """
        found: dict[str, list[float]] = {"best order": [], "mean order": [], "mean placement": []}
        sizes = {"order": 16, "placement": 4}
        for name in self.validation:
            for hardware in self.config.validation_hardware:
                case = self._case(name, hardware, "strict", solver="sample")
                got = collect(agent, case, sizes, Credit(), VALIDATION_SEED).rollouts
                found["best order"].append(got["order"].reward.max())
                found["mean order"].append(got["order"].reward.mean())
                found["mean placement"].append(got["placement"].reward.mean())
        parts = {f"validation/{name}": float(np.mean(rewards)) for name, rewards in found.items()}
        return sum(parts.values()), parts


def ring_case(name: str, hardware: str, rules: str, cost: str, solver: str) -> TrainingCase:
    """Return a problem of the zoo."""
    chips = load_hardware(hardware)
    options = ProblemOptions(
        rules=rule_set(rules), memory=False, cost_model=named_cost(cost, chips)
    )
    problem = make_problem(zoo_graph(name), chips, options)
    decoder = RingDecoder(problem, RingWorkspace(problem), solver)
    return TrainingCase(f"{name}/{hardware}/{rules}", decoder)
