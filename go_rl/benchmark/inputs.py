"""What a comparison names: graphs, problems and methods, found before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import (
    Objective,
    OpGraph,
    Optimizer,
    Problem,
    ProblemError,
    SearchError,
    Topology,
    TrainingError,
    ZooError,
    load_hardware,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.cost import ProblemOptions, make_problem, named_cost
from go_rl.cost.registry import cost_identity
from go_rl.zoo import SPLITS, zoo_entry, zoo_names
from go_rl.zoo.load_model import ZOO_PREFIX, load_model

NO_AGENT = object()
"""Stands for the policy of an optimizer that has none."""
BOUND = "bound"
"""Name of the run of CP-SAT that only serves the proven bound."""
READY = frozenset(
    ("greedy", "random", "annealing", "metis", "linear-dp", "ideal-dp", "exact", "dp",
     "local-search")
)  # fmt: skip
"""Methods with nothing to compile beyond the kernels; all others are taken to be learned."""


@dataclass(frozen=True)
class Methods:
    """Factories by label, in the order asked for."""

    make: Mapping[str, Callable[[], Optimizer]]
    compiled: frozenset[str]
    """Labels of the methods that compile something on a new problem."""
    weights: Mapping[str, str]
    """Digest of the weights that a learned method starts from; empty for all others."""


@dataclass(frozen=True)
class BenchmarkGraph:
    """A graph of the comparison; one of the zoo is read when it is first used."""

    name: str
    digest: str
    file: Path | None = None

    @cached_property
    def graph(self) -> OpGraph:
        """The graph itself."""
        return load_model(ZOO_PREFIX + self.name if self.file is None else self.file)


def find_graphs(names: Sequence[str]) -> list[BenchmarkGraph]:
    """Return the graphs in the order given, each once, splits smallest graph first.

    Raises:
        ZooError: the zoo has no such graph or split.
        ReadError: a file cannot be read.
        TrainingError: two files hold graphs of one name.
    """
    graphs: dict[str, BenchmarkGraph] = {}
    for name in names:
        for graph in _find(name):
            known = graphs.setdefault(graph.name, graph)
            if known.digest != graph.digest:
                raise TrainingError(
                    f"evaluate: {name} holds another graph called {graph.name!r}; rename one file"
                )
    return list(graphs.values())


def _find(name: str) -> list[BenchmarkGraph]:
    if not name.startswith(ZOO_PREFIX) or Path(name).exists():
        path = Path(name)
        graph = load_model(path)
        return [BenchmarkGraph(path.stem, graph.digest, path)]
    word = name.removeprefix(ZOO_PREFIX)
    if word not in SPLITS and word not in zoo_names(training=True):
        near = nearest(word, (*SPLITS, *zoo_names(training=True)))
        raise ZooError(f"{name}: the zoo has no such graph or split (go-rl zoo list){near}")
    chosen = zoo_names(word) if word in SPLITS else (word,)
    return [BenchmarkGraph(graph, zoo_entry(graph).digest) for graph in chosen]


def check_setting(hardware: str, rules: str, cost: str) -> None:
    """Check the names of hardware, a rule set and a cost model.

    Raises:
        HardwareError, ProblemError: unknown, or hardware without a ring.
        CheckpointError, RecordError: what the cost model learned or measured is not there.
    """
    rule_set(rules)
    topology = load_hardware(hardware).links.topology
    if topology is not Topology.RING:
        raise ProblemError(
            f"evaluate: hardware {hardware!r} has {topology} links; methods are compared on rings, "
            "such as ring36"
        )
    priced_by(hardware, cost)


def priced_by(hardware: str, cost: str) -> str:
    """Return `cost_identity` on hardware; it raises what that does."""
    return cost_identity(cost, load_hardware(hardware))


def named_problem(
    graph: BenchmarkGraph, hardware: str, rules: str, memory: bool | None, cost: str
) -> Problem:
    """Return the ring problem of these names."""
    chips = load_hardware(hardware)
    model = named_cost(cost, chips)
    options = ProblemOptions(Objective.RING, rule_set(rules), memory, cost_model=model)
    return make_problem(graph.graph, chips, options)


def find_methods(
    names: Sequence[str],
    extra: Mapping[str, Callable[[], Optimizer]],
    weights: str | None = None,
) -> Methods:
    """Return the factories of named methods, which start from these weights, then the further ones.

    Raises:
        SearchError: no such method (the nearest is named), none at all, or a label given twice.
        CheckpointError: the weights of a learned method cannot be read.
    """
    from go_rl.portfolio import methods_of

    methods = methods_of(Objective.RING)
    make: dict[str, Callable[[], Optimizer]] = {}
    for name in names:
        factory = methods[name] if name in methods else _learned(name, methods)
        make[name] = factory if weights is None else _starting_from(weights, factory)
    for label, factory in extra.items():
        if label in make or label == BOUND:
            raise SearchError(f"evaluate: label {label!r} is taken; choose another one")
        make[label] = factory
    if not make:
        raise SearchError("evaluate: methods needs at least one entry")
    compiled = frozenset(extra) | (frozenset(make) - READY)
    return Methods(make, compiled, {label: _digest(make[label]()) for label in make})


def _learned(name: str, methods: Mapping[str, object]) -> Callable[[], Optimizer]:
    # Imported only now: the policies bring JAX.
    from go_rl.benchmark.methods import LEARNED

    if name not in LEARNED:
        known = (*methods, *LEARNED)
        raise SearchError(
            f"unknown method {name!r}{nearest(name, known)} Methods: {', '.join(known)}"
        )
    return LEARNED[name]


def _starting_from(weights: str, factory: Callable[[], Optimizer]) -> Callable[[], Optimizer]:
    """Give a factory's optimizers these weights, unless they take none or bring their own."""

    def make() -> Optimizer:
        optimizer = factory()
        if getattr(optimizer, "agent", NO_AGENT) is not None:
            return optimizer
        from go_rl.policy.weights import load_weights

        return replace(optimizer, agent=load_weights(weights).agent)  # pyright: ignore[reportArgumentType, reportCallIssue]

    return make


def _digest(optimizer: Optimizer) -> str:
    """SHA-256 of the weights that an optimizer starts from; empty when it takes none."""
    agent: Any = getattr(optimizer, "agent", NO_AGENT)
    if agent is NO_AGENT:
        return ""
    import jax

    from go_rl.policy.weights import shipped_agent

    agent = shipped_agent(Objective.RING) if agent is None else agent
    arrays = (np.asarray(leaf) for leaf in jax.tree.leaves(agent.params))
    digest = hashlib.sha256(repr(agent.config).encode())
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()
