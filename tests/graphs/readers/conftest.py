"""Models as files: read from their content, or refused for what is wrong with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from go_rl.core import OpGraph, ReadError
from go_rl.graphs.readers.load import load


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[..., OpGraph]:
    """Loads text, bytes or what becomes JSON, with the options of `load`."""

    def of(content: object, file: str = "model", **options: Any) -> OpGraph:
        data = content if isinstance(content, bytes | str) else json.dumps(content)
        (tmp_path / file).write_bytes(data if isinstance(data, bytes) else data.encode())
        return load(tmp_path / file, **options)

    return of


@pytest.fixture
def refused(loaded, tmp_path: Path) -> Callable[..., None]:
    """Loads what is wrong: the answer matches, is one line, and names the file."""

    def of(content: object, said: str, error: type[Exception] = ReadError, **options: Any) -> None:
        with pytest.raises(error, match=said) as caught:
            loaded(content, **options)
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)

    return of


@pytest.fixture
def read(loaded) -> Callable[..., OpGraph]:
    """Reads a configuration of Hugging Face, with dims by name."""
    return lambda config, **dims: loaded(config, "config.json", dims=dims)
