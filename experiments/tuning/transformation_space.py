"""The transformation space of one convolution of ResNet-18 (DynaTune, figure 3).

Run: ``taskset -c 1 python -m experiments.tuning.transformation_space``; needs the extra tvm. The
base is the fastest of some random candidates; then the innermost tiles of input and output channels
vary, and all its other decisions stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.tuning.kernel_seconds import kernel_seconds
from experiments.tuning.make_pools import PEAK
from experiments.tuning.record_pools import CODEGEN
from go_rl.costs.programs.workloads import TensorTask, task_module
from go_rl.report.figures import new_figure
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.tvm.codegen import CodeTarget
from go_rl.tuning.tvm.space import TvmSpace, scheduled

OUTPUT, INPUT = 3, 6
"""Places of output and input channels among the tiled loops: batch, height, width, output; height,
width and channels of the kernel."""
TILES = "SamplePerfectTile"


@dataclass(frozen=True)
class TransformationSpace(Experiment):
    """Options of the script."""

    sizes: tuple[int, ...] = (1, 28, 28, 128, 128, 3, 3, 1, 1, 1)
    """Of the convolution."""
    drawn: int = 32
    """Random candidates of which the fastest is the base."""
    largest: int = 64
    """Innermost tile."""
    calls: int = 9
    """Of each candidate; the median counts."""
    seed: int = 0

    def run(self) -> None:
        """Measure, draw, write the page."""
        task = TensorTask("conv2d", self.sizes)
        space = TvmSpace(task_module(task), CodeTarget(CODEGEN))
        drawn = space.draw(self.drawn, np.random.default_rng(self.seed))
        speeds = [_gflops(task, candidate, self.calls) for candidate in drawn]
        base = drawn[int(np.argmax(speeds))]
        channels = {"output": task.named["filters"], "input": task.named["channels"]}
        tiles = {name: _divisors(count, self.largest) for name, count in channels.items()}
        points = []
        for output, input in product(tiles["output"], tiles["input"]):
            made = space.adapted(with_tiles(base.document, {OUTPUT: output, INPUT: input}))
            gflops = 0.0 if made is None else _gflops(task, made, self.calls)
            points.append(TilePoint(output, input, gflops))
        self.save_figure(_figure(points, tiles))
        found = np.array([point.gflops for point in points if point.gflops > 0])
        text = (
            f"# Transformation space of {task.title}\n\nDynaTune's figure 3: innermost tiles of "
            "input and output channels of a convolution of ResNet-18 vary, everything else is that "
            f"of the fastest of {self.drawn} random candidates ({max(speeds):.1f} GFLOP/s, "
            f"{100e9 * max(speeds) / PEAK:.0f} % of the peak). {len(found)} of {len(points)} "
            f"points are legal: {found.min():.1f} to {found.max():.1f} GFLOP/s, median "
            f"{np.median(found):.1f}; one core, one run, median of {self.calls} "
            f"calls.\n\n![GFLOP/s by tiles]({self.stem.name}.svg)\n"
        )
        self.write_page(text)
        self.write_rows(points)


@dataclass(frozen=True)
class TilePoint:
    """One point of the space."""

    output_tile: int
    input_tile: int
    gflops: float
    """0: the candidate is not legal."""


def with_tiles(document: Any, changes: Mapping[int, int]) -> Any:
    """Return a candidate's document with other innermost tiles.

    Args:
        document: trace as TVM's JSON: instructions, and decisions as pairs of the number of an
            instruction and what it decided.
        changes: innermost tiles, by the place of the loop among those that are tiled.
    """
    changed = deepcopy(document)
    instructions, decisions = changed
    places = [i for i, each in enumerate(instructions) if each[0] == TILES]
    decided = {pair[0]: pair for pair in decisions}
    for place, tile in changes.items():
        pair = decided[places[place]]
        pair[1] = _tiling(pair[1], tile)
    return changed


def _tiling(tiles: list[int], innermost: int) -> list[int]:
    """The same loop with another innermost tile; middle ones stay where they divide what is left,
    and the outermost is the rest."""
    left, found = int(np.prod(tiles)) // innermost, [innermost]
    for tile in reversed(tiles[1:-1]):
        kept = tile if left % tile == 0 else 1
        found.insert(0, kept)
        left //= kept
    return [left, *found]


def _gflops(task: TensorTask, candidate: Candidate, calls: int) -> float:
    made = scheduled(task_module(task), candidate.document)
    return task.flops / kernel_seconds(made.mod, calls) / 1e9


def _divisors(count: int, largest: int) -> list[int]:
    return [d for d in range(1, min(count, largest) + 1) if count % d == 0]


def _figure(points: list[TilePoint], tiles: Mapping[str, list[int]]) -> Figure:
    table = np.array([p.gflops for p in points]).reshape(len(tiles["output"]), -1)
    picture = new_figure(5.0, 4.0)
    axes = picture.subplots()
    shown = axes.imshow(np.where(table > 0, table, np.nan), origin="lower", cmap="viridis")
    axes.set_xticks(range(len(tiles["input"])), list(map(str, tiles["input"])))
    axes.set_yticks(range(len(tiles["output"])), list(map(str, tiles["output"])))
    axes.set_xlabel("innermost tile of input channels")
    axes.set_ylabel("innermost tile of output channels")
    picture.colorbar(shown, label="GFLOP/s")
    return picture


if __name__ == "__main__":
    TransformationSpace.main()
