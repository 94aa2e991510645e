"""The problems that a makespan policy is pretrained on."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np

from go_rl.core import Objective, TrainingError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.graphs.zoo import zoo_entry, zoo_names
from go_rl.graphs.zoo.index import generated_name
from go_rl.graphs.zoo.problems import CONNECTED_VALIDATION_FAMILIES
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.collect import TrainingCase
from go_rl.policy.learn.config import NodesTrainConfig
from go_rl.policy.learn.problems.curriculum import (
    KEPT,
    VALIDATION_SEED,
    Curriculum,
    graph_size,
    own_graphs,
    short_name,
    small_graphs,
    stored_graph,
)
from go_rl.policy.learn.processes.group import ALONE, Group
from go_rl.policy.makespan_plans import MakespanPlans

VALIDATION_SAMPLES = 16
HELD_OUT_SEED, HELD_OUT = 1_000_000, 12
"""First seed of the generated graphs of validation, and their number; those that are too large are
left out."""
MOST_DRAWS = 100
"""Draws for each problem of an update."""
ProblemKey = tuple[str, str, tuple[str, ...]]
"""Graph of the zoo, hardware and decisions."""


class MakespanProblems(Curriculum[NodesTrainConfig]):
    """All problems of a run; units are built when a problem is first drawn."""

    def __init__(self, config: NodesTrainConfig, cache: Path | None = None) -> None:
        """``cache``: folder of generated graphs; None: they are traced again when they are not in
        memory."""
        super().__init__(config)
        self._cache = cache
        self.decoder = lru_cache(KEPT)(self._plans)
        self.train, self.further, self.validation = self._graphs()
        if not self.train or not self.validation:
            raise TrainingError(
                f"train: no graph of split {config.split!r} or for validation has at most "
                f"max_nodes={config.max_nodes} nodes; raise max_nodes"
            )

    def _graphs(self) -> tuple[list[str], list[str], list[str]]:
        """Graphs that are trained on, further ones, and those of validation."""
        config = self.config
        if config.graphs:
            own = own_graphs(config, Objective.MAKESPAN)
            return own, own, own
        if config.generated:
            return list(map(generated_name, range(config.generated))), [], self._held_out()
        further = [n for n in config.further if zoo_entry(n).nodes <= config.max_nodes]
        train = small_graphs(config.split, config.max_nodes)
        if config.validation is None:
            return train, further, further
        return train, further, small_graphs(config.validation, config.max_nodes)

    def _held_out(self) -> list[str]:
        """Generated graphs of seeds that no run trains on, and the zoo's validation families."""
        most = self.config.max_nodes
        seeds = map(generated_name, range(HELD_OUT_SEED, HELD_OUT_SEED + HELD_OUT))
        generated = [n for n in seeds if stored_graph(n, self._cache).num_nodes <= most]
        entries = map(zoo_entry, zoo_names(training=True))
        return generated + [
            each.name for each in entries
            if each.training and each.family in CONNECTED_VALIDATION_FAMILIES and each.nodes <= most
        ]  # fmt: skip

    def draw(self, update: int, baseline: RunningBaseline) -> list[TrainingCase]:
        """Return the problems of one update; the same update gives the same problems.

        A generated graph that is too large, or leaves nothing to decide, is passed over.

        Raises:
            TrainingError: none of many that were drawn is of use.
        """
        config, rng = self.config, np.random.default_rng((self.config.seed, update))
        chosen: list[TrainingCase] = []
        for _ in range(MOST_DRAWS * config.problems):
            further = bool(self.further) and rng.random() < config.further_share
            names = self.further if further else self.train
            name = names[int(rng.integers(len(names)))]
            hardware = config.hardware[int(rng.integers(len(config.hardware)))]
            decide = config.decide[int(rng.integers(len(config.decide)))]
            if config.generated and not self._teaches(name, hardware, decide):
                continue
            chosen.append(TrainingCase(short_name(name), self.decoder(name, hardware, decide)))
            if len(chosen) == config.problems:
                return chosen
        raise TrainingError(
            f"train: of {MOST_DRAWS * config.problems} generated graphs {len(chosen)} have at most "
            f"max_nodes={config.max_nodes} nodes and anything to decide; raise max_nodes"
        )

    def _teaches(self, name: str, hardware: str, decide: tuple[str, ...]) -> bool:
        """Whether a generated graph is small enough, and leaves something to decide."""
        if stored_graph(name, self._cache).num_nodes > self.config.max_nodes:
            return False
        plans = self.decoder(name, hardware, decide)
        return plans.decides and plans.units.num_units > 1

    def _plans(self, name: str, hardware: str, decide: tuple[str, ...]) -> MakespanPlans:
        """Return a problem with its units, as the policy sees it."""
        devices = load_hardware(hardware)
        options = ProblemOptions(
            objective=Objective.MAKESPAN, decisions=decide, colocation=self.config.colocate,
            cost_model=named_cost(self.config.cost, devices),
        )  # fmt: skip
        problem = make_problem(stored_graph(name, self._cache), devices, options)
        decoder = plan_decoder(problem, self.config.kind, MakespanWorkspace(problem))
        return cast(MakespanPlans, decoder)

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
        return self.decoder(*key).sample(agent, "plan", noise, VALIDATION_SEED)[1].reward.max()
