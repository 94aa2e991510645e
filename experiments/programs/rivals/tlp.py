"""`TlpPrograms`: a small Transformer over schedule primitives (TLP; Zhai et al., ASPLOS 2023).

    primitives → layer → self-attention → sum over the schedule;  with numbers of the target → label

TLP ranks the programs of one task: primitives do not say what is computed, nor, where nothing is
tiled, of what size. Here it learns seconds, from the same rows as all others, as in CDMPP's figure
10.

A trace of MetaSchedule is a list of calls. Those that only look something up, or undo an
annotation, say nothing of the program and are left out. Each other call becomes a row: its name
(one-hot, an annotation's key included), and its first arguments in the order written, each as two
numbers: a constant (log2(1 + |c|), with its sign) or the number of a variable (over `VARIABLES`),
the other one being 0. Candidates and odds of a random choice are no arguments; its outcome is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import copysign, log2
from typing import Any, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int64

from experiments.programs.rivals.network_rival import NetworkRival, RivalRun
from go_rl.core import TrainingError
from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.learn.network import Layers
from go_rl.costs.programs.learn.prepared import column_scale, masked_rows

SILENT = frozenset({
    "get_sblock", "get_block", "get_loops", "get_child_blocks", "get_producers", "get_consumers",
    "enter_postproc", "unannotate",
})  # fmt: skip
KINDS = (
    "sample_perfect_tile", "sample_categorical", "sample_compute_location", "split", "fuse",
    "reorder", "parallel", "vectorize", "unroll", "bind", "cache_read", "cache_write", "compute_at",
    "reverse_compute_at", "compute_inline", "reverse_compute_inline", "rfactor",
    "decompose_reduction", "annotate meta_schedule.parallel", "annotate meta_schedule.vectorize",
    "annotate meta_schedule.unroll_explicit", "annotate meta_schedule.tiling_structure",
    "annotate meta_schedule.random_compute_producer", "annotate pragma_auto_unroll_max_step",
    "annotate pragma_unroll_explicit", "other",
)  # fmt: skip
ARGUMENTS = 8
"""That are read of a call; further ones are cut."""
PRIMITIVES = 48
"""That are read of a schedule; further ones are cut."""
VARIABLES = 64.0
ROW = len(KINDS) + 2 * ARGUMENTS
"""Numbers of a primitive."""
CALL = re.compile(r"sch\.(\w+)\((.*)\)\s*$")
KEY = re.compile(r'ann_key="([^"]*)"')
UNSAID = re.compile(r"(?:candidates|probs)=\[[^\]]*\]|\w+=(?:True|False)|\"[^\"]*\"")
ARGUMENT = re.compile(r"(?<![\w.])(?:[blv](\d+)|(-?\d+(?:\.\d+)?))(?![\w.])")
LENGTHS = (12, 24, PRIMITIVES)
"""To which schedules are filled up."""


@lru_cache(maxsize=50_000)
def primitive_rows(trace: str) -> Float32[np.ndarray, "S row"]:
    """Return [S, `ROW`] of a schedule, as TVM prints it: at most `PRIMITIVES` calls, in order."""
    rows = []
    for line in trace.splitlines():
        found = CALL.search(line)
        if found is not None and found.group(1) not in SILENT:
            rows.append(_primitive(found.group(1), found.group(2)))
    return np.array(rows[:PRIMITIVES], np.float32).reshape(-1, ROW)


def _primitive(name: str, arguments: str) -> list[float]:
    if name == "annotate":
        key = KEY.search(arguments)
        name = f"annotate {key.group(1)}" if key else name
    kind = KINDS.index(name) if name in KINDS else KINDS.index("other")
    row = [0.0] * ROW
    row[kind] = 1.0
    said = ARGUMENT.findall(UNSAID.sub("", arguments))
    for i, (variable, constant) in enumerate(said[:ARGUMENTS]):
        place = len(KINDS) + 2 * i
        if variable:
            row[place + 1] = (int(variable) + 1) / VARIABLES
        else:
            value = float(constant)
            row[place] = copysign(log2(1.0 + abs(value)), value)
    return row


class ScheduleBatch(NamedTuple):
    """``B`` schedules of at most ``T`` primitives."""

    rows: Any
    """[B, T, `ROW`]"""
    real: Any
    """[B, T] 1 for primitives, 0 for what fills up."""
    devices: Any
    """[B, 2 D] standardised numbers of targets, and which are known."""


class TlpNetwork(nn.Module):
    """See above."""

    units: int = 64
    heads: int = 4
    layers: int = 1
    """Of self-attention."""
    decoder_layers: tuple[int, ...] = (128, 128)

    @nn.compact
    def __call__(self, batch: ScheduleBatch) -> Float[Array, "B"]:
        """Return [B] standardised labels."""
        place = self.param("place", nn.initializers.normal(0.02), (PRIMITIVES, self.units))
        x = nn.Dense(self.units, name="input")(batch.rows) + place[: batch.rows.shape[1]]
        mask = batch.real[:, None, None, :] > 0
        for i in range(self.layers):
            seen = nn.LayerNorm(name=f"before_{i}")(x)
            attention = nn.MultiHeadDotProductAttention(self.heads, name=f"attention_{i}")
            x = x + attention(seen, seen, mask=mask)
            x = x + nn.gelu(nn.Dense(self.units, name=f"layer_{i}")(x))
        total = (x * batch.real[..., None]).sum(axis=1)
        joined = jnp.concatenate([nn.LayerNorm(name="summed")(total), batch.devices], axis=-1)
        return Layers((*self.decoder_layers, 1), name="decoder")(joined)[:, 0]


@dataclass(frozen=True, eq=False)
class SchedulePrograms:
    """Programs in groups of schedules of like length."""

    groups: tuple[Int64[np.ndarray, "J"], ...]
    lengths: tuple[int, ...]
    """To which schedules of each group are filled up."""
    schedules: tuple[Float32[np.ndarray, "S row"], ...]
    schedule: Int64[np.ndarray, "P"]
    """[P] number of each program's schedule."""
    devices: Float32[np.ndarray, "P D2"]

    def batch(self, group: int, which: Int64[np.ndarray, "B"]) -> ScheduleBatch:
        rows = np.zeros((len(which), self.lengths[group], ROW), np.float32)
        real = np.zeros(rows.shape[:2], np.float32)
        for i, number in enumerate(self.schedule[which].tolist()):
            some = self.schedules[number]
            rows[i, : len(some)], real[i, : len(some)] = some, 1.0
        return ScheduleBatch(rows, real, self.devices[which])


