"""Where the real data lies, for the tests that can use it; shape inference in this process."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("GO_RL_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real graphs are not here; set GO_RL_DATA to their folder")
    return folder


@pytest.fixture
def in_process(monkeypatch):
    """Infer shapes in this process: fast, and type-checked."""
    from go_rl.graphs.readers.onnx import reader as onnx_reader
    from go_rl.graphs.readers.onnx.scope import Completion
    from go_rl.graphs.readers.onnx.shapes.propagation import complete

    def infer(model, settings, name):
        run = Completion(**{k: v for k, v in settings.items() if k != "task"}, infer=True)
        complete(model, run)
        return model, run.notes

    monkeypatch.setattr(onnx_reader, "complete_in_subprocess", infer)
