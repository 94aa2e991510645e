"""The guarded subprocess: a crash or a hang of ONNX's C++ code becomes a `ReadError`.

Run as ``python -m go_rl.graphs.readers.onnx.worker FOLDER``: reads ``in.onnx`` and
``settings.json``, writes ``out.onnx`` and ``answer.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import onnx

from go_rl.core.errors import GoRLError, ReadError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.graphs.readers import guarded

WORKER = "go_rl.graphs.readers.onnx.worker"
SHARES = {"inline": 0.3, "complete": 0.7}
"""Parts of a model's time."""
TASKS = {"inline": "inlining of local functions", "complete": "shape inference"}
LARGEST_GROWTH, FREE_BYTES = 100, 256 << 20
"""A model may grow this many times while its functions are inlined, or to this many bytes."""


def complete_in_subprocess(
    model: onnx.ModelProto, settings: dict[str, Any], name: str, seconds: float | None = None
) -> tuple[onnx.ModelProto, list[str]]:
    """Inline functions or complete ``model`` in a subprocess; return it and the notes.

    Args:
        model: a model without bulky weights (headers are enough).
        settings: ``task`` ("inline" or "complete") and the fields of `Completion`.
        name: the model's name, for messages.
        seconds: processor time of the subprocess; None: as befits the model's size.

    Raises:
        ReadError: the model is wrong, or the subprocess crashed or ran out of time.
    """
    with scratch_folder("onnx") as here:
        content = model.SerializeToString()
        (here / "in.onnx").write_bytes(content)
        (here / "settings.json").write_text(json.dumps(settings))
        if seconds is None:
            seconds = guarded.time_limit(len(content), SHARES.get(settings["task"], 1.0))
        _run(here, name, TASKS.get(settings["task"], "work"), seconds)
        answer = json.loads((here / "answer.json").read_text())
        if "error" in answer:
            raise ReadError(f"{name}: {answer['error']}")
        grown = (here / "out.onnx").stat().st_size
        if grown > max(FREE_BYTES, LARGEST_GROWTH * len(content)):
            raise ReadError(f"{name}: its functions grow to {grown:,} bytes when they are inlined")
        return onnx.load_model_from_string((here / "out.onnx").read_bytes()), answer["notes"]


def _run(folder: Path, name: str, work: str, seconds: float) -> None:
    try:
        wrong = guarded.run_guarded(WORKER, folder, seconds)
    except TimeoutError as error:
        cure = "; a file that states all shapes needs none" if work == TASKS["complete"] else ""
        raise ReadError(f"{name}: ONNX's {work} was stopped, {error}{cure}") from None
    if wrong or not (folder / "answer.json").exists():
        raise ReadError(
            f"{name}: ONNX's {work} crashed ({wrong or 'no answer'}); export the model "
            "with another opset or another exporter"
        )


def _work(folder: Path) -> dict[str, Any]:
    from go_rl.graphs.readers.onnx.scope import Completion
    from go_rl.graphs.readers.onnx.shapes.propagation import complete

    settings = json.loads((folder / "settings.json").read_text())
    model = onnx.load_model_from_string((folder / "in.onnx").read_bytes())
    notes: list[str] = []
    if settings.pop("task") == "inline":
        model = _inlined(model)
    else:
        run = Completion(**settings, infer=True)
        complete(model, run)
        notes = run.notes
    (folder / "out.onnx").write_bytes(model.SerializeToString())
    return {"notes": notes}


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    from onnx import inliner

    own = {o.domain: o.version for o in model.opset_import}
    differ = any(
        own.get(o.domain, o.version) != o.version for f in model.functions for o in f.opset_import
    )
    try:
        if differ:  # the converter wants the type of every tensor, those of stored arrays as well
            model = onnx.shape_inference.infer_shapes(model)
            model.graph.value_info.extend(
                onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims)
                for t in model.graph.initializer
            )
        return inliner.inline_local_functions(model, convert_version=differ)
    except Exception as error:  # onnx raises ValidationError, ValueError and RuntimeError here
        reason = str(error).strip().split("\n")[0]
        raise ReadError(f"its local functions cannot be inlined ({reason})") from error


def main(folder: Path) -> None:
    """Do the task in ``folder``; expected errors are returned in ``answer.json``."""
    try:
        answer = _work(folder)
    except GoRLError as error:
        answer = {"error": str(error)}
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(guarded.begin(sys.argv[1:], "in.onnx"))
