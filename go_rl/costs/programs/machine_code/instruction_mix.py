"""`work_of`: what an instruction of x86-64 asks of a core, by kind."""

from __future__ import annotations

import re
from functools import lru_cache

from go_rl.costs.programs.machine_code.assembly import MachineInstruction

LANES = {"%zmm": 16, "%ymm": 8, "%xmm": 4}
"""Elements of four bytes in a vector register, by how its name begins."""
NATIVE_LANES = 8
"""Wider operations count as so many narrow ones more."""
SCALAR = re.compile(r"s[sd]$")
GATHERS, DIVIDES = "vgather", re.compile(r"v?(div|sqrt)(p|s)[sd]$")
FUSED = re.compile(r"vfn?m(add|sub)")
ARITHMETIC = re.compile(r"v?(add|sub|mul|max|min)(p|s)[sd]$")
MOVES = re.compile(r"vmov|vbroadcast|mov([au]p|s)[sd]$")
"""Also of a register to another, which costs nothing."""
REORDERS = re.compile(r"v?(perm|shuf|unpck|blend|insert|extract|p[a-oq-z])")
STACK = ("%rsp", "%rbp")
WORK = (
    "instructions", "fused", "scalar_fused", "arithmetic", "scalar_arithmetic", "operations",
    "loads", "scalar_loads", "stores", "scalar_stores", "spills", "reads", "writes", "reorders",
    "gathered", "divisions", "whole_numbers", "whole_divisions", "jumps", "calls",
)  # fmt: skip
"""Kinds of work. Vector operations, loads and stores count by `NATIVE_LANES`; *operations* are
those of single elements; *spills* read or write the stack; *reads* and *writes* are all
accesses."""


@lru_cache(1 << 16)
def work_of(line: MachineInstruction) -> dict[str, float]:
    """Return the work of an instruction, by `WORK`; kinds that it has none of are left out."""
    found = {"instructions": 1.0}
    if line.jumps:
        return {**found, "jumps": 1.0}
    if line.name.startswith("call"):
        return {**found, "calls": 1.0}
    found |= _vector(line) if is_vector(line) else _whole(line)
    memory = [each for each in line.operands if "(" in each]
    if memory and not line.name.startswith("lea"):
        found |= _access(line, any(name in each for each in memory for name in STACK))
    return found


def is_vector(line: MachineInstruction) -> bool:
    """Return whether an instruction works on vector registers; without a ``v`` it is of a level
    below x86-64-v3."""
    return line.name.startswith("v") or any(
        name in each for each in line.operands for name in LANES
    )


def lanes(line: MachineInstruction) -> int:
    """Return the elements on which a vector instruction works."""
    if SCALAR.search(line.name):
        return 1
    widths = (n for name, n in LANES.items() if any(name in each for each in line.operands))
    return next(widths, 1)


def _vector(line: MachineInstruction) -> dict[str, float]:
    wide = lanes(line)
    scalar, many = ("scalar_", 1.0) if wide == 1 else ("", wide / NATIVE_LANES)
    if line.name.startswith(GATHERS):
        return {"gathered": float(wide)}
    if DIVIDES.match(line.name):
        return {"divisions": many, "operations": float(wide)}
    if FUSED.match(line.name):
        return {f"{scalar}fused": many, "operations": 2.0 * wide}
    if ARITHMETIC.match(line.name):
        return {f"{scalar}arithmetic": many, "operations": float(wide)}
    moved = MOVES.match(line.name) is not None
    inside = not any("(" in each for each in line.operands)
    if REORDERS.match(line.name) or (moved and inside and "broadcast" in line.name):
        return {"reorders": 1.0}
    return {}


def _whole(line: MachineInstruction) -> dict[str, float]:
    divides = line.name.startswith(("div", "idiv"))
    return {"whole_numbers": 1.0, **({"whole_divisions": 1.0} if divides else {})}


def _access(line: MachineInstruction, stack: bool) -> dict[str, float]:
    writes = "(" in line.operands[-1] and not line.name.startswith(("cmp", "test"))
    found = {"writes" if writes else "reads": 1.0, **({"spills": 1.0} if stack else {})}
    if is_vector(line) and not stack:
        wide = lanes(line)
        kind = "stores" if writes else "loads"
        found |= {f"scalar_{kind}": 1.0} if wide == 1 else {kind: max(wide / NATIVE_LANES, 0.5)}
    return found
