"""`export_stages`, `run_stages`: a plan as ONNX files, run on this machine's cores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.api.load import load
from go_rl.core import OpGraph, Plan, PlanError

if TYPE_CHECKING:
    import numpy as np

    from go_rl.plans.audit import PipelineAudit as PipelineAudit
    from go_rl.plans.pipeline import PipelineConfig
    from go_rl.plans.pipeline import PipelineRun as PipelineRun
    from go_rl.plans.stages import Manifest


def export_stages(
    plan: Plan | str | Path, model: str | Path, to: str | Path, graph: OpGraph | None = None
) -> Manifest:
    """Write one ONNX file a stage of a plan, and a manifest of what goes where.

    Args:
        plan: a plan, or the path of a plan.json.
        model: the ONNX file that it is for.
        to: a new or empty folder.
        graph: of the model; None: it is read with the plan's dims.

    Raises:
        PlanError: the plan is malformed, a failure or of another model, the model is no ONNX file,
            or one operator of the file would lie on two devices.
        ReadError: the model cannot be read.
        OSError: the folder cannot be written.
    """
    from go_rl.graphs.readers.recognise import Format, recognise
    from go_rl.plans.stages import export_stages as export

    plan, path = plan if isinstance(plan, Plan) else Plan.load(plan), Path(model)
    if not path.is_file() or recognise(path) is not Format.ONNX:
        raise PlanError(f"{model}: stages are written of ONNX files")
    graph = load(path, plan.dims) if graph is None else graph
    return export(plan, graph, path, Path(to))


def run_stages(
    folder: str | Path,
    *,
    inputs: str | Path | None = None,
    dims: Mapping[str, int] | None = None,
    check: bool = False,
    audit: bool = False,
    model: str | Path | None = None,
    config: PipelineConfig | None = None,
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

    Raises:
        PlanError: there is no manifest, it is malformed, or the file of a stage is missing.
        ExecutionError: an input is missing, a stage cannot be loaded, dies or makes no progress.
        MissingDependencyError: onnxruntime is not installed.
    """
    from go_rl.plans.pipeline import PipelineConfig, run_stages
    from go_rl.plans.pipeline.model_inputs import model_inputs
    from go_rl.plans.stages import read_manifest

    folder, config = Path(folder), config or PipelineConfig()
    manifest = read_manifest(folder)
    arrays: dict[str, np.ndarray] = model_inputs(
        manifest, None if inputs is None else Path(inputs), dims or {}, config.seed
    )
    whole = Path(model) if model is not None else folder / manifest.model
    if check and not whole.is_file():
        raise PlanError(f"{whole}: the whole model is not there; name it with --model")
    return run_stages(folder, manifest, arrays, config, whole if check else None, audit)
