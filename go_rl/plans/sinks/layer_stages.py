"""Sinks that count layers: strings for vLLM (``VLLM_PP_LAYER_PARTITION``) and for Megatron-LM
(``--pipeline-model-parallel-layout``)."""

from __future__ import annotations

from itertools import groupby

from go_rl.plans.sinks.placed import Placed


def render_megatron(plan: Placed) -> str:
    """Return Megatron-LM's layout, such as ``Et*8|t*8|t*8|t*8L``; a device without layers is an
    empty stage."""
    chain = plan.ascending(plan.chain)
    letters = "E" + "t" * plan.blocks.count + "L"
    stages = [""] * (chain[-1] + 1)
    for device, letter in zip(chain, letters, strict=True):
        stages[device] += letter
    return "|".join(map(_repeated, stages)) + "\n"


def _repeated(stage: str) -> str:
    runs = [(letter, len(list(run))) for letter, run in groupby(stage)]
    return "".join(letter if count == 1 else f"{letter}*{count}" for letter, count in runs)


def render_vllm(plan: Placed) -> str:
    """Return the layers of each of vLLM's stages, such as ``9,8,8,7``."""
    layers = plan.ascending(plan.chain[1:-1])
    return ",".join(str(layers.count(stage)) for stage in range(layers[-1] + 1)) + "\n"
