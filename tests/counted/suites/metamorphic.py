"""Laws between a problem and another that follows from it: what must stay, and what may improve.

- relabel: the nodes in another topological order, under other names. Plans are worth the same.
- scale: every time four times as long. Methods decide the same, and values and bounds are fourfold.
- add a device: all plans stay legal at their value, so no optimum rises.
- relax memory: the same.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from runner.suite import Suite
from small_graphs import graph_of

from go_rl.core import Objective, OpGraph, OpKind, Plan, Problem
from go_rl.graphs.readers.graph_builder import Node
from go_rl.verify.kernel_rules import legal_kernels
from go_rl.verify.makespan_value import replayed
from go_rl.verify.rules import legal
from go_rl.verify.value import plan_value

from ..random_problems import TOPOLOGIES, FewerLaunches, problem_on, quick_plan, random_graph

PROBLEMS = 2_500
FACTOR = 4.0
"""A power of two: products with it are exact."""
CLOSE = 1e-9


def trial(index: int) -> str | None:
    """All four laws on one problem."""
    problem = problem_on(
        TOPOLOGIES[index % len(TOPOLOGIES)], random_graph(3 * 10**6 + index, 24), index
    )
    plan = quick_plan(problem, index)
    laws = {
        "relabel": relabelled,
        "scale": scaled,
        "add a device": one_more,
        "relax memory": relaxed,
    }
    wrong = [f"{law}: {what}" for law, test in laws.items() for what in test(problem, plan, index)]
    return f"{problem.objective} by {plan.optimizer}: {'; '.join(wrong)}" if wrong else None


def relabelled(problem: Problem, plan: Plan, seed: int) -> Iterator[str]:
    """Nodes renamed and in another order; the plan goes with them."""
    order = another_order(problem.graph, seed)
    other = reordered(problem, order)
    if not plan.evaluation.status.ok:
        return
    place = np.argsort(order)
    group = plan.fusion_group
    if group is not None:
        lowest = np.full(len(order), len(order))
        np.minimum.at(lowest, group, place)
        group = lowest[group][order]
    moved = replace(
        plan,
        device=plan.device[order],
        replicas={int(place[n]): copies for n, copies in plan.replicas.items()},
        priority=None if plan.priority is None else plan.priority[order],
        fusion_group=group,
    )
    ties = problem.objective is Objective.MAKESPAN  # broken by the order of nodes
    if (changed := changes(other, moved)) and not (ties and changed in ("value", "memory")):
        yield f"the plan does not stay as it is: {changed}"
    fresh = quick_plan(other, seed)
    for one, two in ((plan, fresh), (fresh, plan)):
        if one.evaluation.status.ok and one.bound > two.value * (1 + CLOSE):
            yield f"a bound of {one.bound!r} on one, a plan of {two.value!r} on the other"


def scaled(problem: Problem, plan: Plan, seed: int) -> Iterator[str]:
    """All times fourfold."""
    links = problem.hardware.links
    slower = replace(
        links, bandwidth=links.bandwidth / FACTOR, latency_seconds=links.latency_seconds * FACTOR
    )
    other = replace(
        problem,
        hardware=replace(problem.hardware, links=slower),
        seconds=problem.seconds * FACTOR,
        transfer_seconds=problem.transfer_seconds * FACTOR,
        kernels=FewerLaunches(problem.seconds * FACTOR) if problem.kernels else None,
        gap_seconds=None if problem.gap_seconds is None else problem.gap_seconds * FACTOR,
    )
    fresh = quick_plan(other, seed)
    if fresh.evaluation.status is not plan.evaluation.status:
        yield f"{plan.evaluation.status} became {fresh.evaluation.status}"
    elif fresh.evaluation.status.ok:
        if not np.isclose(fresh.value, FACTOR * plan.value, rtol=CLOSE):
            yield f"{plan.value!r} s became {fresh.value!r}"
        if not np.isclose(fresh.bound, FACTOR * plan.bound, rtol=CLOSE, atol=CLOSE):
            yield f"a bound of {plan.bound!r} s became {fresh.bound!r}"


def one_more(problem: Problem, plan: Plan, seed: int) -> Iterator[str]:
    """A chip more at the end of the ring; elsewhere one more of the first kind, in front."""
    if problem.all_chips:
        return
    chips, ring = problem.hardware.devices, problem.objective is Objective.RING
    shift = 0 if ring else 1
    added = (*chips, chips[-1]) if ring else (chips[0], *chips)
    other = replace(
        problem,
        hardware=replace(problem.hardware, devices=added),
        fixed={n: d + shift for n, d in problem.fixed.items()},
    )
    yield from no_worse(other, plan, seed, device=plan.device + np.int16(shift))


def relaxed(problem: Problem, plan: Plan, seed: int) -> Iterator[str]:
    """Twice the memory everywhere, or none of it checked."""
    chips = tuple(replace(c, memory_bytes=2 * c.memory_bytes) for c in problem.hardware.devices)
    roomy = replace(problem, hardware=replace(problem.hardware, devices=chips))
    for other in (roomy, replace(problem, memory=False)):
        yield from no_worse(other, plan, seed, device=plan.device)


def no_worse(other: Problem, plan: Plan, seed: int, device: np.ndarray) -> Iterator[str]:
    """The plan is one of the other problem, which claims nothing against it."""
    if not plan.evaluation.status.ok:
        return
    if changed := changes(other, replace(plan, device=device)):
        yield f"the plan does not stay as it is: {changed}"
    fresh = quick_plan(other, seed)
    if fresh.bound > plan.value * (1 + CLOSE):
        yield f"a bound of {fresh.bound!r} s, but the plan of {plan.value!r} is still legal"
    if fresh.optimal and fresh.value > plan.value * (1 + 1e-6):
        yield f"{fresh.value!r} s is called optimal, but {plan.value!r} is still possible"
    if str(fresh.evaluation.status) == "infeasible":
        yield "nothing is possible any more"


def changes(problem: Problem, plan: Plan) -> str:
    """What the checker finds otherwise in a problem of which a plan decides only what to do: the
    first rule that breaks, ``value`` or ``memory``; empty: nothing."""
    if broken := legal(problem, plan.device, plan.replicas):
        return broken[0].rule
    if problem.objective is not Objective.MAKESPAN:
        value = plan_value(problem, plan.device, plan.replicas)
    else:
        decided = (plan.device, plan.priority, plan.fusion_group)
        if broken := legal_kernels(problem, *decided):
            return broken[0].rule
        step = replayed(problem, *decided)
        room = [chip.memory_bytes * (1 + CLOSE) for chip in problem.hardware.devices]
        if problem.memory and any(p > r for p, r in zip(step.peak_bytes, room, strict=True)):
            return "memory"
        value = step.seconds
    return "" if np.isclose(value, plan.value, rtol=CLOSE) else "value"


def another_order(graph: OpGraph, seed: int) -> np.ndarray:
    """[N] a random topological order."""
    rng = np.random.default_rng((seed, 2))
    left = np.bincount(graph.receivers, minlength=graph.num_nodes)
    order: list[int] = []
    ready = np.flatnonzero(left == 0).tolist()
    while ready:
        node = ready.pop(int(rng.integers(len(ready))))
        order.append(node)
        for v in graph.receivers[graph.senders == node].tolist():
            left[v] -= 1
            if not left[v]:
                ready.append(v)
    return np.array(order)


def reordered(problem: Problem, order: np.ndarray) -> Problem:
    """The problem with node ``order[i]`` as node i, called ``x<i>``."""
    graph, place = problem.graph, np.argsort(order)
    nodes = (
        Node(
            f"x{i}", "Op", OpKind(int(graph.kind[n])),
            output_bytes=float(graph.output_bytes[n]), weight_bytes=float(graph.weight_bytes[n]),
            weight_arrays={f"w{a}": float(graph.tied_bytes[a])
                           for a in graph.tied_array[graph.tied_node == n].tolist()},
            colocation=int(graph.colocation[n]), is_backward=bool(graph.is_backward[n]),
            is_output=bool(graph.is_output[n]),
        )
        for i, n in enumerate(order.tolist())
    )  # fmt: skip
    ends = place[graph.senders].tolist(), place[graph.receivers].tolist()
    edges = zip(*ends, graph.edge_bytes.tolist(), graph.edge_output.tolist(), strict=True)
    built = graph_of(nodes, edges, graph.name)
    assert [str(name) for name in built.names] == [f"x{i}" for i in range(len(order))]
    seconds, gaps = problem.seconds[:, order], problem.gap_seconds
    return replace(
        problem,
        graph=built,
        seconds=seconds,
        output_bytes=built.output_bytes,
        weight_bytes=built.weight_bytes,
        edge_bytes=built.edge_bytes,
        transfer_seconds=problem.transfer_seconds[order],
        fixed={int(place[n]): d for n, d in problem.fixed.items()},
        kernels=FewerLaunches(seconds) if problem.kernels else None,
        gap_seconds=None if gaps is None else gaps[order],
    )


SUITE = Suite(
    name="metamorphic",
    proves="plans keep their value when nodes are relabelled, scale with time, and stay legal with "
    "a device or memory more, which no bound or proof contradicts",
    unit="laws",
    count=PROBLEMS,
    each=4,
    trial=trial,
)
