"""Where the real data lies, for the tests that can use it; shape inference in this process."""

import os
from importlib import import_module
from pathlib import Path

import pytest

from go_rl.graphs.readers import guarded


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("GO_RL_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real graphs are not here; set GO_RL_DATA to their folder")
    return folder


@pytest.fixture
def in_process(monkeypatch):
    """The work of the subprocesses that guard users against C++ code, done in this process: fast,
    and type-checked. Starting one takes a second."""

    def work(module, folder, timeout):
        import_module(module).main(folder)
        return ""

    monkeypatch.setattr(guarded, "run_guarded", work)
