"""`export_stages`, `run_stages`: a plan as programs by stage, run on this machine's cores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.load import load
from go_rl.core import OpGraph, Plan, PlanError
from go_rl.core.errors import nearest
from go_rl.core.files.paths import path_of

if TYPE_CHECKING:
    import numpy as np

    from go_rl.plans.audit import PipelineAudit as PipelineAudit
    from go_rl.plans.pipeline.config import PipelineConfig
    from go_rl.plans.pipeline.pipeline import PipelineRun as PipelineRun
    from go_rl.plans.stages.manifest import Manifest


def export_stages(
    plan: Plan | str | Path,
    model: str | Path | Callable[..., Any],
    to: str | Path,
    graph: OpGraph | None = None,
    *,
    args: Sequence[Any] | None = None,
    **options: Any,
) -> Manifest:
    """Write a program for each stage of a plan, and a manifest of what goes where.

    Args:
        plan: a plan, or the path of a plan.json.
        model: what it is for: an ONNX file, a ``.pt2`` archive, ``module:name`` of a JAX function
            or a PyTorch module, or a JAX function itself.
        to: a new or empty folder.
        graph: of the model; None: it is read with the plan's dims.
        args: of a JAX function itself.
        options: further options of `load`, of a function or module by name; of a function itself
            ``weights``.

    Raises:
        PlanError: the plan is malformed, a failure or of another model, the model is of another
            kind, or one operator of the file would lie on two devices.
        ReadError: the model cannot be read, or cannot be cut where the plan cuts it.
        MissingDependencyError: PyTorch is not installed, of a model of PyTorch.
        OSError: the folder cannot be written.
    """
    from go_rl.plans.stages.any_model import export_any, export_function

    plan, to = Plan.of(plan), path_of(to, "a folder of stages", PlanError)
    if callable(model):
        _check_options(options, ("weights",))
        return export_function(plan, model, tuple(args or ()), to, **options)
    if not isinstance(model, str | Path):
        raise PlanError(
            f"export_stages: model must be a file, module:name or a JAX function, not {model!r}"
        )
    if args is not None:
        raise PlanError("export_stages: args are those of a JAX function itself, not of a file")
    _check_options(options, tuple(signature(load).parameters)[1:])
    return export_any(plan, model, to, graph, options)


def _check_options(given: Collection[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise PlanError(
                f"export_stages: no option {name!r}{nearest(name, known)} Options here: "
                f"{', '.join(known)}"
            )


def run_stages(
    folder: str | Path,
    *,
    inputs: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    check: bool = False,
    audit: bool = False,
    model: str | Path | None = None,
    config: PipelineConfig | None = None,
    record: str | Path | None = None,
) -> PipelineRun:
    """Run exported stages, one process a device, each on a core of this machine.

    Args:
        folder: that `export_stages` wrote.
        inputs: ``.npz`` with an array by input; None: numbers are drawn.
        dims: sizes of dimensions that the model leaves open, beside those of the plan.
        check: compare the outputs with those of the whole model, and measure its throughput.
        audit: ask onnxruntime what it ran in each stage, and hold that against the plan; see
            `PipelineRun.audit`.
        model: the whole model; None: where it was when the stages were written.
        config: samples, slots and the like.
        record: file to which the measured seconds are appended; ``optimize(…,
            cost="stages:FILE")`` then prices the model's operators so that these stages come out.

    Raises:
        PlanError: there is no manifest, it is malformed, or the file of a stage is missing.
        RecordError: the file cannot be written.
        ExecutionError: an input is missing, a stage cannot be loaded, dies or makes no progress.
        MissingDependencyError: what runs the stages is not installed.
    """
    from go_rl.costs.models.stage_times import append_times, read_times
    from go_rl.plans.pipeline.config import PipelineConfig
    from go_rl.plans.pipeline.model_inputs import model_inputs
    from go_rl.plans.pipeline.pipeline import measured_times, run_stages
    from go_rl.plans.stages.folder import PLAN
    from go_rl.plans.stages.manifest import read_manifest

    folder, config = Path(folder), config or PipelineConfig()
    if record is not None and Path(record).exists():
        read_times(Path(record))  # a file of something else must not be appended to
    if record is not None:
        Plan.load(folder / PLAN).on_its_hardware()  # the times are of its nodes and devices
    if model is not None and not check:
        raise PlanError("run_stages: model is what outputs are compared with: set check, too")
    manifest = read_manifest(folder)
    arrays: dict[str, np.ndarray] = model_inputs(
        manifest, folder, None if inputs is None else Path(inputs), dims or {}, config.seed
    )
    whole = Path(model) if model is not None else folder / manifest.model
    if check and not whole.is_file():
        raise PlanError(f"{whole}: the whole model is not there; name it with --model")
    found = run_stages(folder, manifest, arrays, config, whole if check else None, audit)
    if record is not None:
        append_times(Path(record), measured_times(folder, manifest, found))
    return found
