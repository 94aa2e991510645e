"""The best plans known for the named problems, frozen: seconds, origin and decisions.

Policies are measured against them (`experiments.learning.dispatch_test`). Only reports read this
module: no plan of it teaches a policy or starts a search. ``python -m experiments
learning.best_known`` writes the files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Int16, Int32

from go_rl.core.errors import ZooError
from go_rl.core.files.whole_file import whole_file, write_text
from go_rl.core.printable import reason
from go_rl.graphs.zoo.problems import zoo_problem
from go_rl.runtime.array_file import UNREADABLE, read_arrays

BEST_VERSION = "zoo-best-4"
"""Names the set of plans; nothing changes under one version."""
FOLDER = Path(__file__).parent / "best"
ARRAYS = ("device", "priority", "fusion_group")


@dataclass(frozen=True)
class BestEntry:
    """Entry of the index for one problem."""

    name: str
    """Name of the problem, as `go_rl.graphs.zoo.problems.ZooProblem.name`."""
    part: str
    """Side of the split."""
    family: str
    """Architecture family of the graph."""
    graph_digest: str
    """`OpGraph.digest` of the graph that the plan is for."""
    seconds: float
    """An iteration under the plan, as `go_rl.verify` confirmed it."""
    bound: float
    """Proven lower bound, seconds."""
    method: str
    """Method that found the plan; ``from the best plan``: starting from what others had found."""
    seed: int
    """Seed of the run that found the plan."""
    processor_seconds: float
    """Searched in all, by all methods."""
    digest: str
    """SHA-256 of the decisions."""

    @property
    def gap(self) -> float:
        """Distance from the bound: seconds / bound - 1."""
        return self.seconds / self.bound - 1.0 if self.bound > 0 else float("inf")


@dataclass(frozen=True, eq=False)
class BestKnown:
    """A best-known plan: its entry and decisions."""

    entry: BestEntry
    device: Int16[np.ndarray, "N"]
    """[N] device of each node."""
    priority: Int32[np.ndarray, "N"] | None
    """[N] scheduling priority, larger first; None: topological order."""
    fusion_group: Int32[np.ndarray, "N"] | None
    """[N] fused kernel of each node; None: nothing is fused."""


def best_entries(folder: Path = FOLDER) -> Mapping[str, BestEntry]:
    """Return the entries by name of problem, checked against the hash they were frozen with.

    Raises:
        ZooError: the index is missing, malformed, or was changed after it was frozen.
    """
    return _read_index(folder)


def best_known(name: str, folder: Path = FOLDER) -> BestKnown:
    """Return the best-known plan of a problem.

    Raises:
        ZooError: no problem of that name, none is known, or the file was changed after it was
            frozen.
    """
    entries = _read_index(folder)
    if name not in entries:
        raise ZooError(f"{BEST_VERSION} has no plan of problem {zoo_problem(name).name!r}")
    entry, path = entries[name], _plans_path(folder)
    try:
        arrays = _read_plans(path)
    except UNREADABLE as error:
        raise ZooError(f"{path}: cannot be read ({reason(error)}); reinstall go_rl") from error
    found = {word: arrays.get(f"{name}/{word}") for word in ARRAYS}
    device = found["device"]
    if device is None or decisions_digest(found) != entry.digest:
        raise ZooError(f"{path}: the plan of {name} is not the frozen one; reinstall go_rl")
    return BestKnown(entry, device, found["priority"], found["fusion_group"])


def frozen_hash(entries: Iterable[BestEntry]) -> str:
    """Return the SHA-256 over a list of entries, in the order of their names."""
    lines = (json.dumps(asdict(e), sort_keys=True) for e in sorted(entries, key=lambda e: e.name))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def decisions_digest(arrays: Mapping[str, np.ndarray | None]) -> str:
    """Return the SHA-256 of decisions by the words of `ARRAYS`."""
    found = hashlib.sha256()
    for word in ARRAYS:
        array = arrays.get(word)
        found.update(word.encode())
        if array is not None:
            found.update(np.ascontiguousarray(array, "<i4").tobytes())
    return found.hexdigest()


def write_best(
    entries: Iterable[BestEntry], arrays: Mapping[str, np.ndarray], folder: Path = FOLDER
) -> None:
    """Write the plans (by ``NAME/word``) and then their index, each aside and renamed."""
    chosen = sorted(entries, key=lambda e: e.name)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(_plans_path(folder)) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]
    lines = ",\n".join(f"  {json.dumps(asdict(entry), sort_keys=True)}" for entry in chosen)
    head = f'{{"version": "{BEST_VERSION}", "sha256": "{frozen_hash(chosen)}", "plans": ['
    write_text(_index_path(folder), f"{head}\n{lines}\n]}}\n")
    _read_index.cache_clear()
    _read_plans.cache_clear()


def _index_path(folder: Path) -> Path:
    return folder / f"{BEST_VERSION}.json"


def _plans_path(folder: Path) -> Path:
    return folder / f"{BEST_VERSION}.npz"


@cache
def _read_plans(path: Path) -> dict[str, np.ndarray]:
    return read_arrays(path)


@cache
def _read_index(folder: Path) -> dict[str, BestEntry]:
    path = _index_path(folder)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        entries = {plan["name"]: BestEntry(**plan) for plan in document["plans"]}
        stated = document["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ZooError(f"{path}: not a readable index of {BEST_VERSION} ({error})") from error
    if frozen_hash(entries.values()) != stated:
        raise ZooError(f"{path}: was changed after it was frozen; reinstall go_rl")
    return entries
