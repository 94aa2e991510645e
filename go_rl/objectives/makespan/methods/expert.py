"""The human expert's placement: a rule for each family of networks, read from the node names.

Recurrent networks: each LSTM layer on a device of its own, as Wu et al. 2016 ("Google's neural
machine translation system") ran GNMT and Mirhoseini et al. 2017 ("Device placement optimization
with reinforcement learning") let their expert do; the embedding with the first layer, the softmax
with the last, the attention with the decoder's bottom layer, which it serves. Transformers, WaveNet
and AmoebaNet: contiguous ranges of layers or cells (Huang et al. 2019, "GPipe"). Inception: the
branches of a block side by side (Szegedy et al. 2015, "Going deeper with convolutions"). Any other
network: contiguous layers of equal work. A backward node and the update of a weight sit with their
forward layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Int16, Int64

from go_rl.core.decisions import Decisions
from go_rl.graphs.cutting.layers import layer_names
from go_rl.objectives.makespan.choices import NOWHERE, softly_placed
from go_rl.objectives.makespan.infer_devices import infer_devices
from go_rl.objectives.makespan.methods.best_of import BestOf
from go_rl.objectives.makespan.methods.layer_chain import layer_chain
from go_rl.objectives.makespan.workspace import MakespanWorkspace


def _plans(workspace: MakespanWorkspace, seed: int) -> Iterator[Decisions]:
    device = softly_placed(workspace.choices, expert_devices(workspace)[None])
    yield workspace.decisions(device)


MakespanExpert = partial(BestOf, "expert", _plans)
"""`Optimizer`: the one plan that the family's rule gives, in topological order, unfused."""


@dataclass(frozen=True)
class ExpertStage:
    """Scopes that make up one part of a network."""

    pattern: str
    """Searched in the scope; its number, if any, counts the layers of a chain."""
    chain: str
    """Chain of layers that is spread over the devices, or `FIRST` or `LAST` device."""
    skip: int = 0
    """Numbers that come before the first layer."""
    each: int = 1
    """Numbers of one layer."""
    spare: int = 0
    """Highest numbers, which belong to the last layer."""


FIRST, LAST = "first", "last"

FAMILIES: dict[str, tuple[ExpertStage, ...]] = {
    r"^RNNLM": (
        ExpertStage(r"Embed_", FIRST),
        ExpertStage(r"LSTMCell_(\d+)", "layers"),
        ExpertStage(r"Dense_", LAST),
    ),
    r"^GNMT": (
        ExpertStage(r"Embed_", FIRST),
        ExpertStage(r"_encoded.*LSTMCell_(\d+)", "encoder", skip=1),  # 0 and 1: the two directions
        ExpertStage(r"_decoded.*LSTMCell_(\d+)", "decoder"),
        ExpertStage(r"_bottom", "decoder"),
        ExpertStage(r"Dense_", LAST),
    ),
    r"^TransformerXL": (
        ExpertStage(r"attend$", LAST),
        ExpertStage(r"Embed_", FIRST),
        ExpertStage(r"(?:RelativeAttention|FeedForward)_(\d+)", "layers"),
        ExpertStage(r"LayerNorm_(\d+)", "layers", each=2),
    ),
    r"^WaveNet": (
        ExpertStage(r"/Conv_0$", FIRST),
        ExpertStage(r"Conv_(\d+)", "layers", skip=1, each=3, spare=2),
    ),
    r"^AmoebaNet": (
        ExpertStage(r"/Cell_(\d+)", "cells"),
        ExpertStage(r"Dense_", LAST),
        ExpertStage(r"(?:Conv|BatchNorm)_0$", FIRST),
    ),
}
"""Parts of a network by a scope that identifies its family; the first pattern found counts."""


def expert_devices(workspace: MakespanWorkspace) -> Int16[np.ndarray, "N"]:
    """Return [N] devices by the rule of the graph's family."""
    graph, devices = workspace.problem.graph, workspace.num_devices
    scopes = layer_names(graph)
    for root, stages in FAMILIES.items():
        if any(re.search(root, scope) for scope in set(scopes)):
            by_scope = _staged(sorted(set(scopes)), stages, devices)
            break
    else:
        by_scope = tower_devices(workspace, scopes)
    if by_scope:
        device = np.array([by_scope.get(scope, NOWHERE) for scope in scopes], np.int64)
    else:
        chain = layer_chain(workspace)
        device = chain.nodes(chain.cut(np.ones(devices)))
    return infer_devices(graph, graph.is_fed, device)


