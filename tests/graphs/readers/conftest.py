"""Guarded work in this process, and configurations of Hugging Face as files."""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from graphs.readers.hf_models import Read

from go_rl.core import OpGraph
from go_rl.graphs.readers import guarded
from go_rl.graphs.readers.load import load


@pytest.fixture
def in_process(monkeypatch):
    """The work of the subprocesses that guard users against C++ code, done in this process: fast,
    and type-checked. Starting one takes a second."""

    def work(module, folder, timeout):
        import_module(module).main(folder)
        return ""

    monkeypatch.setattr(guarded, "run_guarded", work)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def of(config: Mapping[str, Any], **dims: int) -> OpGraph:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        return load(path, dims)

    return of
