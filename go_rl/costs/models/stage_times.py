"""`StageTimes`: measured seconds of parts of a graph, as `go-rl run --record` appends them to a
file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from go_rl.core import RecordError
from go_rl.core.files.strict_json import parse_json
from go_rl.core.files.typed_json import from_json
from go_rl.core.files.whole_file import writing

FORMAT = "go_rl-stage-times-1"


@dataclass(frozen=True)
class StageTimes:
    """One run of the stages of a plan."""

    graph_hash: str
    """Digest of the graph that was cut."""
    target: str
    """Kind of device in the plan."""
    processor: str
    """Name of the processor that the stages ran on."""
    runtime: str
    nodes: tuple[tuple[int, ...], ...]
    """Nodes of the graph that each device computed, copies included."""
    seconds: tuple[float, ...]
    """Median seconds a sample that each device computed and sent."""


def append_times(path: Path, times: StageTimes) -> None:
    """Append a run to a file, which is made where there is none.

    Raises:
        RecordError: it cannot be written.
    """
    line = json.dumps({"format": FORMAT, **asdict(times)}, allow_nan=False) + "\n"
    with writing(path, RecordError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(line)


def read_times(path: Path) -> list[StageTimes]:
    """Return the runs of a file.

    Raises:
        RecordError: it cannot be read, or a line is none that `append_times` wrote.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: is no text; go-rl run --record writes runs") from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    return [_parsed(line, f"{path}, line {i}") for i, line in enumerate(lines, 1) if line.strip()]


def _parsed(line: str, where: str) -> StageTimes:
    try:
        document: Any = parse_json(line)
        if (form := document.pop("format")) != FORMAT:
            raise ValueError(f"format {form!r}, not {FORMAT!r}")
        found = from_json(StageTimes, document, "run", RecordError)
        if len(found.nodes) != len(found.seconds) or not all(each > 0 for each in found.seconds):
            raise ValueError("a device without nodes or seconds > 0")
    except (AttributeError, KeyError, TypeError, ValueError, RecordError) as error:
        raise RecordError(
            f"{where}: is no run of stages ({error}); go-rl run --record writes them"
        ) from error
    return found


def of_graph(runs: Sequence[StageTimes], graph_hash: str, target: str) -> list[StageTimes]:
    """Return the runs of a graph on a kind of device."""
    return [run for run in runs if run.graph_hash == graph_hash and run.target == target]
