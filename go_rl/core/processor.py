"""Which processor this machine has: times are valid for it only."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

FACTS = Path("/proc/cpuinfo")
X86 = ("vendor_id", "cpu family", "model")
ARM = ("CPU implementer", "CPU part")
"""Fields of `FACTS` that tell processors apart."""


def processor_name(facts: Path = FACTS) -> str:
    """Return the processor, such as ``GenuineIntel family 6 model 143``; "": nothing is known.

    The name of its make alone: two machines of it may still differ in clock and memory.

    Args:
        facts: what Linux tells of its processors.
    """
    try:
        told = _fields(facts.read_text(errors="replace"))
    except OSError:
        return platform.processor()
    if all(name in told for name in X86):
        vendor, family, model = (told[name] for name in X86)
        return f"{vendor} family {family} model {model}"
    if all(name in told for name in ARM):
        maker, part = (told[name] for name in ARM)
        return f"ARM implementer {maker} part {part}"
    return platform.processor()


def _fields(text: str) -> Mapping[str, str]:
    """What is said of the first processor."""
    first = text.strip().partition("\n\n")[0]
    pairs = [line.partition(":") for line in first.splitlines()]
    return {name.strip(): value.strip() for name, _, value in pairs}
