"""`audit_stages`: what onnxruntime says of stages that ran, held against their manifest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from go_rl.core import ExecutionError, Plan
from go_rl.core.printable import listed
from go_rl.graphs.readers.onnx.load import load_whole
from go_rl.plans.audit.profile import Kernel, OperatorRuns, operator_runs, read_profile
from go_rl.plans.pipeline.sessions import StageRecord
from go_rl.plans.stages.folder import PLAN
from go_rl.plans.stages.manifest import Manifest, stage_devices

PROVIDER = "CPUExecutionProvider"
"""Execution provider of stages."""


@dataclass(frozen=True)
class StageAudit:
    """Operators that ran in a stage, by name."""

    stage: int
    device: int
    process: int
    cores: tuple[int, ...]
    """Cores that the process may use."""
    providers: tuple[str, ...]
    """Execution providers of its kernels."""
    alone: tuple[str, ...]
    """Operators with a kernel of their own."""
    joined: dict[str, tuple[str, ...]]
    """Kernels of each operator that ran as a part of them."""
    folded: tuple[str, ...]
    """Operators of constants, computed when the stage was loaded."""
    removed: tuple[str, ...]
    """Operators that onnxruntime left out, since nothing needs them."""
    added: tuple[str, ...]
    """Kernels that compute no operator, such as changes of layout."""


@dataclass(frozen=True)
class PipelineAudit:
    """Operators that ran in each stage, held against the plan."""

    stages: tuple[StageAudit, ...]
    differences: tuple[str, ...]
    """Sentences that name operators; none: everything ran where the stages have it."""
    moved: tuple[str, ...] = ()
    """Operators that the stages have on another device than the plan: quantisers, which stay with
    what they quantise."""

    def require(self) -> None:
        """Raise an `ExecutionError` that names the operators, if any ran elsewhere."""
        if self.differences:
            raise ExecutionError(f"audit: {'; '.join(self.differences)}")

    def to_json(self) -> dict[str, Any]:
        """Return one JSON object."""
        return asdict(self)


def audit_stages(
    folder: Path, manifest: Manifest, records: Sequence[StageRecord], core: dict[int, int]
) -> PipelineAudit:
    """Return what ran in each stage, and what differs from the manifest.

    Args:
        folder: with the stages and their plan.
        manifest: of the plan.
        records: of each stage.
        core: of each device.

    Raises:
        ExecutionError: a record cannot be read.
        PlanError: the plan is missing or malformed.
        ReadError: the file of a stage cannot be read.
    """
    stages, differences = list[StageAudit](), list[str]()
    process = {each.device: record.process
               for each, record in zip(manifest.stages, records, strict=True)}  # fmt: skip
    for number, record in enumerate(records):
        stage = manifest.stages[number]
        audit = _Stage(number, manifest, record, load_whole(folder / stage.file).graph)
        stages.append(audit.found())
        differences += audit.misplaced()
        differences += audit.unlike(process[stage.device], core[stage.device])
    plan = Plan.load(folder / PLAN)
    moved = np.flatnonzero(stage_devices(plan, manifest) != plan.device).tolist()
    names = tuple(str(plan.nodes[node]) for node in moved)
    return PipelineAudit(tuple(stages), tuple(differences), names)


class _Stage:
    """One stage, as its file, the manifest and onnxruntime have it."""

    def __init__(
        self, number: int, manifest: Manifest, record: StageRecord, graph: onnx.GraphProto
    ) -> None:
        self.number, self.manifest, self.record = number, manifest, record
        self.stage = manifest.stages[number]
        self.names = [node.name for node in graph.node]
        self.profile = read_profile(record.profile)
        optimised = load_whole(record.optimised).graph
        self.runs: OperatorRuns = operator_runs(graph, optimised, self.profile)

    def found(self) -> StageAudit:
        """Return the operators by what became of them."""
        names, fates, runs = self.names, self.runs.fates, self.runs
        shared = {n: runs.shares(n) for n in fates.kernels}
        return StageAudit(
            self.number, self.stage.device, self.record.process, self.record.cores,
            tuple(sorted({kernel.provider for kernel in self.profile})),
            tuple(names[n] for n, others in shared.items() if not others),
            {names[n]: tuple(kernel.name for kernel in runs.of(n))
             for n, others in shared.items() if others},
            tuple(names[n] for n in sorted(fates.folded)),
            tuple(names[n] for n in sorted(fates.removed)),
            runs.added,
        )  # fmt: skip

    def misplaced(self) -> Iterable[str]:
        """Yield operators of the file that the plan does not have here, and those that it lacks."""
        wanted = {*self.stage.operators, *self.stage.copies}
        home = {name: (number, stage.device)
                for number, stage in enumerate(self.manifest.stages)
                for name in stage.operators}  # fmt: skip
        for name in dict.fromkeys(self.names):
            if name not in wanted:
                where = "the plan has none of that name"
                if name in home:
                    stage, device = home[name]
                    where = f"the plan has it in stage {stage} (device {device})"
                yield f"operator {name!r} ran in {self._here}; {where}"
        lacking = sorted(wanted - set(self.names))
        if lacking:
            yield f"{self._here} lacks {listed(lacking)}, which the plan has there"

    def unlike(self, process: int, core: int) -> Iterable[str]:
        """Yield operators that did not run, ran more than once, elsewhere, or by another
        provider."""
        silent = [self.names[n] for n in self.runs.fates.kernels if not self.runs.of(n)]
        if silent:
            yield f"{listed(silent)} of {self._here} did not run"
        for kernel in self.profile:
            if kernel.provider != PROVIDER:
                yield self._of(kernel, f"ran on {kernel.provider}, not on {PROVIDER}")
            elif kernel.process != process:
                yield self._of(kernel, f"ran in process {kernel.process}, not in {process}")
        ran = {place: kernels for place, kernels in self.runs.ran.items() if len(kernels) == 1}
        for place, (kernel,) in ran.items():
            if kernel.runs != 1 and place in self.runs.fates.joined:
                yield self._of(kernel, f"ran {kernel.runs} times for one sample")
        if self.record.cores != (core,):
            cores = ", ".join(map(str, self.record.cores))
            yield f"{listed(self.names)} of {self._here} may run on cores {cores}, not only {core}"

    @property
    def _here(self) -> str:
        return f"stage {self.number} (device {self.stage.device})"

    def _of(self, kernel: Kernel, what: str) -> str:
        """A sentence about the operators of a kernel."""
        places = [place for place, kernels in self.runs.ran.items() if kernel in kernels]
        inside = [self.names[n] for place in places for n in self.runs.fates.joined.get(place, ())]
        return f"{listed(inside or [kernel.name])} of {self._here} {what}"
