"""`machine_numbers`: what a core has to do for a tensor program, counted in its machine code.

Which code a compiler makes of a loop nest (vectors of what width, what stays in registers, which
loops become straight code) decides most of the time and follows from no simple rule. So the code is
read: instructions by kind, times the iterations of the loops around them. From these follow lower
bounds of the time in cycles, as in a port model of a core; no cache is modelled here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log2

from go_rl.costs.programs.machine_code.assembly import (
    MachineFunction,
    MachineInstruction,
    MachineLoop,
    machine_functions,
)
from go_rl.costs.programs.machine_code.instruction_mix import (
    ARITHMETIC,
    FUSED,
    MOVES,
    WORK,
    work_of,
)
from go_rl.costs.programs.machine_code.iterations import TWICE, iterations

PARALLEL = "lambda"
"""Part of the name of a function that is the body of a parallel loop."""
ISSUED, PORTS = 4.0, 2.0
"""Instructions, and vector operations or loads, in a cycle."""
LATENCY, FORWARDED = 4.0, 9.0
"""Cycles until a result of vector arithmetic can be used, and until a value that was stored, read
again and added to is there."""
DIVISION, CALL = 5.0, 30.0
"""Cycles of a division of vectors, and of a call."""
HOT = 2
"""Innermost loops that are described one by one, those with the most instructions."""
SHARES = ("fused", "scalar_fused", "arithmetic", "scalar_arithmetic", "reorders", "loads",
          "scalar_loads", "stores", "scalar_stores", "spills", "whole_numbers")  # fmt: skip
BOUNDS = ("issue", "arithmetic", "reads", "writes", "reorders", "divisions", "chain", "forwarded",
          "calls")  # fmt: skip
MACHINE_NAMES = (
    *(f"machine_{name}" for name in WORK),
    *(f"machine_{name}_cycles" for name in BOUNDS),
    "machine_cycles", "machine_all_cycles", "machine_unknown_loops",
    *(f"hot{k}_{name}" for k in range(HOT)
      for name in ("share", "instructions", "iterations", "chain", "forwarded", *SHARES)),
)  # fmt: skip
"""Name of each number: counts and cycles as log2(x + 1); of the innermost loops shares."""

Work = defaultdict[str, float]
"""Work by `WORK`."""


@dataclass(frozen=True)
class Innermost:
    """A loop without another inside."""

    runs: float
    """Iterations in one run of the program."""
    iterations: int
    """Iterations each time that it is entered."""
    work: Work
    """Work of one iteration."""
    chain: int
    """Operations of one iteration that wait for one another."""
    forwarded: bool
    """Whether it reads again what it stores."""


def machine_numbers(assembly: str, parallel: Sequence[int] = ()) -> list[float]:
    """Return `MACHINE_NAMES` of a program.

    Args:
        assembly: for x86-64, as LLVM prints it.
        parallel: extents of the outermost loops that run in parallel, in their order: the code does
            not tell them, for it is told at run time which part to do.
    """
    work, unknown = Work(float), 0
    innermost: list[Innermost] = []
    extents = iter(parallel)
    for function in machine_functions(assembly):
        extent = next(extents, 1) if PARALLEL in function.name else 1
        runs, missing, inner = _counted(function, extent)
        unknown += missing
        innermost += inner
        for block, times in zip(function.blocks, runs, strict=True):
            for name, count in _work(block).items():
                work[name] += times * count
    hot = sorted(innermost, key=lambda loop: -loop.runs * loop.work["instructions"])
    bounds = _bounds(work, innermost)
    return [
        *(_scaled(work[name]) for name in WORK),
        *map(_scaled, bounds),
        _scaled(max(bounds)),
        _scaled(sum(bounds)),
        float(unknown),
        *(number for k in range(HOT) for number in _described(hot[k : k + 1], work)),
    ]


def _counted(function: MachineFunction, extent: int) -> tuple[list[float], int, list[Innermost]]:
    """How often each block runs, the number of loops of unknown length, and the innermost loops. A
    parallel loop is the outermost one that has no length of its own."""
    loops = function.loops
    outer = [loop for loop in loops if not any(loop.blocks < other.blocks for other in loops)]
    length = {loop: iterations(function, loop) for loop in loops}
    open_ = [loop for loop in outer if length[loop] is None]
    whole = extent if not open_ and extent not in [length[loop] for loop in outer] else 1
    if extent > 1:
        length |= {loop: max(extent // len(open_), 1) for loop in open_}
    known = {loop: count or TWICE for loop, count in length.items()}
    runs = [float(whole) if i in function.dominators else 0.0 for i in range(len(function.blocks))]
    for loop, count in known.items():
        for block in loop.blocks:
            runs[block] *= count
    inner = [loop for loop in loops if not any(other.blocks < loop.blocks for other in loops)]
    told = [_innermost(function, loop, runs[loop.header], known[loop]) for loop in inner]
    return runs, sum(count is None for count in length.values()), told


def _innermost(function: MachineFunction, loop: MachineLoop, runs: float, count: int) -> Innermost:
    lines = list(function.within(loop))
    waits = Counter(line.target for line in lines if _accumulates(line))
    read = {each for line in lines for each in line.operands[:-1] if "(" in each}
    stored = {line.operands[-1] for line in lines if MOVES.match(line.name)}
    forwarded = any("(" in each for each in read & stored)
    return Innermost(runs, count, _work(lines), max(waits.values(), default=0), forwarded)


def _accumulates(line: MachineInstruction) -> bool:
    if FUSED.match(line.name):
        return True
    if not ARITHMETIC.match(line.name):
        return False
    return not line.name.startswith("v") or line.operands[-1] in line.operands[:-1]


def _work(lines: Iterable[MachineInstruction]) -> Work:
    found = Work(float)
    for line in lines:
        for name, count in work_of(line).items():
            found[name] += count
    return found


def _bounds(work: Work, innermost: Sequence[Innermost]) -> list[float]:
    """Cycles by `BOUNDS`."""
    vectors = sum(work[name] for name in ("fused", "scalar_fused", "arithmetic",
                                          "scalar_arithmetic"))  # fmt: skip
    return [
        work["instructions"] / ISSUED, vectors / PORTS, work["reads"] / PORTS, work["writes"],
        work["reorders"], DIVISION * work["divisions"],
        LATENCY * sum(loop.runs * loop.chain for loop in innermost),
        FORWARDED * sum(loop.runs for loop in innermost if loop.forwarded), CALL * work["calls"],
    ]  # fmt: skip


def _described(loops: Sequence[Innermost], work: Work) -> Iterator[float]:
    """Numbers of one innermost loop; zeros where there is none."""
    if not loops:
        yield from [0.0] * (5 + len(SHARES))
        return
    (loop,) = loops
    size = loop.work["instructions"]
    yield loop.runs * size / max(work["instructions"], 1.0)
    yield _scaled(size)
    yield _scaled(float(loop.iterations))
    yield float(loop.chain)
    yield float(loop.forwarded)
    yield from (loop.work[name] / size for name in SHARES)


def _scaled(count: float) -> float:
    return log2(1.0 + count)
