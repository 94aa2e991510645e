"""`this_machine`: the machine that runs this, as hardware: its processor, memory and GPUs.

Cores, memory and GPUs are counted; rates are data sheets' where a GPU is known, and else guessed
from what the processor says of itself. Every guess is a sentence.
"""

from __future__ import annotations

import csv
import os
import platform
import re
import subprocess
from dataclasses import dataclass, replace

from go_rl.core.errors import HardwareError
from go_rl.core.hardware.hardware import Device, Hardware
from go_rl.core.hardware.links import LinkGroup, Links, Topology
from go_rl.core.hardware.processor import FACTS, own_cores
from go_rl.core.hardware.systems import GPU_DEVICES, GPU_LINKS, PCIE_4
from go_rl.core.printable import counted

GPU_NAMES = (
    (r"P100", "p100"), (r"V100.*16GB", "v100-16gb"), (r"V100", "v100"),
    (r"A100.*40GB", "a100-40gb"), (r"A100", "a100"),
    (r"H100.*PCIe", "h100-pcie"), (r"H100", "h100"),
    (r"\bP4\b", "p4"), (r"\bT4\b", "t4"), (r"\bL4\b", "l4"), (r"\bA10\b", "a10"),
    (r"RTX A6000", "a6000"), (r"RTX 3090(?! Ti)", "rtx-3090"),
    (r"RTX 4090(?! [DL])", "rtx-4090"),
)  # fmt: skip
"""GPUs in `GPU_DEVICES` by what nvidia-smi calls them; the first pattern found counts."""
FLOPS_A_CYCLE = (("avx512f", 64), ("avx2", 32), ("avx", 16), ("asimd", 16))
"""float32 operations a cycle of one core by the widest instructions that it has: two multiply-adds
of the width."""
OTHER_FLOPS = 8
CLOCK = 2e9
"""Hz where the processor does not say."""
CORE_BANDWIDTH, MOST_BANDWIDTH = 12e9, 200e9
"""Bytes/s to memory of one core, and of all together at most."""
LAUNCH = 2e-6
"""Seconds to start an operator on the processor."""
QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
TOPOLOGY = ("nvidia-smi", "topo", "-m")
NVLINK = re.compile(r"\bNV\d+\b")
PATIENCE = 20.0
"""Seconds that nvidia-smi may take."""


@dataclass(frozen=True)
class MachineFacts:
    """Facts that a machine states of itself."""

    cores: int
    """Cores that this process may use."""
    memory_bytes: float
    processor: str
    """Linux's description of the processors; empty: there is none."""
    gpus: tuple[tuple[str, float], ...] = ()
    """Name and bytes of memory of each GPU."""
    nvlink: bool = False
    """Whether GPUs are joined by NVLink."""


def machine_facts() -> MachineFacts:
    """Return the facts of this machine; without nvidia-smi it has no GPUs."""
    rows = list(csv.reader(_said_by(QUERY).splitlines(), skipinitialspace=True))
    gpus = tuple((row[0], float(row[1]) * 2**20) for row in rows if _is_gpu(row))
    text = FACTS.read_text(errors="replace") if FACTS.exists() else ""
    joined = len(gpus) > 1 and bool(NVLINK.search(_said_by(TOPOLOGY)))
    return MachineFacts(own_cores(), _memory_bytes(), text, gpus, joined)


def this_machine(facts: MachineFacts | None = None) -> tuple[Hardware, tuple[str, ...]]:
    """Return the hardware, and sentences on what was guessed or left out.

    Args:
        facts: of the machine; None: of this one.
    """
    facts = facts or machine_facts()
    processor, guesses = _processor(facts)
    gpus, more = _gpus(facts)
    links, joined = _links(facts, gpus)
    count = f"{len(gpus)} GPU{'s' * (len(gpus) != 1)} and " if gpus else ""
    hardware = Hardware(
        f"this-{_word(platform.node()) or 'machine'}",
        (*gpus, processor),
        links,
        None,
        f"{count}{counted(facts.cores, 'core')} with {facts.memory_bytes / 1e9:.0f} GB",
    )
    return hardware, (*more, *joined, *guesses)