@dataclass(frozen=True, eq=False)
class TlpPrograms(NetworkRival):
    """See above."""

    what = "TLP"
    network_type = TlpNetwork
    run_defaults = RivalRun()

    @classmethod
    def scale_of(cls, inputs: ProgramInputs) -> dict[str, np.ndarray]:
        return column_scale(inputs.device_features.astype(np.float32))

    @classmethod
    def batched(cls, inputs: ProgramInputs, scale: Mapping[str, np.ndarray]) -> SchedulePrograms:
        if not inputs.traces:
            raise TrainingError(
                f"{cls.what} reads schedule primitives, and of these programs only features are "
                "known; use records of go-rl measure programs"
            )
        numbers, place = np.unique(inputs.trace, return_inverse=True)
        schedules = tuple(primitive_rows(inputs.traces[i]) for i in numbers.tolist())
        own = np.array([len(some) for some in schedules])[place]
        filled = np.array(LENGTHS)[np.searchsorted(LENGTHS, own)]
        lengths = np.unique(filled).tolist()
        return SchedulePrograms(
            groups=tuple(np.flatnonzero(filled == length) for length in lengths),
            lengths=tuple(lengths), schedules=schedules, schedule=place,
            devices=masked_rows(inputs.device_features.astype(np.float32), scale),
        )  # fmt: skip
