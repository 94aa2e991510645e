"""Sinks that list modules by stage: ``parallelism.module_fqns_per_model_part`` of torchtitan, and
``split_spec`` of torch.distributed.pipelining, where each stage but the first begins."""

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


def render_split_spec(plan: Placed) -> str:
    """Return a JSON object of ``BEGINNING``, which is ``SplitPoint.BEGINNING``, by module; stages
    are numbered without gaps, as torch numbers them."""
    chain, blocks = plan.ascending(plan.chain), plan.blocks
    used = sorted(set(chain))
    if used != list(range(len(used))):
        raise plan.error(f"numbers stages 0, 1, 2, ..., and the plan uses devices {used}")
    points: dict[str, str] = {}
    for position in range(1, blocks.behind + 1):
        if chain[position] != chain[position - 1]:
            inside = position < blocks.behind
            path = blocks.paths[position - 1] if inside else plan.modules_at(position)[0]
            points[path] = "BEGINNING"
    if not points:
        raise plan.error("has nothing to say of a plan on one device")
    return json.dumps(points, indent=1) + "\n"
