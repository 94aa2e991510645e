"""Weights of the step policy that never saw one of GO's families: six of them, for transfer.

Run: ``python experiments/go_held_out.py``. Searches on all problems of the shipped configuration
once, then, for each family, imitates them without the problems of that family; relatives under
another name stay (seq2seq for GNMT, transformer and gpt for Transformer-XL). Both are kept in
``build/go_held_out`` and not made again; `go_placement.py` and `go_multitask.py` read the weights.
"""

from __future__ import annotations

from pathlib import Path

from go_rows import ROWS

from go_rl.policy.step_agent import new_step_agent
from go_rl.policy.step_weights import StepWeights, save_step_weights
from go_rl.train.config import StepTrainConfig
from go_rl.train.step_problems import StepProblems
from go_rl.train.teaching import imitated, searched
from go_rl.zoo import ZOO_VERSION, zoo_entry

FOLDER = Path(__file__).parent.parent / "build" / "go_held_out"


def family_of(row: str) -> str:
    """Return the family of a row's graph: ``rnnlm``."""
    return zoo_entry(ROWS[row][0]).family


def main() -> None:
    """Make what is missing."""
    config = StepTrainConfig()
    agent = new_step_agent(config.policy, config.seed)
    families = dict.fromkeys(family_of(row) for row in ROWS)
    missing = [family for family in families if not (FOLDER / f"{family}.npz").exists()]
    if not missing:
        return
    keys = StepProblems(config).taught()
    lessons = searched(agent, keys, config.elites, FOLDER / "elites", print)
    for family in missing:
        others = [batch for key, batch in lessons if zoo_entry(key[0]).family != family]
        print(f"without {family}: {len(others)} of {len(lessons)} problems", flush=True)
        taught = imitated(agent, others, config.elites, print)
        card = {"zoo": ZOO_VERSION, "held out": family, "searches": len(others)}
        save_step_weights(StepWeights(taught, f"without-{family}", card), FOLDER / f"{family}.npz")


if __name__ == "__main__":
    main()
