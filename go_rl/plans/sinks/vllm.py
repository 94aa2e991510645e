"""``VLLM_PP_LAYER_PARTITION`` of vLLM: layers of each stage."""

from __future__ import annotations

from go_rl.plans.sinks.placed import Placed


def render_vllm(plan: Placed) -> str:
    """Return the string, such as ``9,8,8,7``."""
    layers = plan.ascending(plan.chain[1:-1])
    return ",".join(str(layers.count(stage)) for stage in range(layers[-1] + 1)) + "\n"
