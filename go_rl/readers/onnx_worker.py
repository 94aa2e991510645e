"""The guarded subprocess: a crash or a hang of ONNX's C++ code becomes a `ReadError`.

Run as ``python -m go_rl.readers.onnx_worker FOLDER``: reads ``in.onnx`` and ``settings.json``,
writes ``out.onnx`` and ``answer.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnx

from go_rl.core.errors import GoRLError, ReadError

TIMEOUT_SECONDS = 300.0
"""Longest time that inlining and shape inference of one model may take."""


def complete_in_subprocess(
    model: onnx.ModelProto, settings: dict[str, Any], name: str, timeout: float = TIMEOUT_SECONDS
) -> tuple[onnx.ModelProto, list[str]]:
    """Inline functions or complete ``model`` in a subprocess; return it and the notes.

    Args:
        model: a model without bulky weights (headers are enough).
        settings: ``task`` ("inline" or "complete") and the fields of `Completion`.
        name: the model's name, for messages.
        timeout: seconds after which the subprocess is stopped.

    Raises:
        ReadError: the model is wrong, or the subprocess crashed or ran out of time.
    """
    with tempfile.TemporaryDirectory(prefix="go_rl_onnx_") as folder:
        here = Path(folder)
        (here / "in.onnx").write_bytes(model.SerializeToString())
        (here / "settings.json").write_text(json.dumps(settings))
        _run_guarded(here, name, timeout)
        answer = json.loads((here / "answer.json").read_text())
        if "error" in answer:
            raise ReadError(f"{name}: {answer['error']}")
        return onnx.load_model_from_string((here / "out.onnx").read_bytes()), answer["notes"]


def _run_guarded(folder: Path, name: str, timeout: float) -> None:
    command = [sys.executable, "-m", "go_rl.readers.onnx_worker", str(folder)]
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=environment
        )
    except subprocess.TimeoutExpired:
        raise ReadError(
            f"{name}: ONNX's shape inference did not finish in {timeout:g} s; store the shapes in "
            "the file (onnx.shape_inference) or export the model with static shapes"
        ) from None
    if done.returncode or not (folder / "answer.json").exists():
        tail = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise ReadError(
            f"{name}: ONNX's shape inference crashed ({tail[0]}); store the shapes in the file "
            "or export the model with another opset"
        )


def _work(folder: Path) -> dict[str, Any]:
    from go_rl.readers.onnx_shapes import Completion, complete

    settings = json.loads((folder / "settings.json").read_text())
    model = onnx.load_model_from_string((folder / "in.onnx").read_bytes())
    notes: list[str] = []
    if settings.pop("task") == "inline":
        from onnx import inliner

        model = inliner.inline_local_functions(model)
    else:
        run = Completion(**settings, infer=True)
        complete(model, run)
        notes = run.notes
    (folder / "out.onnx").write_bytes(model.SerializeToString())
    return {"notes": notes}


def main(folder: Path) -> None:
    """Do the task in ``folder``; errors on purpose travel in ``answer.json``."""
    try:
        answer = _work(folder)
    except GoRLError as error:
        answer = {"error": str(error)}
    (folder / "answer.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
