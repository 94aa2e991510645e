"""`run_stages`: exported stages run as a pipeline of processes, compared with the whole model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from operator import add
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import numpy as np

from go_rl.core import ExecutionError, PlanError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.core.printable import counted
from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.output_errors import OutputError
from go_rl.plans.pipeline.processes import StageProcesses, stage_processes
from go_rl.plans.pipeline.sessions import check_runtime
from go_rl.plans.pipeline.turns import StageClock
from go_rl.plans.pipeline.whole_model import WholeModel
from go_rl.plans.stages.manifest import Manifest, check_files, stage_devices

if TYPE_CHECKING:
    from go_rl.plans.audit.stages import PipelineAudit
from go_rl.core import Hardware, Plan
from go_rl.core.evaluation import finite
from go_rl.core.hardware.processor import processor_name
from go_rl.costs.models.stage_times import StageTimes
from go_rl.plans.stages.folder import PLAN


@dataclass(frozen=True)
class StageRun:
    """A stage that was run; mean seconds a sample."""

    stage: int
    device: int
    core: int
    nodes: int
    busy_seconds: float
    sending_seconds: float
    waiting_seconds: float
    typical_seconds: float
    """Median of what it was busy and sending, or of its processor time if that is less: the core
    may have other work."""
    predicted_seconds: float | None
    """By the plan, on its own hardware."""


@dataclass(frozen=True)
class PipelineRun:
    """Stages that were run."""

    stages: tuple[StageRun, ...]
    throughput: float
    """Samples a second, of the steady pipeline."""
    predicted_throughput: float | None
    """By the plan, on its own hardware."""
    outputs: tuple[OutputError, ...] | None
    """None: the whole model was not run."""
    whole_throughput: float | None
    """Samples a second of the whole model in one process that has all cores."""
    notes: tuple[str, ...] = ()
    audit: PipelineAudit | None = None
    """Operators that ran in each stage; None: that was not asked."""

    @property
    def max_relative_error(self) -> float | None:
        """The largest of all outputs; None: the whole model was not run."""
        if self.outputs is None:
            return None
        return max((each.max_relative for each in self.outputs), default=0.0)

    def accepted(self, tolerance: float | None = None) -> bool | None:
        """Return whether every output agrees with the whole model's; None: that was not run.

        Args:
            tolerance: largest relative difference; None: of each output, its own
                (`OutputError.tolerance`).
        """
        if self.outputs is None:
            return None
        return all(each.accepted(tolerance) for each in self.outputs)

    def to_json(self, tolerance: float | None = None) -> dict[str, Any]:
        """Return one JSON object, with null for an infinite difference; ``tolerance`` as in
        `accepted`."""
        outputs = self.outputs
        return {
            **asdict(self),
            "outputs": None if outputs is None else [each.to_json(tolerance) for each in outputs],
            "max_relative_error": finite(self.max_relative_error),
            "accepted": self.accepted(tolerance),
        }


def run_stages(
    folder: Path,
    manifest: Manifest,
    inputs: Mapping[str, np.ndarray],
    config: PipelineConfig,
    whole: Path | None = None,
    audit: bool = False,
) -> PipelineRun:
    """Run the stages of a folder, each on a core of this machine, with the same inputs for every
    sample.

    Args:
        folder: with the stages.
        manifest: of the folder.
        inputs: of the model, by name.
        config: see there.
        whole: the model itself; its outputs are compared, its throughput is measured.
        audit: ask onnxruntime what it ran for the first sample. Its optimised models, weights
            included, lie in the folder for temporary files meanwhile.

    Raises:
        PlanError: the file of a stage is missing, or an audit is asked of another runtime.
        MissingDependencyError: what runs the stages is not installed, or cannot be imported.
        ExecutionError: a stage cannot be loaded, dies, or makes no progress; none stays behind.
    """
    check_runtime(manifest.runtime)
    check_files(folder, manifest)
    if audit and manifest.runtime != "onnxruntime":
        raise PlanError(
            f"{folder}: its stages are run by {manifest.runtime}, which does not say what it ran; "
            "an audit needs stages of an ONNX model"
        )
    with ExitStack() as stack:
        records = _record_folder(stack) if audit else None
        running = stack.enter_context(stage_processes(folder, manifest, config, records))
        made = running.probe(inputs)
        times = running.pipeline(made)
        asked = _audited(folder, manifest, running) if audit else None
    cores = len(os.sched_getaffinity(0))
    reference = (
        None if whole is None else WholeModel(whole, manifest, inputs, cores, config.as_written)
    )
    outputs = None if reference is None else tuple(reference.compare(made))
    stages = tuple(
        StageRun(
            number, stage.device, running.core[stage.device], stage.nodes,
            *map(mean, (took.busy, took.sending, took.waiting)),
            typical_seconds=min(median(map(add, took.busy, took.sending)), median(took.processor)),
            predicted_seconds=stage.predicted_seconds,
        )
        for number, (stage, took) in enumerate(zip(manifest.stages, times, strict=True))
    )  # fmt: skip
    return PipelineRun(
        stages, _throughput(times), manifest.predicted_throughput,
        outputs, None if reference is None else reference.throughput(config),
        _notes(len(running.devices), cores, outputs or ()), asked,
    )  # fmt: skip


def _notes(devices: int, cores: int, outputs: Sequence[OutputError]) -> tuple[str, ...]:
    found = []
    if devices > cores:
        shared = f"{devices} devices share {counted(cores, 'core')}"
        found.append(f"{shared}: throughput says nothing of the plan")
    if unusable := [each.output for each in outputs if not each.is_finite]:
        found.append(
            f"numbers of {counted(len(unusable), 'output')}, {unusable[0]!r} first, are not finite "
            "in the whole model either, so that their agreement says little: give real --inputs"
        )
    return tuple(found)


def _audited(folder: Path, manifest: Manifest, running: StageProcesses) -> PipelineAudit:
    from go_rl.plans.audit.stages import audit_stages  # the processes need none of it

    return audit_stages(folder, manifest, running.records, running.core)


def _record_folder(stack: ExitStack) -> Path:
    """A folder for onnxruntime's records, which goes with the stack."""
    try:
        return stack.enter_context(scratch_folder("audit"))
    except OSError as error:
        raise ExecutionError(
            f"no folder for onnxruntime's records can be made ({error.strerror})"
        ) from error


def _throughput(times: Sequence[StageClock]) -> float:
    """Samples a second between the first and the last timed sample of the slowest stage."""
    ends = max((took.ends for took in times), key=lambda each: each[-1])
    return (len(ends) - 1) / max(ends[-1] - ends[0], 1e-9)


def measured_times(folder: Path, manifest: Manifest, run: PipelineRun) -> StageTimes:
    """Return the seconds of each device that ran, with the nodes that its stages have.

    Raises:
        PlanError: the folder has no plan, or a malformed one.
    """
    plan = Plan.load(folder / PLAN)
    hardware = Hardware.from_json(plan.hardware)
    devices = sorted({stage.device for stage in run.stages})
    home = stage_devices(plan, manifest)
    nodes = {device: set(np.flatnonzero(home == device).tolist()) for device in devices}
    for node, copies in plan.replicas.items():
        for device in copies:
            nodes[device].add(node)
    seconds = (
        sum(stage.typical_seconds for stage in run.stages if stage.device == device)
        for device in devices
    )
    return StageTimes(
        plan.graph_hash, hardware.devices[devices[0]].kind, processor_name(), manifest.runtime,
        tuple(tuple(sorted(nodes[device])) for device in devices), tuple(seconds),
    )  # fmt: skip
