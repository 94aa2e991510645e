"""`read_own_json`: a JSON file of our own; one of another kind is called by its name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from go_rl.core.errors import GoRLError
from go_rl.core.files.strict_json import read_json

PLAN = "a plan, such as plan.json of go-rl optimize"
HARDWARE = "hardware, such as a file of go-rl hardware new"
OPTIONS = "the options of a search, config.json of go-rl optimize"
METHODS = "the methods of a search, methods.json of go-rl optimize"
STAGES = "a list of exported stages, stages.json of go-rl export"
TRAINING = "the configuration of a training run, such as config.json of go-rl train policy"
GRAPH = "a graph that go-rl graph --json printed; what --save FILE.npz writes can be read"
SHEET = "the data sheet of a device (docs/predict.md)"
PLAN_FORMATS = "go_rl-plan-"
"""Start of the ``format`` of plans of all versions."""
MARKS: Mapping[str, frozenset[str]] = {
    PLAN: frozenset(("nodes", "device", "graph_hash")),
    STAGES: frozenset(("stages", "outputs", "runtime")),
    OPTIONS: frozenset(("source", "search")),
    METHODS: frozenset(("bound", "methods")),
    TRAINING: frozenset(("policy", "updates")),
    HARDWARE: frozenset(("devices", "links")),
    GRAPH: frozenset(("totals", "nodes", "edges")),
    SHEET: frozenset(("Dev_Mem", "Mem_Bw")),
}
"""Fields by which a document of each kind is known, whatever else is wrong with it."""


def kind_of(document: object) -> str | None:
    """Return which of `MARKS` a document is; None: none of them."""
    if not isinstance(document, Mapping):
        return None
    if str(document.get("format", "")).startswith(PLAN_FORMATS):  # also of another version
        return PLAN
    return next((kind for kind, marks in MARKS.items() if marks <= document.keys()), None)


def read_own_json(
    path: str | Path, wanted: str, error: type[GoRLError], accepted: Collection[str] = ()
) -> Any:
    """Return the document in a file, whose fields the caller checks.

    Args:
        path: of the file.
        wanted: what it must be, one of `MARKS` or in words of its own.
        error: raised.
        accepted: further kinds that it may be.

    Raises:
        GoRLError: `error`: it cannot be read, is no JSON, or a document of another kind.
    """
    try:
        document = read_json(path)
    except IsADirectoryError as reason:
        raise error(f"{path}: is a folder; wanted is {wanted}") from reason
    except OSError as reason:
        raise error(f"{path}: cannot be read ({reason.strerror})") from reason
    except ValueError as reason:
        raise error(f"{path}: not JSON ({reason}); wanted is {wanted}") from reason
    found = kind_of(document)
    if found not in (None, wanted, *accepted):
        raise error(f"{path}: is {found}; wanted is {wanted}")
    return document
