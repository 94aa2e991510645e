"""`StageFolder`: a folder of stages, whatever runs them, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from go_rl.core import Device, Hardware, OpGraph, Plan, PlanError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.graphs.cutting.colocation import graph_of_plan
from go_rl.plans.legal import require_plan_of
from go_rl.plans.stages.manifest import FILE, Manifest, Stage, StageTensor

ARRAYS, PLAN = "arrays.npz", "plan.json"


@dataclass(frozen=True)
class StageFolder:
    """A folder that is being written."""

    path: Path
    """Scratch folder, to be renamed."""
    target: Path
    plan: Plan
    stage_devices: tuple[int, ...]
    """Device of each stage."""

    def file(self, number: int, suffix: str) -> Path:
        """Return the file of a stage."""
        return self.path / stage_file(number, self.stage_devices[number], suffix)

    def stage(
        self, number: int, file: Path, operators: Sequence[str], copies: Sequence[str],
        weight_bytes: float, inputs: Sequence[StageTensor], outputs: Sequence[StageTensor],
    ) -> Stage:  # fmt: skip
        """Return the entry of a stage in the manifest."""
        device, seconds = self.stage_devices[number], self.plan.evaluation.device_seconds
        alone = self.stage_devices.count(device) == 1 and len(seconds) > device
        return Stage(
            file.name, device, self._devices[device].kind, tuple(operators), tuple(copies),
            weight_bytes, float(seconds[device]) if alone else None, tuple(inputs), tuple(outputs),
        )  # fmt: skip

    def write_arrays(self, arrays: Mapping[str, np.ndarray]) -> str | None:
        """Write arrays by name beside the stages; return the name of the file, None for none.

        Element types that NumPy does not have by itself, such as bfloat16, are written as bytes.
        """
        if not arrays:
            return None
        plain = {name: _as_plain(array) for name, array in arrays.items()}
        np.savez(self.path / ARRAYS, **plain)  # pyright: ignore[reportArgumentType]
        return ARRAYS

    def write_manifest(
        self, model: str, runtime: str, stages: Sequence[Stage], outputs: Sequence[StageTensor],
        arrays: str | None = None, notes: Sequence[str] = (),
    ) -> Manifest:  # fmt: skip
        """Write and return the manifest; other arguments as its fields."""
        plan = self.plan
        manifest = Manifest(
            model, runtime, arrays, plan.graph_hash, str(plan.hardware.get("name")),
            plan.objective, plan.evaluation.throughput, dict(plan.dims), tuple(stages),
            tuple(outputs), (*plan.notes, *notes),
        )  # fmt: skip
        text = json.dumps(manifest.to_json(), indent=1, ensure_ascii=False)
        (self.path / FILE).write_text(text)
        plan.save(self.path / PLAN)
        return manifest

    @cached_property
    def _devices(self) -> tuple[Device, ...]:
        return Hardware.from_json(self.plan.hardware).devices


def stage_file(number: int, device: int, suffix: str) -> str:
    """Return the name of a stage's file."""
    return f"stage-{number:02d}-device-{device}{suffix}"


def _as_plain(array: np.ndarray) -> np.ndarray:
    """An array, or the bytes of one whose element type an ``.npz`` does not keep."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    return array if array.dtype.isbuiltin == 1 else array[..., None].view(np.uint8)


def check_exportable(plan: Plan, graph: OpGraph, folder: Path) -> None:
    """Check what a plan and a folder must be before anything is cut.

    Raises:
        PlanError: the plan is of another model or a failure, or the folder has files.
    """
    require_plan_of(plan, graph_of_plan(plan, graph))
    if folder.is_symlink() or folder.resolve() == Path.cwd():
        raise PlanError(f"{folder}: name a new or empty folder, no link and not the current one")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PlanError(f"{folder}: is there already; name a new or empty folder")


@contextmanager
def stage_folder(target: Path, plan: Plan, stage_devices: Sequence[int]) -> Iterator[StageFolder]:
    """Yield a folder to be written, which gets its name at the end of the block.

    Raises:
        OSError: it cannot be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder("export", target.parent) as scratch:
        yield StageFolder(scratch, target, plan, tuple(stage_devices))
        if target.exists():
            target.rmdir()
        scratch.rename(target)
    target.chmod(0o755)
