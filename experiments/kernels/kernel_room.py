"""Room that compiler flags and layouts of operands leave a tuner of kernels.

Run: ``python -m experiments kernels.kernel_room``. The room of a kernel is its time under the
compiler's own setting over the least of its times under the settings that were measured with it.
The least of several noisy times is too small, so beside it stands what as many repetitions of one
setting would have found: their relative differences are drawn from kernels whose own setting was
measured twice, in both measurements of the data set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.statistics import geometric_mean
from go_rl.costs.kernels.measure.data import KernelData, load_kernel_data
from go_rl.costs.kernels.ranks.flag_times import CONFIDENT

KINDS = ("flags", "layouts")
"""Kinds of settings."""


@dataclass(frozen=True)
class RoomRow:
    """The room of one kernel."""

    kind: str
    tried: int
    """Settings of that kind, the compiler's own aside."""
    room: float
    """Time under the compiler's own setting over the least."""
    noise: float
    """The same of repetitions alone, the mean of several draws."""


@dataclass(frozen=True)
class KernelRoom(Experiment):
    """Options of this experiment."""

    data: str = "kernels-cpu-1"
    """Kernels measured under settings: a data set that ships, or a file."""
    draws: int = 200
    """Draws of repetitions."""
    seed: int = 0
    """Of these."""

    def run(self) -> None:
        """Compare each kind of setting; write the page."""
        data = load_kernel_data(self.data)
        rows = self.write_rows(row for kind in KINDS for row in self._rows(data, kind))
        self.write_page(page(rows, data))

    def _rows(self, data: KernelData, kind: str) -> Iterator[RoomRow]:
        rng, again = np.random.default_rng(self.seed), repeated(data)
        names = [json.loads(text or "{}").get(kind) for text in data.settings]
        tried = np.array([name is not None for name in names])
        own = np.array([name is not None and OWN[kind](name) for name in names])
        usable = (data.round == 0) & (data.spread <= CONFIDENT)
        for kernel in np.unique(data.kernel[usable & own[data.setting]]).tolist():
            mine = usable & (data.kernel == kernel)
            plain = data.seconds[mine & own[data.setting]][0]
            others = data.seconds[mine & (tried & ~own)[data.setting]]
            if len(others):
                drawn = rng.choice(again, (self.draws, len(others))).min(axis=1)
                noise = np.exp(np.log(np.maximum(1.0 / drawn, 1.0)).mean())
                yield RoomRow(kind, len(others), max(plain / others.min(), 1.0), float(noise))


OWN: Mapping[str, Callable[[Any], bool]] = {
    "flags": lambda flags: not flags,
    "layouts": lambda layouts: all(each is None or each == sorted(each) for each in layouts),
}
"""Whether a setting is the compiler's own, by its kind: no flag; each operand as XLA lays it out by
itself, its last dimension fastest."""


def repeated(data: KernelData) -> Float64[np.ndarray, "P"]:
    """Return [P] times under the compiler's own flags, measured with other flags, over those of the
    kernel as it comes, measured with other kernels; their median is 1."""
    plain = dict(zip(data.kernel[data.plain], data.seconds[data.plain], strict=True))
    number = data.settings.index('{"flags":{}}')
    again = (data.setting == number) & (data.round == 0) & (data.spread <= CONFIDENT)
    pairs = zip(data.kernel[again].tolist(), data.seconds[again].tolist(), strict=True)
    ratio = np.array([seconds / plain[kernel] for kernel, seconds in pairs if kernel in plain])
    return ratio / np.median(ratio)


def page(rows: list[RoomRow], data: KernelData) -> str:
    """Return the page."""
    cells = []
    for kind in KINDS:
        mine = [row for row in rows if row.kind == kind]
        room, noise = (np.array([getattr(r, name) for r in mine]) for name in ("room", "noise"))
        tried = sorted({row.tried for row in mine})
        cells.append([
            kind, str(len(mine)), f"{tried[0]} to {tried[-1]}",
            f"{geometric_mean(room):.3f}", f"{geometric_mean(noise):.3f}",
            f"{np.mean(room > 1.1):.0%}", f"{geometric_mean(room / noise):.3f}",
        ])  # fmt: skip
    heads = ["setting", "kernels", "tried of each", "room", "of repetitions", "room above 1.1",
             "room over repetitions"]  # fmt: skip
    return "\n".join([
        "# Room in kernels", "",
        f"`{data.name}`, {data.target}: time of a kernel under the compiler's own setting over "
        "the least under the settings tried with it, geometric mean over kernels; and the same of "
        "as many repetitions of one setting.", "", *table_lines(heads, cells),
    ])  # fmt: skip
