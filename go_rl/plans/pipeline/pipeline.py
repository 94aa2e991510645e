"""`run_stages`: exported stages run as a pipeline of processes, compared with the whole model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import add
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.processes import stage_processes
from go_rl.plans.pipeline.sessions import check_runtime
from go_rl.plans.pipeline.whole_model import OutputError, WholeModel
from go_rl.plans.pipeline.worker import StageClock
from go_rl.plans.stages.manifest import Manifest


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

    @property
    def max_relative_error(self) -> float | None:
        """The largest of all outputs; None: the whole model was not run."""
        if self.outputs is None:
            return None
        return max((each.max_relative for each in self.outputs), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Return one JSON object."""
        return {**asdict(self), "max_relative_error": self.max_relative_error}


def run_stages(
    folder: Path,
    manifest: Manifest,
    inputs: Mapping[str, np.ndarray],
    config: PipelineConfig,
    whole: Path | None = None,
) -> PipelineRun:
    """Run the stages of a folder, each on a core of this machine, with the same inputs for every
    sample.

    Args:
        folder: with the stages.
        manifest: of the folder.
        inputs: of the model, by name.
        config: see there.
        whole: the model itself; its outputs are compared, its throughput is measured.

    Raises:
        MissingDependencyError: what runs the stages is not installed, or cannot be imported.
        ExecutionError: a stage cannot be loaded, dies, or makes no progress; none stays behind.
    """
    check_runtime(manifest.runtime)
    with stage_processes(folder, manifest, config) as running:
        made = running.probe(inputs)
        times = running.pipeline(made)
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
        _notes(len(running.devices), cores, outputs or ()),
    )  # fmt: skip


def _notes(devices: int, cores: int, outputs: Sequence[OutputError]) -> tuple[str, ...]:
    found = []
    if devices > cores:
        found.append(f"{devices} devices share {cores} cores: throughput says nothing of the plan")
    if unusable := [each.output for each in outputs if not each.is_finite]:
        found.append(
            f"numbers of {len(unusable)} outputs, {unusable[0]!r} first, are not finite in the "
            "whole model either, so that their agreement says little: give real --inputs"
        )
    return tuple(found)


def _throughput(times: Sequence[StageClock]) -> float:
    """Samples a second between the first and the last timed sample of the slowest stage."""
    ends = max((took.ends for took in times), key=lambda each: each[-1])
    return (len(ends) - 1) / max(ends[-1] - ends[0], 1e-9)
