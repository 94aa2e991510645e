"""Splits of a network by its layers, as people make them by hand: equal parts, parts in proportion
to the speed of devices, and devices that are filled one after the other, as ``device_map`` of
Hugging Face's accelerate does. Each is tried with the orders and fusions of `Composed`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from jaxtyping import Int64

from go_rl.core.decisions import Decisions
from go_rl.objectives.makespan.choices import softly_placed
from go_rl.objectives.makespan.infer_devices import infer_devices
from go_rl.objectives.makespan.methods.best_of import BestOf
from go_rl.objectives.makespan.methods.composed import Order, composition
from go_rl.objectives.makespan.methods.layer_chain import LayerChain, layer_chain
from go_rl.objectives.makespan.units import weights_of
from go_rl.objectives.makespan.workspace import MakespanWorkspace

FILLED = 0.9
"""Share of a device's memory that is filled with weights; the rest is left to results."""
Rule = Callable[[MakespanWorkspace, LayerChain], Int64[np.ndarray, "L"]]
"""Returns the device of each layer."""


def _plans(rule: Rule, workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    graph, decided = workspace.problem.graph, workspace.problem.decisions
    chain = layer_chain(workspace)
    device = workspace.reference.device[0].astype(np.int64)
    if "placement" in decided:
        placed = infer_devices(graph, graph.is_fed, chain.nodes(rule(workspace, chain)))
        device = softly_placed(workspace.choices, placed[None])[0].astype(np.int64)
    orders = (Order.PLACED, Order.TOPOLOGICAL) if "schedule" in decided else (Order.TOPOLOGICAL,)
    for fused in (True, False) if "fusion" in decided else (False,):
        for order in orders:
            yield composition(workspace, device, order, fused)


def _equally(workspace: MakespanWorkspace, chain: LayerChain) -> Int64[np.ndarray, "L"]:
    return chain.cut(np.ones(workspace.num_devices))


def _by_speed(workspace: MakespanWorkspace, chain: LayerChain) -> Int64[np.ndarray, "L"]:
    """A device's speed: one over the seconds that it would take for all that it can run."""
    problem = workspace.problem
    seconds = np.where(np.isfinite(problem.seconds), problem.seconds, 0.0).sum(axis=1)
    return chain.cut(1 / np.maximum(seconds[problem.device_kind], 1e-300))


def _in_order(workspace: MakespanWorkspace, chain: LayerChain) -> Int64[np.ndarray, "L"]:
    """The next layer goes to the same device while its weights fit there; the last one takes the
    rest."""
    weights = weights_of(workspace, chain.layer, len(chain.work))
    device, held, found = 0, 0.0, np.zeros(len(weights), np.int64)
    for layer, size in enumerate(weights.tolist()):
        room = FILLED * workspace.problem.hardware.devices[device].memory_bytes
        if held and held + size > room and device + 1 < workspace.num_devices:
            device, held = device + 1, 0.0
        found[layer], held = device, held + size
    return found


EqualLayers = partial(BestOf, "layers-equal", partial(_plans, _equally))
"""`Optimizer`: consecutive layers of equal work on each device."""
LayersBySpeed = partial(BestOf, "layers-by-speed", partial(_plans, _by_speed))
"""`Optimizer`: consecutive layers, of which a device has work in proportion to its speed."""
FillInOrder = partial(BestOf, "fill-in-order", partial(_plans, _in_order))
"""`Optimizer`: layers fill the memory of one device after the other."""
