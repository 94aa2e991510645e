"""The problems that a makespan policy is pretrained on."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product

import numpy as np

from go_rl.core import Objective, TrainingError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.graphs.zoo import zoo_entry
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.kinds import MAKESPAN_PLANS
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.collect import TrainingCase
from go_rl.policy.learn.config import MakespanTrainConfig
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
from go_rl.policy.makespan_plans import MakespanPlans

VALIDATION_SAMPLES = 16
ProblemKey = tuple[str, str, tuple[str, ...]]
"""Graph of the zoo, hardware and decisions."""


class MakespanProblems(Curriculum[MakespanTrainConfig]):
    """All problems of a run; units are built when a problem is first drawn."""

    def __init__(self, config: MakespanTrainConfig) -> None:
        super().__init__(config)
        if config.graphs:
            self.train = self.further = self.validation = own_graphs(config, Objective.MAKESPAN)
        else:
            self.train = small_graphs(config.split, config.max_nodes)
            self.further = [n for n in config.further if zoo_entry(n).nodes <= config.max_nodes]
            self.validation = self.further
        if config.validation is not None and not config.graphs:
            self.validation = small_graphs(config.validation, config.max_nodes)
        if not self.train or not self.validation:
            raise TrainingError(
                f"train: no graph of split {config.split!r} or for validation has at most "
                f"max_nodes={config.max_nodes} nodes; raise max_nodes"
            )
        self.decoder = lru_cache(KEPT)(partial(makespan_plans, config.kind))

    def draw(self, update: int, baseline: RunningBaseline) -> list[TrainingCase]:
        """Return the problems of one update; the same update gives the same problems."""
        config, rng = self.config, np.random.default_rng((self.config.seed, update))

        def one() -> TrainingCase:
            further = bool(self.further) and rng.random() < config.further_share
            names = self.further if further else self.train
            name = names[int(rng.integers(len(names)))]
            hardware = config.hardware[int(rng.integers(len(config.hardware)))]
            decide = config.decide[int(rng.integers(len(config.decide)))]
            return TrainingCase(short_name(name), self.decoder(name, hardware, decide, config.cost))

        return [one() for _ in range(config.problems)]

    def validate(self, agent: Agent, group: Group = ALONE) -> tuple[float, dict[str, float]]:
        """Return the mean over the validation problems of the best reward of a batch."""
        hardware, decide = self.config.validation_hardware, dict.fromkeys(self.config.decide)
        keys = list(product(self.validation, hardware, decide))
        share = group.share([graph_size(name) for name, _, _ in keys])
        scores = share.compute(lambda mine: [self._judge(agent, keys[i]) for i in mine])
        score = float(np.mean(scores))
        return score, {"validation": score}

    def _judge(self, agent: Agent, key: ProblemKey) -> float:
        """The best reward of a batch."""
        noise = np.ones(VALIDATION_SAMPLES, np.float32)
        decoder = self.decoder(*key, self.config.cost)
        return decoder.sample(agent, "plan", noise, VALIDATION_SEED)[1].reward.max()


def makespan_plans(
    policy: str, name: str, hardware: str, decide: tuple[str, ...], cost: str = "auto"
) -> MakespanPlans:
    """Return a problem with its units, as a policy sees it."""
    devices = load_hardware(hardware)
    model = named_cost(cost, devices)
    options = ProblemOptions(objective=Objective.MAKESPAN, decisions=decide, cost_model=model)
    problem = make_problem(training_graph(name), devices, options)
    return MAKESPAN_PLANS[policy](MakespanWorkspace(problem))
