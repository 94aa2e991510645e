"""Contradictions in words: which rule clashed, and at which nodes."""

from __future__ import annotations

from go_rl.solvers.domains import BETWEEN, CLASH_BLOCK, CLASH_RULE, MEMORY, NO_SKIP, ORDER, TRIANGLE
from go_rl.solvers.network import State
from go_rl.solvers.ring_instance import RingInstance

RULE_NAMES = {
    ORDER: "acyclic (data flows to the same or a higher chip)",
    BETWEEN: "triangle (a node between the ends of an edge shares a chip with one of them)",
    TRIANGLE: "triangle (no chip edge beside a longer chip path)",
    NO_SKIP: "no-skip (chips 0..m are all used)",
    MEMORY: "memory (weights fit each chip)",
}


def explain(instance: RingInstance, state: State) -> str:
    """Return a sentence for the clash that the state remembers."""
    rule = RULE_NAMES[state.cursor[CLASH_RULE]]
    at = int(state.cursor[CLASH_BLOCK])
    if at < 0:
        where = f"chip {-1 - at}"
        detail = (
            "no node can still be put there" if "no-skip" in rule else "more is needed than is free"
        )
        return f"rule {rule}: {where}: {detail}; {_size(instance)}"
    names = [repr(instance.problem.graph.names[n]) for n in instance.members(at)[:4]]
    return f"rule {rule}: no chip is left for node {', '.join(names)}; {_size(instance)}"


def _size(instance: RingInstance) -> str:
    chips = instance.problem.hardware.num_devices
    return f"{instance.num_blocks} indivisible blocks on {chips} chips"
