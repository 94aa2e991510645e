"""Where the real data lies, for the tests that can use it."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = Path(os.environ.get("GO_RL_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the real graphs are not here; set GO_RL_DATA to their folder")
    return folder
