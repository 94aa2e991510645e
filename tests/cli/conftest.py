"""Tiny models on disk, and the command line as a function."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from profile_documents import chain_document

from go_rl.cli.main import main

PROGRESS = re.compile(r"reading the model$|\d+/\d+  ")
"""Lines on standard error that say how far a command is."""


@dataclass(frozen=True)
class Outcome:
    """What a run of ``go-rl`` left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, all of it, as one JSON document."""
        return json.loads(self.out)


@pytest.fixture
def command(capsys, monkeypatch, tmp_path) -> Callable[..., Outcome]:
    """Run the command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as stop:  # the parser's own way out
            code = stop.code if isinstance(stop.code, int) else 1
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def refused(command) -> Callable[..., Outcome]:
    """Run what is refused: by one line that has the words, nothing on standard output, code 2."""

    def run(*arguments: object, said: str) -> Outcome:
        found = command(*arguments)
        assert (found.code, found.out) == (2, ""), found
        lines = [each for each in found.err.splitlines() if not PROGRESS.match(each)]
        assert len(lines) == 1, lines
        assert said in lines[0]
        return found

    return run


@pytest.fixture
def drawn() -> None:
    """For tests that look at pictures: the commands draw them."""


@pytest.fixture(autouse=True)
def reads_in_process(in_process: None) -> None:
    """Each ONNX file would otherwise be completed in a process of its own."""


@pytest.fixture(autouse=True)
def drawn_if_looked_at(request) -> None:
    """Pictures are empty but for tests that look at them."""
    if "drawn" not in request.fixturenames:
        request.getfixturevalue("undrawn")


@pytest.fixture
def chain(tmp_path) -> Path:
    """The file of `chain_document`."""
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(chain_document()))
    return path