def _processor(facts: MachineFacts) -> tuple[Device, list[str]]:
    """All cores together as one device."""
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", facts.processor, re.MULTILINE)
    words = set(flags[1].split()) if flags else set()
    width, each = next(
        ((name, flops) for name, flops in FLOPS_A_CYCLE if name in words), ("", OTHER_FLOPS)
    )
    told = re.search(r"^cpu MHz\s*:\s*([\d.]+)", facts.processor, re.MULTILINE)
    clock = float(told[1]) * 1e6 if told else CLOCK
    bandwidth = min(facts.cores * CORE_BANDWIDTH, MOST_BANDWIDTH)
    known = f"{width} instructions" if width else "no known vector instructions"
    spoken = "as the processor says" if told else "which the processor does not say"
    device = Device(
        "host-cpu", facts.cores * each * clock, facts.memory_bytes, bandwidth, LAUNCH, bandwidth,
        is_cpu=True,
    )  # fmt: skip
    return device, [
        f"host-cpu: {device.peak_flops / 1e9:.4g} GFLOP/s guessed from "
        f"{counted(facts.cores, 'core')} with {known} ({each} float32 operations a cycle) at "
        f"{clock / 1e9:.3g} GHz, {spoken}",
        f"host-cpu: memory rate of {bandwidth / 1e9:.4g} GB/s guessed from "
        f"{CORE_BANDWIDTH / 1e9:g} GB/s a core, {MOST_BANDWIDTH / 1e9:g} at most; "
        f"{LAUNCH * 1e6:g} µs to start an operator guessed",
    ]


def _gpus(facts: MachineFacts) -> tuple[tuple[Device, ...], list[str]]:
    found, said = [], [] if facts.gpus else ["no GPU: nvidia-smi is not here or names none"]
    for name, memory in facts.gpus:
        flavour = next((f for pattern, f in GPU_NAMES if re.search(pattern, name)), None)
        if flavour is None:
            said.append(
                f"GPU {name!r} is left out: its rates are not known; add it by go-rl hardware new "
                f"--devices FILE --kind {_word(name)} --tflops ... --memory-gb {memory / 1e9:.0f} "
                "--memory-gb-per-s ..."
            )
            continue
        found.append(replace(GPU_DEVICES[flavour], memory_bytes=memory))
        said.append(
            f"GPU {name!r}: rates of the data sheet of {flavour}; {memory / 1e9:.1f} GB counted"
        )
    return tuple(found), list(dict.fromkeys(said))


def _links(facts: MachineFacts, gpus: tuple[Device, ...]) -> tuple[Links, list[str]]:
    """PCIe between all devices, and NVLink between GPUs that have it."""
    plain = Links(Topology.FULL, *PCIE_4)
    if not gpus:
        return plain, []
    said = [f"links: PCIe 4.0, {_rates(plain)} guessed"]
    if not facts.nvlink or len(gpus) < 2:
        return plain, said
    fast = GPU_LINKS[gpus[0].kind]
    group = LinkGroup("NVLink", (tuple(range(len(gpus))),), fast.bandwidth, fast.latency_seconds)
    said.append(f"links: NVLink between all GPUs, {_rates(fast)} guessed from {gpus[0].kind}")
    return replace(plain, groups=(group,)), said


def _rates(links: Links) -> str:
    return f"{links.bandwidth / 1e9:g} GB/s, {links.latency_seconds * 1e6:g} µs"


def _memory_bytes() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError) as error:
        raise HardwareError(
            "hardware this: this system does not say how much memory it has; use go-rl hardware new"
        ) from error


def _said_by(command: tuple[str, ...]) -> str:
    """Output of a command; empty where it is not there or fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _is_gpu(row: list[str]) -> bool:
    return len(row) == 2 and row[1].replace(".", "", 1).isdigit()


def _word(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
