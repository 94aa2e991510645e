"""`Curriculum`: the problems of a pretraining run, for updates and for validation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from go_rl.core import GoRLError, Objective, OpGraph, TrainingError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.graphs.readers.archive import load_graph, save_graph
from go_rl.graphs.zoo import zoo_entry, zoo_graph, zoo_names
from go_rl.graphs.zoo.index import generated_seed
from go_rl.graphs.zoo.load_model import load_as_it_is
from go_rl.policy.agent import Agent
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.collect import TrainingCase
from go_rl.policy.learn.config import TrainConfig
from go_rl.policy.learn.processes.group import ALONE, Group

CACHE = "cache"
"""Folder, in that of a run, of what can be made again."""
KEPT = 256
"""Problems whose solvers or units stay in memory."""
VALIDATION_SEED = 1_000_000_007
"""Apart from the seeds of the updates."""


C = TypeVar("C", bound=TrainConfig, covariant=True)


class Curriculum(ABC, Generic[C]):
    """All problems of a run; everything expensive is built when a problem is first drawn."""

    def __init__(self, config: C) -> None:
        self.config = config

    @abstractmethod
    def draw(self, update: int, baseline: RunningBaseline) -> list[TrainingCase]:
        """Return the problems of one update; equal updates and baselines give equal problems."""

    @abstractmethod
    def validate(self, agent: Agent, group: Group = ALONE) -> tuple[float, dict[str, float]]:
        """Return the score of the validation problems, larger is better, and its parts to log.

        The processes of the group share the problems out; all get the same answer.
        """


def small_graphs(split: str, max_nodes: int) -> list[str]:
    """Return the graphs of a split of the zoo with at most ``max_nodes`` nodes."""
    return [name for name in zoo_names(split) if zoo_entry(name).nodes <= max_nodes]


def graph_size(name: str) -> int:
    """Return the nodes of a graph: about what its samples cost."""
    frozen = not is_own(name) and generated_seed(name) is None
    return zoo_entry(name).nodes if frozen else training_graph(name).num_nodes


def is_own(name: str) -> bool:
    """Whether a graph is a user's model, named by its path, and not one of the zoo."""
    return Path(name).is_absolute()


def short_name(name: str) -> str:
    """Return the name of a graph in sentences and file names."""
    return Path(name).stem if is_own(name) else name


@lru_cache(KEPT)
def training_graph(name: str) -> OpGraph:
    """Return a graph of the zoo, or of a user's model.

    Raises:
        GoRLError: the model cannot be read; the message names its file.
    """
    return load_as_it_is(name) if is_own(name) else zoo_graph(name)


def stored_graph(name: str, cache: Path | None) -> OpGraph:
    """Return a graph as `training_graph` does; a generated one is traced once and kept in the
    folder ``cache``, where there is one."""
    if cache is None or is_own(name) or generated_seed(name) is None:
        return training_graph(name)
    path = cache / f"{name}.npz"
    if path.exists():
        return load_graph(path)
    graph = training_graph.__wrapped__(name)
    cache.mkdir(parents=True, exist_ok=True)
    save_graph(graph, path)
    return graph


def own_graphs(config: TrainConfig, objective: Objective) -> list[str]:
    """Return the user's models, all read, and tried on the first hardware, before training begins.

    Raises:
        TrainingError: one is too large, or two have one name; the message names the file.
        GoRLError: one cannot be read, or is no problem of the objective.
    """
    hardware = load_hardware(config.hardware[0])
    cost = named_cost(config.cost, hardware)
    options = ProblemOptions(objective=objective, memory=False, cost_model=cost)
    seen: dict[str, str] = {}
    for path in config.graphs:
        nodes = graph_size(path)
        if nodes > config.max_nodes:
            raise TrainingError(
                f"train: {path} has {nodes:,} nodes, and max_nodes is {config.max_nodes:,}; raise "
                "max_nodes, or leave it out"
            )
        other = seen.setdefault(short_name(path), path)
        if other != path:
            raise TrainingError(f"train: {path} and {other} have one name; rename one of them")
        try:
            make_problem(training_graph(path), hardware, options)
        except GoRLError as error:
            raise TrainingError(f"train: {path}: {error}") from error
    return list(config.graphs)


def listed_files(graphs: Iterable[str | Path]) -> tuple[str, ...]:
    """Return the absolute paths of models: files as they are, of a folder all that it holds but
    hidden ones and folders.

    Raises:
        TrainingError: there is no such file, or a folder holds none.
    """
    found: list[str] = []
    for given in map(Path, graphs):
        inside = [given]
        if given.is_dir():
            files = sorted(given.iterdir())
            inside = [each for each in files if each.is_file() and not each.name.startswith(".")]
        if not inside or not given.exists():
            raise TrainingError(
                f"train: {given}: no such file, or a folder without files; of a function, give the "
                "graph that go-rl graph --save writes"
            )
        found += [str(each.absolute()) for each in inside]
    return tuple(dict.fromkeys(found))