def _staged(scopes: list[str], stages: tuple[ExpertStage, ...], devices: int) -> dict[str, int]:
    """Device of each scope that a stage knows: layer i of n on device i D // n."""
    matches: dict[str, tuple[ExpertStage, int]] = {}
    for scope in scopes:
        for stage in stages:
            if found := re.search(stage.pattern, scope):
                matches[scope] = (stage, int(found[1]) if found.groups() else NOWHERE)
                break
    last = {
        stage: max((n for s, n in matches.values() if s == stage), default=0) for stage in stages
    }
    chains: dict[str, dict[str, int]] = {}
    for scope, (stage, number) in matches.items():
        layer = max(min(number, last[stage] - stage.spare) - stage.skip, NOWHERE) // stage.each
        chains.setdefault(stage.chain, {})[scope] = layer
    return {
        scope: device
        for chain, members in chains.items()
        for scope, device in _spread(chain, members, devices).items()
    }


def _spread(chain: str, layer_of: dict[str, int], devices: int) -> dict[str, int]:
    if chain in (FIRST, LAST):
        return dict.fromkeys(layer_of, 0 if chain == FIRST else devices - 1)
    found = sorted(set(layer_of.values()) - {NOWHERE}) or [NOWHERE]
    place = {layer: i for i, layer in enumerate(found)}
    return {scope: place.get(n, 0) * devices // len(found) for scope, n in layer_of.items()}


JOINT = re.compile(r"^(mixed\d+|mixed_\d[a-z]|block\d+_\d+_mixed)$")
"""Scope of the concatenation that ends a block."""
TRUNK = -2
"""A node that several branches need."""
OUTSIDE = -1


def tower_devices(workspace: MakespanWorkspace, scopes: tuple[str, ...]) -> dict[str, int]:
    """Return the device of every scope of an Inception, by towers: the branches of a block side by
    side; nothing for other networks.

    The branches of a block, heaviest first, go to the device with the least work of the block so
    far; what several branches share stays on the first device, as do the joints.
    """
    graph, devices = workspace.problem.graph, workspace.num_devices
    forward = ~graph.is_backward & ~graph.is_fed
    joints = [n for n in np.flatnonzero(forward).tolist() if JOINT.match(scopes[n])]
    if not joints:
        return {}
    found = dict.fromkeys((s for s in scopes if s), 0)
    seconds = workspace.problem.seconds.min(axis=0)
    seen = np.zeros(graph.num_nodes, np.bool_)
    for joint in joints:
        branch = _branches(workspace, joint, forward & ~seen)
        inside = np.flatnonzero(branch >= 0)
        work = np.bincount(branch[inside], seconds[inside])
        load, device = np.zeros(devices), np.zeros(len(work), np.int64)
        for b in np.argsort(-work, kind="stable"):
            device[b] = np.argmin(load)
            load[device[b]] += work[b]
        found |= {scopes[n]: int(device[branch[n]]) for n in inside if scopes[n]}
        seen |= branch != OUTSIDE
    return found


def _branches(workspace: MakespanWorkspace, joint: int, free: np.ndarray) -> Int64[np.ndarray, "N"]:
    """[N] number of the joint's operand that a node alone leads to; `TRUNK`, `OUTSIDE`."""
    graph = workspace.problem.graph
    offsets, edges = graph.predecessors
    branch = np.full(graph.num_nodes, OUTSIDE, np.int64)
    branch[joint] = TRUNK
    operands = np.unique(graph.senders[edges[offsets[joint] : offsets[joint + 1]]])
    for number, node in enumerate(operands):
        if free[node]:
            branch[node] = number
    for node in range(joint - 1, -1, -1):
        if branch[node] == OUTSIDE:
            continue
        for before in graph.senders[edges[offsets[node] : offsets[node + 1]]]:
            if not free[before]:
                continue
            same = branch[before] in (OUTSIDE, branch[node])
            branch[before] = branch[node] if same else TRUNK
    return branch
