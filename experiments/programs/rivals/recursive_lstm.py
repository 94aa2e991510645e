"""`RecursiveLstm`: a recursive LSTM over the whole tree of a loop nest (Tiramisu; Baghdadi et al.,
"A Deep Learning Based Cost Model for Automatic Code Optimization", MLSys 2021, section 4.2).

At each loop one LSTM reads the embeddings of its statements, another those of its inner loops; a
layer joins what both remember into the loop's embedding. The outside of all loops is treated like a
loop. Only programs of one tree share a batch, as in the published code. A tree (`NestTree`) is
walked as a list of events: a *leaf* is read inside the loop that is open, or a *close* ends a loop,
whose embedding goes to the loop around.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int32, Int64

from experiments.programs.rivals.network_rival import NetworkRival, RivalRun
from go_rl.core import TrainingError
from go_rl.core.files.strict_json import parse_json
from go_rl.costs.programs.features import LEAF_NUMBERS
from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.learn.network import Layers
from go_rl.costs.programs.learn.prepared import LEAF_SIZES, InputScale, filled_size, prepare

NOTHING, LEAF, CLOSE = 0, 1, 2
"""Kinds of events."""
EVENT_SIZES = (16, 32, 64, 128, 256)
LEVEL_SIZES = (8, 16, 32)
"""To which events and levels are filled up, so that few shapes are compiled."""
Shape = tuple[tuple[int, bool], ...]
"""Depth and whether a statement, of each node in pre-order."""


@dataclass(frozen=True, eq=False)
class NestTree:
    """A tree and where its vectors are."""

    shape: Shape
    events: Int32[np.ndarray, "T 3"]
    """[T, 3] kind, level (open loops around; 0: outside of all) and number of the leaf."""
    positions: Int64[np.ndarray, "L"]
    """[L] position of each leaf in the pre-order serialisation (`CompactAst.ordering`)."""

    @property
    def levels(self) -> int:
        """Largest number of open loops, and the outside."""
        return int(self.events[:, 1].max()) + 1


def nest_trees(inputs: ProgramInputs, who: str) -> tuple[dict[Shape, NestTree], list[Shape]]:
    """Return the distinct trees of programs, and that of each program.

    Args:
        inputs: programs.
        who: reads them, for the message.

    Raises:
        TrainingError: loop nests are not known.
    """
    if not inputs.nests:
        raise TrainingError(
            f"{who} reads whole loop nests, and of these programs only features are known; use "
            "records of go-rl measure programs"
        )
    numbers, place = np.unique(inputs.nest, return_inverse=True)
    shapes = [_shape(parse_json(inputs.nests[number])) for number in numbers.tolist()]
    trees = {shape: tree_of(shape) for shape in dict.fromkeys(shapes)}
    return trees, [shapes[i] for i in place.tolist()]


def tree_of(shape: Shape) -> NestTree:
    """Return the events of a tree: its loops close when the next node is outside of them."""
    events: list[tuple[int, int, int]] = []
    positions: list[int] = []
    loops = 0
    for node, (depth, statement) in enumerate(shape):
        events.extend((CLOSE, level, 0) for level in range(loops, depth, -1))
        loops = depth
        if statement:
            events.append((LEAF, depth, len(positions)))
            positions.append(node + len(positions))
        else:
            loops += 1
    events.extend((CLOSE, level, 0) for level in range(loops, 0, -1))
    return NestTree(shape, np.array(events, np.int32), np.array(positions, np.int64))


def _shape(document: Any) -> Shape:
    """Of a nest's JSON (`go_rl.costs.programs.nests.nest_json`), which was checked when it was
    read."""
    return tuple(
        (node["d"], True) if isinstance(node, dict) else (node[0], False)
        for node in document["nodes"]
    )


class TreeBatch(NamedTuple):
    """``B`` programs of one tree."""

    leaves: Any
    """[B, L, 164] standardised leaf vectors; 0 where a leaf has none."""
    events: Any
    """[T, 3] see `NestTree`; what fills it up is `NOTHING`."""
    levels: Any
    """[V] zeros, as many as there may be loops around a statement, and one for the outside."""
    devices: Any
    """[B, 2 D] standardised numbers of targets, and which are known."""


class RecursiveNetwork(nn.Module):
    """See above."""

    leaf_layers: tuple[int, ...] = (128,)
    """Hidden units of the layers that embed a statement."""
    units: int = 64
    """Of embeddings and of both LSTMs."""
    decoder_layers: tuple[int, ...] = (96, 96)

    @nn.compact
    def __call__(self, batch: TreeBatch) -> Float[Array, "B"]:
        """Return [B] standardised labels."""
        units = self.units
        leaves = nn.gelu(Layers((*self.leaf_layers, units), name="leaf")(batch.leaves))
        # Matrices are declared here: the walk is a scan over plain functions.
        weights = {
            name: (
                self.param(f"{name}_w", nn.initializers.lecun_normal(), (2 * units, wide)),
                self.param(f"{name}_b", nn.initializers.zeros_init(), (wide,)),
            )
            for name, wide in (("statements", 4 * units), ("loops", 4 * units), ("join", units))
        }
        empty = jnp.zeros((len(batch.levels), leaves.shape[0], units), leaves.dtype)
        state = {"statements": (empty, empty), "loops": (empty, empty)}
        outside = _walk(weights, state, jnp.swapaxes(leaves, 0, 1), batch.events)
        joined = jnp.concatenate([outside, batch.devices], axis=-1)
        return Layers((*self.decoder_layers, 1), name="decoder")(joined)[:, 0]


State = dict[str, tuple[Any, Any]]
"""By LSTM: [levels, B, U] outputs and cells."""


def _walk(weights: Any, state: State, leaves: Any, events: Any) -> Any:
    """[B, U] embedding of the outside of all loops."""

    def step(state: State, event: Any) -> tuple[State, None]:
        kind, level, number = event
        actions = (
            lambda state: state,
            lambda state: _read(weights, state, "statements", level, leaves[number]),
            lambda state: _close(weights, state, level),
        )
        return jax.lax.switch(kind, actions, state), None

    state, _ = jax.lax.scan(step, state, events)
    return _embedding(weights, state, 0)


def _close(weights: Any, state: State, level: Any) -> State:
    """A loop ends: the loop around reads its embedding, and its level is empty again."""
    embedding = _embedding(weights, state, level)
    cleared: State = {
        name: (h.at[level].set(0.0), c.at[level].set(0.0)) for name, (h, c) in state.items()
    }
    return _read(weights, cleared, "loops", level - 1, embedding)


def _embedding(weights: Any, state: State, level: Any) -> Any:
    both = jnp.concatenate([state["statements"][0][level], state["loops"][0][level]], axis=-1)
    w, b = weights["join"]
    return nn.gelu(both @ w + b)


def _read(weights: Any, state: State, name: str, level: Any, x: Any) -> State:
    """An LSTM (Hochreiter and Schmidhuber 1997) reads one more embedding at a level."""
    w, b = weights[name]
    h, c = state[name]
    gates = jnp.concatenate([x, h[level]], axis=-1) @ w + b
    inner, keep, new, out = jnp.split(gates, 4, axis=-1)
    cell = nn.sigmoid(keep + 1.0) * c[level] + nn.sigmoid(inner) * jnp.tanh(new)
    output = nn.sigmoid(out) * jnp.tanh(cell)
    return {**state, name: (h.at[level].set(output), c.at[level].set(cell))}


@dataclass(frozen=True, eq=False)
class TreePrograms:
    """Programs in groups of one tree."""

    groups: tuple[Int64[np.ndarray, "J"], ...]
    trees: tuple[NestTree, ...]
    """Of each group."""
    vectors: Float32[np.ndarray, "S1 numbers"]
    """[S + 1, 164] standardised leaf vectors; last, zeros."""
    rows: tuple[Int64[np.ndarray, "J L"], ...]
    """[J, L] of each group, the rows of its programs' leaves."""
    place: Int64[np.ndarray, "P"]
    """[P] place of each program in its group."""
    devices: Float32[np.ndarray, "P D2"]

    def batch(self, group: int, which: Int64[np.ndarray, "B"]) -> TreeBatch:
        tree = self.trees[group]
        size = filled_size(len(tree.positions), LEAF_SIZES, "statements")
        rows = np.full((len(which), size), len(self.vectors) - 1)
        rows[:, : len(tree.positions)] = self.rows[group][self.place[which]]
        events = np.zeros((filled_size(len(tree.events), EVENT_SIZES, "nodes"), 3), np.int32)
        events[: len(tree.events)] = tree.events
        levels = np.zeros(filled_size(tree.levels, LEVEL_SIZES, "levels"), np.float32)
        return TreeBatch(self.vectors[rows], events, levels, self.devices[which])


