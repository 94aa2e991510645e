"""What each part of the dispatch policy's pretraining gains, at a tenth of its budget.

Run: ``python -m experiments learning.dispatch_ablations [--arms NAME ...]``. Every arm is a whole
pretraining with one part changed, from searches that are kept; it is judged on the problems of
`learning.dispatch_arms`, against the plans that are best known there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from experiments.experiment import Experiment, say
from experiments.learning.dispatch_arms import (
    COSTS,
    COUNTS,
    Row,
    arms_table,
    best_of_first,
    family,
    problems,
)
from experiments.learning.dispatch_curves import best_so_far, dispatch_plans
from experiments.rows import read_rows
from go_rl.policy.agent import Agent
from go_rl.policy.config import DispatchPolicyConfig
from go_rl.policy.learn.config import DispatchTrainConfig
from go_rl.policy.learn.problems.curriculum import CACHE
from go_rl.policy.learn.prototypes.run import pretrain_prototypes
from go_rl.policy.prototypes.plans import preferred

Change = Callable[[DispatchTrainConfig], DispatchTrainConfig]
WHOLE = "whole"
"""The arm with which all others are compared."""


def of_policy(**parts: Any) -> Change:
    """Return the change of parts of the network."""
    return lambda config: replace(config, policy=replace(config.policy, **parts))


def of_run(**parts: Any) -> Change:
    """Return the change of parts of the training."""
    return lambda config: replace(config, **parts)


def prototypes(count: int) -> Change:
    """Return the change to so many prototypes; no best of more is asked for."""

    def changed(config: DispatchTrainConfig) -> DispatchTrainConfig:
        best_of = tuple(k for k in config.best_of if k <= count)
        return of_policy(prototypes=count)(replace(config, best_of=best_of))

    return changed


ARMS: dict[str, Change] = {
    WHOLE: of_run(),
    "no GraphSAGE": of_policy(sage_layers=0),
    "no attention": of_policy(attention_layers=0),
    "no recurrence": of_policy(recurrence=False),
    "no conditioning": of_policy(conditioning=False),
    "no choice learned": of_run(choices=0),
    "listwise alone": of_run(listwise=1.0),
    "best of k alone": of_run(listwise=0.0),
    "1 prototype": prototypes(1),
    "8 prototypes": prototypes(8),
    "zoo alone": of_run(generated=0),
    "100 generated": of_run(generated=100),
    "2,498 generated": of_run(generated=2498),
}
"""Changes by the names of the arms."""


@dataclass(frozen=True)
class DispatchAblations(Experiment):
    """Options of this experiment."""

    arms: tuple[str, ...] = tuple(ARMS)
    """Arms that are made."""
    seeds: int = 2
    """Trainings of each arm."""
    generated: int = 20
    """Generated problems that judge, each at two prices."""
    folder: Path = Path("build/dispatch_ablations")
    """Folder of the trainings."""
    finds: Path = Path("experiments/learning/runs/searches")
    """Folder of the searches."""

    def run(self) -> None:
        """Train what is missing, judge it, write the page."""
        kept = self.kept_rows(Row)
        done = {(row.arm, row.seed) for row in kept.rows}
        missing = [each for each in product(self.arms, range(self.seeds)) if each not in done]
        agents = {each: self._trained(*each) for each in missing}
        for row in self._judged(agents):
            kept.add(row)
        known = read_rows(Row, self.out / "dispatch_arms.csv")
        self.write_page(page(kept.rows, known, self))

    def config(self, seed: int) -> DispatchTrainConfig:
        """The training of the whole, which arms change."""
        policy = DispatchPolicyConfig(prototypes=64, hidden=32, sage_layers=2, attention_layers=1)
        return DispatchTrainConfig(
            name="ablation", seed=seed, generated=500, rollouts=256, candidates=100, judged=160,
            examples=160, choices=150, updates=0, learning_rate=2e-3,
            policy=policy, finds=str(self.finds),
        )  # fmt: skip

    def _trained(self, arm: str, seed: int) -> Agent:
        config = ARMS[arm](self.config(seed))
        folder = self.folder / f"{arm.replace(' ', '-').replace(',', '')}-{seed}"
        whole = self.folder / f"{WHOLE}-{seed}" / CACHE
        if whole.exists() and not folder.exists():  # tables of equal weights are read again
            shutil.copytree(whole, folder / CACHE)
        return pretrain_prototypes(config, folder, say).agent

    def _judged(self, agents: dict[tuple[str, int], Agent]) -> Iterator[Row]:
        for cost, problem in product(COSTS if agents else (), problems(self.generated)):
            plans = dispatch_plans(problem, cost)
            for (arm, seed), agent in agents.items():
                curve = best_so_far(plans, preferred(agent, plans)[: max(COUNTS)])
                best = best_of_first(curve)
                yield Row(f"{problem.name}.{cost}", family(problem), arm, seed, *best)


def page(rows: list[Row], known: list[Row], options: DispatchAblations) -> str:
    """Return the page: distance from the best known and seconds over those of the whole."""
    lines = [
        "# Parts of the dispatch policy's pretraining", "",
        f"{len({row.problem for row in rows})} problems of validation families and of generated "
        f"networks, {options.seeds} trainings of each arm. *k*: mean distance of the best of the "
        "first k plans from the best known; beside it an arm's seconds over those of the whole, "
        "families and kinds alike, with the 95 % interval over them.", "",
    ]  # fmt: skip
    return "\n".join([*lines, *arms_table(rows, [*known, *rows], WHOLE)])
