"""``-ts`` of llama.cpp: each device's share of the layers, the output counted as one more."""

from __future__ import annotations

from go_rl.plans.sinks.placed import Placed


def render_llama_cpp(plan: Placed) -> str:
    """Return the option, such as ``-ts 9,8,8,8``, for ``-ngl 99 -sm layer``."""
    layers = plan.ascending(plan.chain[1:])
    counts = [layers.count(device) for device in range(layers[-1] + 1)]
    return f"-ts {','.join(map(str, counts))}\n"
