"""`split_schedules`: random schedules of operators for which MetaSchedule knows one or few.

MetaSchedule tiles products and convolutions; an element-wise group it inlines and vectorises in one
way, of sums along rows and of pooling it knows some dozens. Here the last loop of the result is cut
into three and reductions into two, their order is drawn, and so is what is vectorised, unrolled or
parallel and whether each producer is inlined, computed inside the result's loops or by itself. The
schedules are traces of TVM like those of MetaSchedule. Needs TVM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.costs.programs.workloads.task import TensorTask
from go_rl.costs.programs.workloads.te_workloads import task_module
from go_rl.costs.timing.tvm_calls import import_tvm

SPLIT_OPS = ("elementwise", "reduce_sum", "max_pool", "average_pool")
"""Operators that have such schedules."""
LARGEST_TILE = 128
"""Most iterations of an innermost tile."""
WIDEST_VECTOR = 64
"""Most elements of a vectorised loop, as MetaSchedule's on a CPU."""
LONGEST_UNROLLED = 16
UNROLL_STEPS = (0, 16, 64, 512)
"""Most statements up to which TVM unrolls loops by itself; 0: none."""
INLINED, INSIDE, APART = range(3)
"""Places of a producer."""


def split_schedules(task: TensorTask, count: int, seed: int) -> list[Any]:
    """Return candidates like those of `draw_programs`, as many as asked for.

    Raises:
        MissingDependencyError: TVM is not installed.
    """
    module = task_module(task)
    seeds = np.random.default_rng(seed).integers(1, 1 << 31, count)
    return candidates_of(module, [_scheduled(module, int(each)) for each in seeds])


def candidates_of(module: Any, scheduled: list[Any]) -> list[Any]:
    """Return MetaSchedule's candidates of a module under schedules of TVM."""
    schedules = import_meta_schedule()
    arguments = schedules.arg_info.ArgInfo.from_entry_func(module, False)
    return [schedules.MeasureCandidate(each, arguments) for each in scheduled]


def _scheduled(module: Any, seed: int) -> Any:
    """Return a random schedule of a module's function."""
    sch = import_tvm().s_tir.Schedule(module, seed=seed)
    *producers, result = sch.get_child_blocks(sch.get_sblock("root"))
    tiled = [_Tiled.cut(sch, result)]
    for producer in reversed(producers):  # a producer's consumers have their places
        place = _choice(sch, (0.7, 0.2, 0.1))
        if _kinds(sch, producer)[1]:  # a reduction cannot be inlined
            place = max(place, INSIDE)
        if place == INLINED:
            sch.compute_inline(producer)
        elif place == INSIDE:
            sch.compute_at(producer, tiled[-1].outermost)
        else:
            tiled.append(_Tiled.cut(sch, producer))
    for each in tiled:
        each.annotate(sch)
    return sch


@dataclass(frozen=True)
class _Tiled:
    """A block whose loops are cut and in order."""

    block: Any
    outermost: Any
    middle: Any
    """Middle tile."""
    inner: Any
    """Innermost tile of the result's last loop."""
    vectorisable: bool
    """Whether the latter is the innermost loop of all."""
    reduced: Any
    """Outermost reduction loop; None where nothing is summed."""

    @staticmethod
    def cut(sch: Any, block: Any) -> _Tiled:
        """Cut the loops of a block that has those which it came with."""
        spatial, reductions = _kinds(sch, block)
        tiles = sch.split(
            spatial[-1], sch.sample_perfect_tile(spatial[-1], 3, max_innermost_factor=LARGEST_TILE)
        )
        summed: list[Any] = []
        if reductions:
            last = sch.sample_perfect_tile(reductions[-1], 2, max_innermost_factor=LARGEST_TILE)
            summed = [*reductions[:-1], *sch.split(reductions[-1], last)]
        outer = sch.fuse(*spatial[:-1], tiles[0])
        orders = (
            [outer, tiles[1], *summed, tiles[2]],
            [outer, tiles[1], tiles[2], *summed],
            [outer, *summed[:1], tiles[1], *summed[1:], tiles[2]],
        )
        order = orders[_choice(sch, (0.4, 0.3, 0.3))] if summed else orders[0]
        sch.reorder(*order)
        return _Tiled(
            block, outer, tiles[1], tiles[2], order[-1] is tiles[2], summed[0] if summed else None
        )

    def annotate(self, sch: Any) -> None:
        """Draw what is vectorised, unrolled and parallel."""
        if _choice(sch, (0.5, 0.5)):
            sch.parallel(self.outermost)
        width = int(sch.get(self.inner).extent)
        if self.vectorisable and 1 < width <= WIDEST_VECTOR and _choice(sch, (0.3, 0.7)):
            sch.vectorize(self.inner)
        if int(sch.get(self.middle).extent) <= LONGEST_UNROLLED and _choice(sch, (0.5, 0.5)):
            sch.unroll(self.middle)
        if limit := UNROLL_STEPS[_choice(sch, (0.4, 0.2, 0.2, 0.2))]:
            sch.annotate(self.outermost, "pragma_auto_unroll_max_step", limit)
            sch.annotate(self.outermost, "pragma_unroll_explicit", 1)
        if self.reduced is not None:
            sch.decompose_reduction(self.block, self.reduced)


def _choice(sch: Any, shares: tuple[float, ...]) -> int:
    """Draw a number from 0 on, with a probability for each."""
    drawn = sch.sample_categorical(list(range(len(shares))), list(shares))
    return int(sch.get(drawn))


def _kinds(sch: Any, block: Any) -> tuple[list[Any], list[Any]]:
    """Return the loops along which a block's results lie, and those that it sums over."""
    data_parallel = import_tvm().tirx.IterVar.DataPar
    spatial: list[Any] = []
    reductions: list[Any] = []
    for loop, variable in zip(sch.get_loops(block), sch.get(block).iter_vars, strict=True):
        (spatial if variable.iter_type == data_parallel else reductions).append(loop)
    return spatial, reductions
