"""Processor of this machine: measured times are valid for it only."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FACTS = Path("/proc/cpuinfo")
X86 = ("vendor_id", "cpu family", "model")
ARM = ("CPU implementer", "CPU part")
"""Fields of `FACTS` that identify a processor."""
SHIPPED = {"GenuineIntel family 6 model 143": "cpu-1"}
"""Targets of the data and weights that ship with the package, by processor: a Xeon's."""


def processor_name(facts: Path = FACTS) -> str:
    """Return the processor, such as ``GenuineIntel family 6 model 143``; "": nothing is known.

    Only the model of the processor: two machines with it may still differ in clock and memory.

    Args:
        facts: Linux's description of the processors.
    """
    try:
        known = _fields(facts.read_text(errors="replace"))
    except OSError:
        return platform.processor()
    if all(name in known for name in X86):
        vendor, family, model = (known[name] for name in X86)
        return f"{vendor} family {family} model {model}"
    if all(name in known for name in ARM):
        maker, part = (known[name] for name in ARM)
        return f"ARM implementer {maker} part {part}"
    return platform.processor()


@cache
def own_target(facts: Path = FACTS) -> str:
    """Return the target of records of one core of this machine: `SHIPPED`'s word where the shipped
    kernels were measured on such a processor, else its name as one word, such as
    ``authenticamd-family-26-model-2``. Times of two processors never share a target.

    Args:
        facts: Linux's description of the processors.
    """
    name = processor_name(facts) or platform.machine() or "this machine"
    return SHIPPED.get(name) or re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def own_cores() -> int:
    """Return the number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _fields(text: str) -> Mapping[str, str]:
    """Fields of the first processor."""
    first = text.strip().partition("\n\n")[0]
    pairs = [line.partition(":") for line in first.splitlines()]
    return {name.strip(): value.strip() for name, _, value in pairs}
