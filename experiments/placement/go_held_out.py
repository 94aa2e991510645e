"""Weights of the makespan policy that never saw half of GO's families, for transfer to them.

Run: ``python -m experiments.placement.go_held_out``. Searches on all problems of the shipped
configuration once, then teaches each half without the problems of its families (`FOLDS`); relatives
under another name stay (seq2seq for GNMT, transformer and gpt for Transformer-XL). All is kept in
``build/go_held_out`` and not made again; `go_placement.py` and `go_multitask.py` read the weights.
``--fold NAME`` makes one half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from experiments.experiment import ROOT, Script
from experiments.placement.go_rows import ROWS
from go_rl.core import Objective
from go_rl.graphs.zoo import ZOO_VERSION, zoo_entry
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.learn.config import MakespanTrainConfig
from go_rl.policy.learn.critic.teaching import searched, taught
from go_rl.policy.learn.problems.makespan import MakespanProblems
from go_rl.policy.weights import Weights, load_weights, save_weights

FOLDER = ROOT / "build" / "go_held_out"
FOLDS = {
    "first": ("rnnlm", "transformer-xl", "inception"),
    "second": ("gnmt", "amoebanet", "wavenet"),
}
"""Families that each half of the weights has not seen."""


@dataclass(frozen=True)
class GoHeldOut(Script):
    """Which half."""

    fold: Literal["first", "second", "both"] = "both"

    def run(self) -> None:
        """Make what is missing."""
        config = MakespanTrainConfig()
        agent = new_agent(config.policy, config.seed, config.objective)
        keys = MakespanProblems(config).taught()
        lessons = searched(agent, keys, config.searches, FOLDER / "searches", print)
        for fold, families in FOLDS.items():
            path = FOLDER / f"{fold}.npz"
            if self.fold not in (fold, "both") or path.exists():
                continue
            seen = [
                (key, lesson) for key, lesson in lessons if zoo_entry(key[0]).family not in families
            ]
            print(
                f"without {', '.join(families)}: {len(seen)} of {len(lessons)} problems", flush=True
            )
            card = {"zoo": ZOO_VERSION, "held out": list(families), "searches": len(seen)}
            save_weights(Weights(taught(agent, seen, config, print), fold, card), path)


def held_out_agent(row: str) -> Agent:
    """Return the policy that has not seen the family of a row's graph."""
    family = zoo_entry(ROWS[row][0]).family
    fold = next(name for name, families in FOLDS.items() if family in families)
    path = FOLDER / f"{fold}.npz"
    if not path.exists():
        raise SystemExit(f"{path} is missing: run experiments/placement/go_held_out.py first")
    return load_weights(path, Objective.MAKESPAN).agent


if __name__ == "__main__":
    GoHeldOut.main()