@dataclass(frozen=True, eq=False)
class RecursiveLstm(NetworkRival):
    """See above."""

    what = "a recursive LSTM"
    network_type = RecursiveNetwork
    run_defaults = RivalRun(loss="mape", schedule="cyclic")

    @classmethod
    def scale_of(cls, inputs: ProgramInputs) -> dict[str, np.ndarray]:
        return InputScale.fit(inputs).arrays()

    @classmethod
    def batched(cls, inputs: ProgramInputs, scale: Mapping[str, np.ndarray]) -> TreePrograms:
        trees, shape = nest_trees(inputs, cls.what)
        number = {each: i for i, each in enumerate(trees)}
        owner = np.array([number[each] for each in shape])
        groups = tuple(np.flatnonzero(owner == i) for i in range(len(trees)))
        place = np.zeros(len(owner), np.int64)
        for group in groups:
            place[group] = np.arange(len(group))
        ready = prepare(inputs, InputScale(**scale), np.unique(inputs.leaves).tolist(), False)
        return TreePrograms(
            groups=groups, trees=tuple(trees.values()), place=place,
            vectors=np.concatenate([ready.leaves, np.zeros((1, LEAF_NUMBERS), np.float32)]),
            rows=tuple(
                np.stack([_rows(inputs, tree, program) for program in group.tolist()])
                for group, tree in zip(groups, trees.values(), strict=True)
            ),
            devices=np.concatenate([ready.devices, ready.known], axis=1)[inputs.target],
        )  # fmt: skip


def _rows(inputs: ProgramInputs, tree: NestTree, program: int) -> Int64[np.ndarray, "L"]:
    """[L] the row of each leaf's vector; the last row, zeros, where it has none."""
    first, end = inputs.asts.first_leaf[program : program + 2].tolist()
    found = np.full(len(tree.positions), len(inputs.asts.vectors))
    found[np.searchsorted(tree.positions, inputs.asts.ordering[first:end])] = np.arange(first, end)
    return found
