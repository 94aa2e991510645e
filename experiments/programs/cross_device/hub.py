"""Configurations of the benchmark hub as examples: two kernels, each on several GPUs.

A kernel's configurations are drawn at random, the same on every GPU. One that did not run on a
GPU (its ``time`` is no number) is no row of that GPU. Those whose loop nests have equal features
(they differ in what no nest shows, such as loads through the read-only cache) are one program, the
median of their seconds, as `go_rl.costs.programs.learn.examples.examples_of` has it. A task is a
kernel; what is split and sampled is the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from experiments.programs.cross_device.setting import Kinds
from experiments.programs.nests.benchmark_hub import CHANNELS, HubRecord, hub_records, nest_from_hub
from go_rl.costs.programs.features import CompactAst, compact_ast, pack_asts
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs, target_numbers
from go_rl.costs.programs.measure.data import ProgramTarget

KERNELS = ("convolution", "dedispersion")
HUB_KINDS = Kinds(
    np.arange(len(KERNELS)),
    np.array([
        (2.0 * 4096**2 * 225, 4.0 * (4110**2 + 4096**2)),
        (2.0 * CHANNELS * 25_000 * 2048, 4.0 * 25_000 * (CHANNELS + 2048)),
    ]),
)  # fmt: skip
"""Each kernel with FLOP and the bytes that must move, as it was measured."""
NVIDIA, AMD = ("A100", "A4000", "A6000"), ("MI250X", "W6600")
SHEETS: Mapping[str, str] = MappingProxyType({"MI250X": "mi250x-gcd"})
"""Names in the table of device features, where they differ from the files'."""
Configuration = tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class HubExamples:
    """Examples and what they are programs of; ``P`` rows."""

    examples: ProgramExamples
    """``inputs.task``: number in `KERNELS`; ``inputs.nest``: number of the program."""
    devices: tuple[str, ...]
    """By ``inputs.target``."""

    def of_devices(self, devices: Sequence[str]) -> ProgramExamples:
        """Return the rows of some GPUs; targets keep their numbers."""
        numbers = [self.devices.index(each) for each in devices]
        return self.examples.take(np.flatnonzero(np.isin(self.examples.inputs.target, numbers)))


def read_hub(folder: Path, count: int, seed: int = 0) -> HubExamples:
    """Return drawn configurations of both kernels on all GPUs.

    Args:
        folder: of the benchmark hub.
        count: configurations of a kernel.
        seed: of the draw.

    Raises:
        NestError: a file cannot be read.
    """
    devices = (*NVIDIA, *AMD)
    programs: dict[bytes, CompactAst] = {}
    seconds: dict[tuple[int, bytes, int], list[float | None]] = {}
    for task, kernel in enumerate(KERNELS):
        files = [_records(folder / kernel / f"{name}.json.gz") for name in devices]
        name, size, first = files[0]
        for configuration in _drawn(sorted(first), count, seed):
            ast = compact_ast(nest_from_hub(name, size, dict(configuration)))
            key = ast.vectors.tobytes()
            programs[key] = ast
            for target, (_, _, records) in enumerate(files):
                row = seconds.setdefault((task, key, target), [])
                row.append(records[configuration].seconds)
    return HubExamples(_examples(devices, programs, seconds), devices)


def _records(path: Path) -> tuple[str, tuple[int, ...], dict[Configuration, HubRecord]]:
    kernel, _, size, records = hub_records(path)
    return kernel, size, {tuple(sorted(each.parameters.items())): each for each in records}


def _drawn(known: list[Configuration], count: int, seed: int) -> list[Configuration]:
    order = np.random.default_rng(seed).permutation(len(known))[:count]
    return [known[i] for i in order.tolist()]


def _examples(
    devices: tuple[str, ...],
    programs: Mapping[bytes, CompactAst],
    seconds: Mapping[tuple[int, bytes, int], list[float | None]],
) -> ProgramExamples:
    number = {key: i for i, key in enumerate(programs)}
    ran = {row: [s for s in found if s is not None] for row, found in seconds.items()}
    failed = sum(len(found) for found in seconds.values()) - sum(map(len, ran.values()))
    rows = [(task, number[key], target, np.median(found))
            for (task, key, target), found in ran.items() if found]  # fmt: skip
    task, program, target = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    targets = tuple(ProgramTarget(SHEETS.get(name, name), "") for name in devices)
    inputs = ProgramInputs(
        asts=pack_asts([*programs.values()]).take(program), task=task, target=target,
        tasks=(None,) * len(KERNELS), networks=tuple((name,) for name in KERNELS), targets=targets,
        devices=np.array([target_numbers(each) for each in targets]),
        nest=program, trace=np.zeros(len(rows), np.int64),
    )  # fmt: skip
    again = sum(len(found) - 1 for found in ran.values() if found)
    dropped = (("did not run", failed), ("of equal programs", again))
    known = np.array([row[3] for row in rows])
    return ProgramExamples(inputs, known, np.zeros(len(rows)), "benchmark-hub", dropped)
