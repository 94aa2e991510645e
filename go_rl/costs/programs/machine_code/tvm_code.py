"""`code_numbers`: `machine_numbers` of a program that TVM compiled."""

from __future__ import annotations

from typing import Any

from go_rl.costs.programs.machine_code.machine_numbers import machine_numbers
from go_rl.costs.programs.nests import ForLoop, LoopNest
from go_rl.costs.programs.nests.nest import PARALLEL

LLVM, ASSEMBLY = "llvm", "asm"
DIGITS = 4
"""Decimals to which numbers are kept."""


def code_numbers(kernel: Any, nest: LoopNest) -> tuple[float, ...]:
    """Return the numbers of what ``tvm.compile`` made of a loop nest for a processor."""
    modules = (kernel.mod, *kernel.mod.imports)
    assembly = "".join(each.inspect_source(ASSEMBLY) for each in modules if each.kind == LLVM)
    extents = [
        each.extent
        for each in nest.body
        if isinstance(each, ForLoop) and each.annotation == PARALLEL
    ]
    return tuple(round(number, DIGITS) for number in machine_numbers(assembly, extents))
