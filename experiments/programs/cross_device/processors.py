"""Programs of two processors, and operators of GPUs, as examples of one numbering.

Of the new processor are kept the programs that the other one ran, too, so that all arms are judged
by the same rows. Operators of GPUs are loop nests from their sizes
(`experiments.programs.nests.gpu_nests`); each operator and size is a task of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import nan
from pathlib import Path
from types import MappingProxyType

import numpy as np

from experiments.programs.cross_device.arms import NO_TWIN, twins
from experiments.programs.cross_device.setting import Kinds
from experiments.programs.nests.gpu_nests import nests_of_operators
from go_rl.costs.learning.splits import DataSplit, by_target
from go_rl.costs.operators.examples import OperatorExamples, error_groups
from go_rl.costs.operators.fitting import UNKNOWN_TILE
from go_rl.costs.operators.measured_tables import of_devices, read_measured
from go_rl.costs.operators.product_model import TILES
from go_rl.costs.operators.tables.operator_rows import SIZES
from go_rl.costs.programs.learn.examples import (
    KeepRules,
    ProgramExamples,
    ProgramInputs,
    target_numbers,
)
from go_rl.costs.programs.learn.reading import join_examples, read_examples
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.measure.features_file import nest_features
from go_rl.costs.programs.nests import nest_to_json
from go_rl.costs.programs.workloads.task import SIZES as OPERATOR_SIZES

GPUS: Mapping[str, str] = MappingProxyType(
    {"p100": "p100", "t4": "t4", "v100": "v100", "a100-40gb": "a100"}
)
"""Names of the measured tables, and of the table of device features."""
OPERATORS = tuple(OPERATOR_SIZES)
"""Kinds of tasks."""
OF_GPU: Mapping[str, str] = MappingProxyType({
    "bmm": "matmul", "linear": "matmul", "conv": "conv2d", "softmax": "softmax", "ln": "layer_norm",
})  # fmt: skip
"""Kinds of GPU operators; others are element-wise."""
RULES = KeepRules(least_programs=1)
"""Tasks of one program are kept: seconds can be learned of them."""
CPU, GPU, BOTH_KINDS = "CPU", "GPUs", "GPUs and CPU"
"""What is learned from."""


@dataclass(frozen=True, eq=False)
class Processors:
    """``P`` programs of a source processor, of the target that has them, too, and of GPUs."""

    examples: ProgramExamples
    source: str
    target: str
    """Names of the processors."""
    kinds: Kinds
    unmatched: int
    """Programs of the target that the source did not run, left out."""

    @cached_property
    def device(self) -> np.ndarray:
        """[P] name of the device."""
        names = np.array([each.device for each in self.examples.inputs.targets])
        return names[self.examples.inputs.target]

    @property
    def targets(self) -> tuple[int, ...]:
        """Numbers of the target's levels of code."""
        all_targets = enumerate(self.examples.inputs.targets)
        return tuple(i for i, each in all_targets if each.device == self.target)

    def split(self, learned: str, seed: int) -> DataSplit:
        """Return the split by task of the two processors, the same whatever is learned from.

        Args:
            learned: one of `CPU`, `GPU` and `BOTH_KINDS`; of GPUs, all rows.
            seed: draws the tasks.
        """
        rows = np.flatnonzero(np.isin(self.device, (self.source, self.target)))
        task, own = self.examples.inputs.task[rows], (self.device[rows] == self.target).astype(int)
        split = by_target(task, own, 1, seed)
        gpus = np.setdiff1d(np.arange(len(self.device)), rows)
        train = {CPU: rows[split.train], GPU: gpus,
                 BOTH_KINDS: np.concatenate([rows[split.train], gpus])}[learned]  # fmt: skip
        parts = (rows[part] for part in (split.validation, split.test))
        return DataSplit(train, *parts, held_out=rows[split.held_out], adapt=rows[split.adapt])

    def both_seconds(self) -> tuple[np.ndarray, np.ndarray, ProgramInputs]:
        """Return [J] seconds of the same programs on the source and on the target, and these."""
        new = self.examples.take(np.flatnonzero(self.device == self.target))
        old = self.examples.take(np.flatnonzero(self.device == self.source))
        return old.seconds[twins(new.inputs, old.inputs)], new.seconds, new.inputs


