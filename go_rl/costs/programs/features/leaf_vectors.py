"""`leaf_vectors`: 164 numbers for each statement of a loop nest, those of TVM's
``PerStoreFeature``.

A buffer that several statements write has one vector, that of the last of them; statements that
write a constant have none. Source of the definition: TVM,
``src/s_tir/meta_schedule/feature_extractor/per_store_feature.cc`` (Apache-2.0); this is a
computation of its own over `LoopNest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from jaxtyping import Float64

from go_rl.costs.programs.features.buffer_access import (
    Touched,
    buffer_uses,
    bytes_by_level,
    scaled,
    use_features,
)
from go_rl.costs.programs.features.layout import CURVE_POINTS, LEAF_NUMBERS, POSITIONS
from go_rl.costs.programs.nests import OUTSIDE, ForLoop, LoopNest, NestLeaf
from go_rl.costs.programs.nests.nest import (
    BLOCKS,
    ELEMENT_BYTES,
    OPERATION_NAMES,
    PARALLEL,
    THREADS,
    UNROLLED,
    VECTORISED,
    VIRTUAL_THREAD,
)

TOLERANCE = 1e-4
"""FLOP by which a point of the curve of intensity may miss a step."""
FLOAT_KINDS = tuple(i for i, name in enumerate(OPERATION_NAMES) if name.startswith("float"))


def leaf_vectors(nest: LoopNest) -> tuple[Float64[np.ndarray, "L numbers"], tuple[NestLeaf, ...]]:
    """Return [L, 164] vectors, by the first write to their buffers, and the statements described.

    A nest all of whose statements write constants has none: L is 0.
    """
    touched = Touched()
    outer = _iterations_outside(nest)
    rows: dict[int, list[float]] = {}
    for leaf in nest.leaves:
        if leaf.statement.constant:
            continue
        buffer = leaf.statement.write.buffer
        uses = buffer_uses(leaf, touched)
        bytes_touched = bytes_by_level(uses, len(leaf.around))
        rows[buffer] = [
            *_arithmetic(leaf),
            *_annotations(leaf, nest.gpu),
            *use_features(uses, leaf, nest.buffers, touched),
            *_intensity(leaf, bytes_touched),
            *_allocation(nest.buffers[buffer].elements, outer[buffer], leaf),
            *_nest(leaf),
        ]
    vectors = np.array(list(rows.values()), np.float64).reshape(-1, LEAF_NUMBERS)
    return vectors, described_leaves(nest)


def described_leaves(nest: LoopNest) -> tuple[NestLeaf, ...]:
    """Return the statements that have vectors, by the first write to their buffers: of each buffer
    the last statement that writes it, those apart that write constants."""
    last: dict[int, NestLeaf] = {}
    for leaf in nest.leaves:
        if not leaf.statement.constant:
            last[leaf.statement.write.buffer] = leaf
    return tuple(last.values())


def _iterations_outside(nest: LoopNest) -> list[int]:
    """Return, for each buffer, how often it is allocated."""
    executed: dict[int, int] = {OUTSIDE: 1}
    for leaf in nest.leaves:
        for level, (number, _) in enumerate(leaf.around):
            executed[number] = prod(loop.extent for _, loop in leaf.around[: level + 1])
    return [executed[buffer.inside] for buffer in nest.buffers]


def _arithmetic(leaf: NestLeaf) -> list[float]:
    return [scaled(count * leaf.executions) for count in leaf.statement.operations]


def _annotations(leaf: NestLeaf, gpu: bool) -> list[float]:
    loops = [loop for _, loop in leaf.around]
    numbers = [
        number
        for kind in (VECTORISED, UNROLLED, PARALLEL)
        for number in _kind([loop for loop in loops if loop.annotation == kind])
    ]
    bound = [
        next((loop.extent for loop in loops if gpu and loop.annotation == kind), 1)
        for kind in (*BLOCKS, *THREADS, VIRTUAL_THREAD)
    ]
    return [*numbers, float(gpu), *(scaled(extent) for extent in bound)]


def _kind(loops: Sequence[ForLoop]) -> list[float]:
    position = POSITIONS[-1] if loops else POSITIONS[0]
    sizes = (len(loops), prod(x.extent for x in loops), loops[-1].extent) if loops else (0, 0, 0)
    return [*map(scaled, sizes), *(float(position == each) for each in POSITIONS)]


def _intensity(leaf: NestLeaf, touched: Sequence[int]) -> list[float]:
    flops = sum(leaf.statement.operations[i] for i in FLOAT_KINDS)
    return _intensity_curve(flops, [loop.extent for _, loop in leaf.around], touched)


def _allocation(elements: int, outer: int, leaf: NestLeaf) -> list[float]:
    inner = leaf.executions / outer
    return [scaled(x) for x in (elements * ELEMENT_BYTES, elements * outer, outer, inner)]


def _nest(leaf: NestLeaf) -> list[float]:
    return [scaled(x) for x in (leaf.executions, len(leaf.around), leaf.auto_unroll)]


def _intensity_curve(flops: int, extents: Sequence[int], touched: Sequence[int]) -> list[float]:
    """The points of the curve of arithmetic intensity (group 3 of the leaf vector): FLOP for each
    byte touched, of the innermost loop alone, of the two innermost loops, and so on; read at equal
    steps of FLOP (Williams et al., "Roofline", 2009).

    Args:
        flops: floating-point operations of one execution.
        extents: iterations of each loop around, the outermost first.
        touched: bytes touched while a loop runs, the outermost first.
    """
    if flops <= 0 or not extents:
        return [0.0] * CURVE_POINTS
    work: list[float] = []
    done = float(flops)
    for extent in reversed(extents):
        done *= extent
        work.append(done)
    intensity = [w / size for w, size in zip(work, reversed(touched), strict=True)]
    points: list[float] = []
    level = 0
    for i in range(CURVE_POINTS):
        asked = (i + 1) / CURVE_POINTS * done
        while work[level] < asked - TOLERANCE:
            level += 1
        points.append(scaled(_between(level, asked, work, intensity)))
    return points


def _between(level: int, asked: float, work: list[float], intensity: list[float]) -> float:
    if level == 0:
        return intensity[0]
    slope = (intensity[level] - intensity[level - 1]) / (work[level] - work[level - 1])
    return intensity[level - 1] + slope * (asked - work[level - 1])
