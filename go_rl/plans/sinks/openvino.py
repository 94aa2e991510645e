"""Affinities of OpenVINO's HETERO plugin: device by the friendly name of each operator."""

from __future__ import annotations

import json

import numpy as np

from go_rl.plans.sinks.placed import Placed


def render_affinities(plan: Placed) -> str:
    """Return a JSON object of ``GPU.1`` by node, for ``node.get_rt_info()["affinity"]``."""
    nodes = np.flatnonzero(~plan.graph.is_fed).tolist()
    words = {str(plan.graph.names[node]): _word(plan, int(plan.device[node])) for node in nodes}
    return json.dumps(words, indent=1) + "\n"


def _word(plan: Placed, device: int) -> str:
    first = plan.hardware.num_accelerators
    return f"GPU.{device}" if device < first else f"CPU.{device - first}"
