"""``--pipeline-model-parallel-layout`` of Megatron-LM."""

from __future__ import annotations

from itertools import groupby

from go_rl.plans.sinks.placed import Placed


def render_megatron(plan: Placed) -> str:
    """Return the layout, such as ``Et*8|t*8|t*8|t*8L``; a device without layers is an empty
    stage."""
    chain = plan.ascending(plan.chain)
    letters = "E" + "t" * plan.blocks.count + "L"
    stages = [""] * (chain[-1] + 1)
    for device, letter in zip(chain, letters, strict=True):
        stages[device] += letter
    return "|".join(map(_repeated, stages)) + "\n"


def _repeated(stage: str) -> str:
    runs = [(letter, len(list(run))) for letter, run in groupby(stage)]
    return "".join(letter if count == 1 else f"{letter}*{count}" for letter, count in runs)
