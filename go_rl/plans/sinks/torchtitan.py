"""``parallelism.module_fqns_per_model_part`` of torchtitan: the modules of each stage."""

from __future__ import annotations

import json

from go_rl.plans.sinks.placed import Placed
from go_rl.plans.splits.module_stages import TITAN_KEY, TITAN_NAMES
from go_rl.plans.splits.named_nodes import node_names

OUTERMOST = "model."
"""Module of transformers around those that torchtitan's models have."""


def render_torchtitan(plan: Placed) -> str:
    """Return a JSON object with the list of modules of each stage, by the names of torchtitan's
    models where transformers has others."""
    chain, blocks = plan.ascending(plan.chain), plan.blocks
    parts: list[list[str]] = [[] for _ in range(chain[-1] + 1)]
    for position, device in enumerate(chain):
        if 0 < position < blocks.behind:
            parts[device].append(_own_name(plan, blocks.paths[position - 1]))
        else:
            parts[device] += [_own_name(plan, name) for name in plan.modules_at(position)]
    return json.dumps({TITAN_KEY: parts}, indent=1) + "\n"


def _own_name(plan: Placed, module: str) -> str:
    if plan.graph.meta.get("format") != "huggingface":
        return module
    inner = module.removeprefix(OUTERMOST)
    theirs = {ours: name for name, ours in TITAN_NAMES.items()}
    return theirs.get(inner, inner if node_names(plan.graph).of_module(inner) else module)
