"""Folders for results: none is written where a file is in the way, or over another model's."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, suppress
from itertools import chain, count
from pathlib import Path

from go_rl.core import OpGraph, PlanError
from go_rl.core.files.run_lock import TakenError, locked
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.core.files.whole_file import check_parents, check_target

PLAN = "plan.json"
"""Tells, by its ``graph_hash``, which model a folder is of."""


def check_folder(folder: Path, named: str = "--out") -> None:
    """Raise a `PlanError` where nothing can be written: better now than after the search.

    Temporary folders that killed runs left there are removed.

    Args:
        folder: to be written; it need not be there yet, and is not made.
        named: how the user named it.
    """
    if reason := _obstacle(folder):
        raise PlanError(f"{folder}: cannot be written ({reason}); {named} names a folder")


def check_file(path: Path, named: str, suffix: str = "") -> None:
    """Raise a `PlanError` where no file can be written under a name that the user gave, or where
    it does not end in ``suffix``: it may be that of a file of another kind."""
    try:
        check_target(path)
    except OSError as error:
        raise PlanError(f"{named}: {path}: cannot be written ({error.strerror})") from error
    reason = f"its name must end in {suffix}" if not path.name.endswith(suffix) else ""
    if reason := reason or _obstacle(path.parent):
        raise PlanError(f"{named}: {path}: cannot be written ({reason})")


def check_apart(path: Path, named: str, read: Path) -> None:
    """Raise a `PlanError` where a file that is to be written is the one that was read."""
    if path.exists() and read.exists() and path.samefile(read):
        raise PlanError(f"{named}: {path}: is what is read; name another file")


def _obstacle(folder: Path) -> str:
    """Why no file can be written in a folder; empty where nothing is in the way."""
    try:
        check_parents(folder / "file")
    except NotADirectoryError as error:
        return str(error.strerror)
    places = (folder, *folder.absolute().parents)
    while True:
        there = next(place for place in places if os.path.isdir(place))
        try:
            with scratch_folder("check", there):
                return ""
        except OSError as error:
            if os.path.isdir(there):  # else a run that had made it has just removed it
                return f"{there}: {error.strerror}"


def own_folder(folder: Path, graph: OpGraph, held: ExitStack) -> Path:
    """Return the first of ``folder``, ``folder-2``, ``folder-3``, … that holds no plan, or one for
    this graph, and that no other run writes; ``held`` keeps its lock. So models of one file name do
    not overwrite each other's, and runs that end together lose nothing."""
    numbered = (folder.with_name(f"{folder.name}-{i}") for i in count(2))
    return next(
        each
        for each in chain((folder,), numbered)
        if _is_free(each, graph) and _taken(each, graph, held)
    )


def _taken(folder: Path, graph: OpGraph, held: ExitStack) -> bool:
    """Whether the lock of a folder was taken while no plan of another graph came between."""
    with ExitStack() as lock, suppress(TakenError):
        lock.enter_context(locked(folder))
        if _is_free(folder, graph):
            held.push(lock.pop_all())
            return True
    return False


def _is_free(folder: Path, graph: OpGraph) -> bool:
    plan = folder / PLAN
    if not os.path.lexists(plan):
        return not folder.exists() or folder.is_dir()
    try:
        return json.loads(plan.read_bytes())["graph_hash"] == graph.digest
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