def read_processors(source: str, target: str, operators: Path, rows: int, kept: Path) -> Processors:
    """Return the programs of two sources of records, each of one processor, and of GPUs.

    Args:
        source: what is learned from.
        target: of the new processor.
        operators: folder of measured GPU operators.
        rows: of each GPU and group of operators, drawn at random.
        kept: folder for the features of their loop nests.

    Raises:
        GoRLError: a source cannot be read.
    """
    gpus = _gpu_examples(read_measured(operators), rows, kept)
    parts = [read_examples(each, RULES) for each in (source, target)]
    names = [part.inputs.targets[0].device for part in parts]
    joined = join_examples([*parts, gpus[0]])
    inputs = joined.inputs
    of_target = np.array([each.device == names[1] for each in inputs.targets])[inputs.target]
    new, old = np.flatnonzero(of_target), np.flatnonzero(~of_target)
    matched = twins(inputs.take(new), inputs.take(old)) != NO_TWIN
    examples = joined.take(np.sort(np.concatenate([old, new[matched]])))
    return Processors(examples, names[0], names[1], _kinds(inputs, gpus[1]), int((~matched).sum()))


def _kinds(inputs: ProgramInputs, of_gpus: list[str]) -> Kinds:
    """Of the tasks of processors, then of those of GPUs."""
    known = [task for task in inputs.tasks if task is not None]
    kind = [*(task.op for task in known), *of_gpus]
    work = [(float(task.flops), nan) for task in known] + [(nan, nan)] * len(of_gpus)
    return Kinds(np.array([OPERATORS.index(each) for each in kind]), np.array(work))


def _gpu_examples(
    measured: OperatorExamples, count: int, kept: Path
) -> tuple[ProgramExamples, list[str]]:
    """Drawn rows of each GPU and group of operators, and the kind of each task."""
    chosen = of_devices(measured, tuple(GPUS))
    chosen = chosen.take(_drawn(chosen, count))
    rows = chosen.inputs.rows
    tiles = [None if t == UNKNOWN_TILE else TILES[t] for t in chosen.tile.tolist()]
    nests = tuple(map(nest_to_json, nests_of_operators(rows, tiles)))
    texts = sorted(set(nests))
    nest = np.searchsorted(np.array(texts), np.array(nests))
    sizes = zip(*(rows.sizes[name].tolist() for name in SIZES), strict=True)
    number: dict[tuple[object, ...], int] = {}
    task = [number.setdefault((op, *size), len(number))
            for op, size in zip(rows.op.tolist(), sizes, strict=True)]  # fmt: skip
    targets = tuple(ProgramTarget(GPUS[sheet.name], "") for sheet in chosen.inputs.devices)
    inputs = ProgramInputs(
        asts=nest_features(tuple(texts), kept).take(nest), task=np.array(task),
        target=chosen.inputs.device, tasks=(None,) * len(number), networks=((),) * len(number),
        targets=targets, devices=np.array([target_numbers(each) for each in targets]),
        nest=nest, trace=np.zeros(len(nest), np.int64), nests=tuple(texts), traces=("",),
    )  # fmt: skip
    kinds = [OF_GPU.get(str(op), "elementwise") for op, *_ in number]
    spread = np.zeros(len(nest))
    return ProgramExamples(inputs, chosen.seconds, spread, "GPU operators"), kinds


def _drawn(measured: OperatorExamples, count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    group, device = error_groups(measured.inputs.rows), measured.inputs.device
    keys = group * len(measured.inputs.devices) + device
    drawn = [rng.permutation(np.flatnonzero(keys == key))[:count] for key in np.unique(keys)]
    return np.sort(np.concatenate(drawn))
