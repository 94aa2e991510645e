"""``split_spec`` of torch.distributed.pipelining: where each stage but the first begins."""

from __future__ import annotations

import json

from go_rl.plans.sinks.placed import Placed


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
