"""Targets that TVM generates code for: levels of x86-64, and a number of cores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from go_rl.core.errors import nearest
from go_rl.core.hardware.processor import FACTS, own_target
from go_rl.costs.programs.workloads.drawn_programs import codegen_target
from go_rl.tuning.config import TuningError

NEEDS: Mapping[str, frozenset[str]] = MappingProxyType({
    "x86-64-v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    "x86-64-v3": frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
    "x86-64-v2": frozenset({"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
})  # fmt: skip
"""Linux's names of the instructions that a level has beside those of the next lower one; the
highest level first."""
FLOPS_A_CYCLE: Mapping[str, int] = MappingProxyType(
    {"x86-64-v4": 64, "x86-64-v3": 32, "x86-64-v2": 16}
)
"""FLOP in a cycle of a core with two vector units, in float32."""
FASTEST_CLOCK = 6.5e9
"""Hz that no x86-64 processor exceeds (the fastest sold boost to 6.2 GHz); virtual machines hide
their clock."""
CLOCKS = Path("/sys/devices/system/cpu")
"""Linux's folder of the clocks of processors."""
CLOCK_FILE = "cpu[0-9]*/cpufreq/cpuinfo_max_freq"
"""File of the highest clock of each processor in kHz, boost included."""
HEADROOM = 1.05
"""Factor by which a clock may exceed the one told: boards set it higher by a few per cent."""


@cache
def highest_clock() -> float:
    """Return Hz that no processor of this machine exceeds: what Linux tells, and `HEADROOM`, else
    `FASTEST_CLOCK`.
    """
    told = []
    for path in CLOCKS.glob(CLOCK_FILE):
        with suppress(OSError, ValueError):
            told.append(1e3 * float(path.read_text()))
    return HEADROOM * max(told) if told and max(told) > 0 else FASTEST_CLOCK


@cache
def levels_here() -> tuple[str, ...]:
    """Return the levels that this machine's processor runs, the highest first."""
    try:
        text = FACTS.read_text(errors="replace")
    except OSError:
        return ()
    line = next((x for x in text.splitlines() if x.startswith("flags")), "")
    flags, found = set(line.partition(":")[2].split()), list[str]()
    for level in reversed(list(NEEDS)):
        if not NEEDS[level] <= flags:
            break
        found.insert(0, level)
    return tuple(found)


def level_of(target: str) -> str:
    """Return the level that a target means; "": the highest that runs here.

    Raises:
        TuningError: it is unknown, or this processor does not run it.
    """
    here = levels_here()
    if not here:
        raise TuningError(
            "TVM's programs are timed on x86-64 under Linux, and this processor is not known to be "
            "one of its levels 2 to 4"
        )
    if not target:
        return here[0]
    if target not in NEEDS:
        raise TuningError(
            f"unknown target {target!r}{nearest(target, NEEDS)} Targets of the TVM back end "
            f"that run here: {', '.join(here)}"
        )
    if target not in here:
        raise TuningError(
            f"target {target!r} does not run on this processor, so nothing can be timed; "
            f"take one of {', '.join(here)}"
        )
    return target


@dataclass(frozen=True)
class CodeTarget:
    """Target of code generation."""

    level: str
    """Level of x86-64."""
    cores: int = 1
    """Cores that one call of an operator may use."""

    def tvm(self) -> Any:
        """Return TVM's target."""
        return codegen_target(self.level, self.cores)

    def of_records(self, processor: str = "") -> str:
        """Return the target of records: a processor, by default this machine's, the level and,
        above one, the cores."""
        several = f"+{self.cores}-cores" if self.cores > 1 else ""
        return f"{processor or own_target()}+{self.level}{several}"

    @property
    def peak_flops(self) -> float:
        """FLOP/s that no operator exceeds on this machine."""
        return self.cores * FLOPS_A_CYCLE[self.level] * highest_clock()


def code_target(target: str = "", cores: int = 1) -> CodeTarget:
    """Return the target of code generation.

    Args:
        target: a level of x86-64; "": the highest that runs here.
        cores: that one call of an operator may use.

    Raises:
        TuningError: the level is unknown, or this processor does not run it; there are fewer cores.
    """
    level, here = level_of(target), len(own_cores())
    if cores > here:
        raise TuningError(
            f"tune: {cores} cores are asked for, and this process may run on {here} only"
        )
    return CodeTarget(level, cores)


def own_cores() -> list[int]:
    """Return the cores that this process may run on, in order."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
