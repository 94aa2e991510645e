"""Configurations of Hugging Face as files."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from graphs.readers.hf_models import Read

from go_rl.core import OpGraph
from go_rl.graphs.readers.load import load


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def of(config: Mapping[str, Any], **dims: int) -> OpGraph:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return load(path, dims)

    return of
