"""Whether exported stages compute what the whole model computes, on many networks.

Run: ``python -m experiments.plans.stages_equal``. Networks: onnx's light models, torchvision's and
transformers' of `measured_gpu` with random weights (their files have none), ResNet-50 of the zoo,
and some of them quantised by onnxruntime. Each is planned for a second, exported, run, and every
output compared.
"""

from __future__ import annotations

import gzip
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import numpy_helper

import go_rl
from experiments.experiment import RESULTS, Experiment
from experiments.page_text import markdown_table
from go_rl.core import GoRLError, Plan
from go_rl.graphs.zoo.resnet50 import write_resnet50_onnx
from go_rl.plans.pipeline import PipelineConfig
from go_rl.plans.stages import Manifest

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
SETTINGS = (
    ("ring", "ring2-900mb"),
    ("ring", "ring4-900mb"),
    ("makespan", "p100x2"),
    ("max-load", "p100x4"),
)
"""Objectives and hardware that networks take in turn."""
TOLERANCE = 1e-4
NAN = float("nan")
WIDTH = 0.02
"""Deviation of random weights."""
LARGEST = 600e6
"""Bytes of weights of the largest network that is run."""
HEAD = """# Stages compute what the whole model computes

Each network planned for a second, its stages exported, run as processes on this machine's cores by
onnxruntime, and every output compared with the whole model's, run by one process with all cores:
the largest relative difference, of numbers of at least a thousandth of the output's largest.
"""
Made = Callable[[Path], object]


@dataclass(frozen=True)
class EqualRow:
    """One network."""

    network: str
    objective: str
    hardware: str
    operators: int
    stages: int
    export_seconds: float
    max_relative: float
    as_written: float
    """The same where onnxruntime joins no operators, in stages and in the whole; nan: not run, for
    the other is within `TOLERANCE`."""
    problem: str
    """Reason why nothing was compared; empty: something was."""


@dataclass(frozen=True)
class StagesEqual(Experiment):
    """Options of the script."""

    seconds: float = 1.0
    """Of planning each."""

    def run(self) -> None:
        """Plan, export, run, compare."""
        kept = self.kept_rows(EqualRow)
        for number, (name, make) in enumerate(_networks()):
            if not kept.has(name):
                kept.add(_row(name, make, SETTINGS[number % len(SETTINGS)], self.seconds))
        self.write_page(_page(kept.rows))


def _networks() -> Iterator[tuple[str, Made]]:
    for path in sorted(LIGHT.glob("*.onnx")):
        yield path.stem, partial(shutil.copyfile, path)
    for path in sorted((RESULTS / "h200" / "networks").glob("*.onnx.gz")):
        yield path.name.removesuffix(".onnx.gz"), partial(_filled, path)
    yield "resnet50", write_resnet50_onnx
    for path in sorted((RESULTS / "h200" / "networks").glob("*.onnx.gz")):
        name = path.name.removesuffix(".onnx.gz")
        yield f"{name}, dynamic int8", partial(_dynamic, path)


def _filled(packed: Path, target: Path) -> None:
    """Write a network whose weights are drawn."""
    model = onnx.load_model_from_string(gzip.decompress(packed.read_bytes()))
    rng = np.random.default_rng(0)
    total = sum(np.prod(t.dims) for t in model.graph.initializer) * 4
    if total > LARGEST:
        raise GoRLError(f"{total / 1e6:.0f} MB of weights, more than {LARGEST / 1e6:.0f}")
    for tensor in model.graph.initializer:
        if not tensor.raw_data and not tensor.ListFields()[-1][0].name.endswith("_data"):
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
            drawn = (WIDTH * rng.standard_normal(tuple(tensor.dims))).astype(dtype)
            if "var" in tensor.name:
                drawn = np.abs(drawn) + 1
            tensor.CopyFrom(numpy_helper.from_array(drawn, tensor.name))
    onnx.save(model, str(target))


def _dynamic(packed: Path, target: Path) -> None:
    """Write a network whose products are quantised while they run."""
    from onnxruntime.quantization import quantize_dynamic

    with TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.onnx"
        _filled(packed, whole)
        quantize_dynamic(str(whole), str(target))


def _row(name: str, make: Made, setting: tuple[str, str], seconds: float) -> EqualRow:
    objective, hardware = setting
    nothing = EqualRow(name, objective, hardware, 0, 0, 0.0, NAN, NAN, "")
    with TemporaryDirectory() as folder:
        model, stages = Path(folder) / "model.onnx", Path(folder) / "stages"
        try:
            make(model)
            decide = "placement" if objective == "makespan" else None
            plan = go_rl.optimize(
                model, hardware=hardware, objective=objective, seconds=seconds, decide=decide
            ).best
            begun = time.perf_counter()
            manifest = go_rl.export_stages(plan, model, stages)
            took = time.perf_counter() - begun
            config = PipelineConfig(samples=2, warm_up=0)
            found = go_rl.run_stages(stages, check=True, config=config)
            worst, same = found.max_relative_error, None
            if worst is not None and worst > TOLERANCE:
                same = go_rl.run_stages(stages, check=True, config=replace(config, as_written=True))
        except (GoRLError, ValueError, RuntimeError) as error:
            return replace(nothing, problem=str(error).splitlines()[0][:200])
    assert worst is not None
    if np.isnan(worst):
        return replace(nothing, problem="its outputs are not finite with random weights")
    again = None if same is None else same.max_relative_error
    return EqualRow(
        name, objective, hardware, _operators(manifest, plan), len(manifest.stages), took,
        worst, NAN if again is None else again, "",
    )  # fmt: skip


def _operators(manifest: Manifest, plan: Plan) -> int:
    return max(len(plan.nodes), max(stage.nodes for stage in manifest.stages))


def _page(rows: list[EqualRow]) -> Iterator[str]:
    yield HEAD
    ran = [row for row in rows if not row.problem]
    good = sum(row.max_relative <= TOLERANCE for row in ran)
    exact = sum(row.as_written <= TOLERANCE for row in ran)
    several = sum(row.stages > 1 for row in ran)
    yield (
        f"{good} of {len(ran)} networks are within {TOLERANCE:g}, and {exact} of the others where "
        f"onnxruntime joins no operators (`--as-written`); {several} have several stages. "
        f"The slowest export took {max(row.export_seconds for row in ran):.1f} s.\n"
    )
    heads = ("network", "objective", "hardware", "operators", "stages", "export, s", "difference",
             "as written")  # fmt: skip
    yield markdown_table(heads, [
        [row.network, row.objective, row.hardware, f"{row.operators:,}", str(row.stages),
         f"{row.export_seconds:.2f}", f"{row.max_relative:.2g}",
         "" if np.isnan(row.as_written) else f"{row.as_written:.2g}"]
        for row in ran
    ])  # fmt: skip
    left = [row for row in rows if row.problem]
    if left:
        yield "\nNot compared:\n"
        yield from (f"- `{row.network}`: {row.problem}" for row in left)


if __name__ == "__main__":
    StagesEqual.main()
