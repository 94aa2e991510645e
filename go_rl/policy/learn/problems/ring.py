"""The problems that a ring policy is pretrained on: graphs of the zoo on hardware under rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product

import numpy as np
from jaxtyping import Int16

from go_rl.core import Objective, TrainingError, load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo import zoo_entry
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problems
from go_rl.graphs.zoo.teaching_plans import teaching_names, teaching_plan
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

DULL = 2e-3
"""Standard deviation of the rewards of a problem that teaches nothing."""
PASSED_OVER = 0.9
"""Share of the draws of such a problem that are not used."""
TURNS = 2
"""Hardware on which the plans of each graph are imitated."""
VALIDATION_SIZES = {"order": 16, "placement": 4}
"""Samples of a validation problem."""
CHIPS_ALONE = {"placement": 20}
"""Samples by group, for a policy that draws no orders."""


@dataclass(frozen=True, eq=False)
class TaughtRing:
    """A problem whose best plan is imitated."""

    name: str
    decoder: RingPlans
    known: Int16[np.ndarray, "N"] | None
    """[N] chips of the best plan known, where the zoo has one."""


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
        self.named = [
            named
            for named in zoo_problems("train", "ring")
            if zoo_entry(named.graph).nodes <= config.max_nodes and not named.all_chips
            if not config.graphs
        ]
        if config.named_share and not self.named:
            raise TrainingError(
                f"train: no named problem has at most max_nodes={config.max_nodes} nodes, or own "
                "graphs take their place; raise max_nodes, or set named_share to 0"
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
        while len(chosen) < config.problems:
            name = self.train[int(rng.integers(len(self.train)))]
            hardware = config.hardware[int(rng.integers(len(config.hardware)))]
            rules = config.rules[int(rng.integers(len(config.rules)))]
            named = config.named_share > 0 and rng.random() < config.named_share
            if named:
                case = self._named(int(rng.integers(len(self.named))))
            else:
                case = self._case(name, hardware, rules, solver=config.samples.solver)
            passed_over = rng.random() < PASSED_OVER
            if passed_over and baseline.deviation(f"{case.name}/{self._first_group}") < DULL:
                continue
            if case.decoder.decides:
                chosen.append(case)
        return chosen

    @property
    def _first_group(self) -> str:
        """Group that is drawn first; its rewards say whether a problem teaches anything."""
        return next(group for group, size in self.config.sizes.items() if size)

    def _named(self, index: int) -> TrainingCase:
        taught = _named_ring(self.named[index])
        return TrainingCase(taught.name, taught.decoder)

    def taught(self) -> Iterator[TaughtRing]:
        """Yield the problems whose plans are imitated: the named ones of the zoo's side ``train``
        that are small enough, then every graph on hardware in turn, under strict rules."""
        config = self.config
        yield from map(_named_ring, self.named)
        for i, name in enumerate(self.train):
            for j in range(TURNS):
                hardware = config.hardware[(i + j) % len(config.hardware)]
                case = self._case(name, hardware, "strict", solver=config.samples.solver)
                assert isinstance(case.decoder, RingPlans)
                yield TaughtRing(case.name.replace("/", "--"), case.decoder, None)

    def validate(self, agent: Agent, group: Group = ALONE) -> tuple[float, dict[str, float]]:
        """Return the score of the validation problems and its parts.

        Rewards are logarithms of the throughput relative to the compiler heuristic. The score adds
        the means, over problems, of a batch's best order, its mean order and its mean placement; of
        a policy that draws no orders, of its best and its mean placement.
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
        orders = self.config.policy.orders
        case = self._case(name, hardware, "strict", solver=self._validated_by)
        sizes = VALIDATION_SIZES if orders else CHIPS_ALONE
        got = collect(agent, case, sizes, Credit(), VALIDATION_SEED).rollouts
        placement = got["placement"].reward
        if not orders:
            return {"best placement": placement.max(), "mean placement": placement.mean()}
        order = got["order"].reward
        return {
            "best order": order.max(),
            "mean order": order.mean(),
            "mean placement": placement.mean(),
        }

    @property
    def _validated_by(self) -> str:
        """Solver mode of validation: that of the run where it is SAMPLE."""
        mode = self.config.samples.solver
        return mode if mode.startswith("sample") else "sample"


@lru_cache(KEPT)
def _named_ring(named: ZooProblem) -> TaughtRing:
    known = teaching_plan(named.name) if named.name in teaching_names("ring") else None
    device = known.device if known is not None else None
    return TaughtRing(named.name, RingPlans(priced_problem(named)), device)


def ring_case(name: str, hardware: str, rules: str, cost: str, solver: str) -> TrainingCase:
    """Return a problem of the zoo."""
    chips = load_hardware(hardware)
    options = ProblemOptions(
        rules=rule_set(rules), memory=False, cost_model=named_cost(cost, chips)
    )
    problem = make_problem(training_graph(name), chips, options)
    decoder = RingPlans(problem, RingWorkspace(problem), solver)
    return TrainingCase(f"{short_name(name)}/{hardware}/{rules}", decoder)
