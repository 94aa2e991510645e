"""Graphs, problems and methods that a comparison names, found before anything runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.compare.benchmark.config import SEEDLESS, EvaluateConfig
from go_rl.compare.benchmark.run_store import Setting
from go_rl.core import (
    DECISIONS,
    Objective,
    OpGraph,
    Optimizer,
    Problem,
    ProblemError,
    SearchError,
    TrainingError,
    ZooError,
    decision_names,
    load_hardware,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.core.objective import OF_LINKS
from go_rl.core.optimizer import PolicyMethod
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.costs.models.registry import cost_identity
from go_rl.graphs.zoo import SPLITS, zoo_entry, zoo_names
from go_rl.graphs.zoo.load_model import ZOO_PREFIX, load_as_it_is
from go_rl.policy.config import CONTROLS

Factory = Callable[[], Optimizer]
"""Makes an optimizer; each run makes its own."""
NO_AGENT = object()
"""Stands for the policy of an optimizer that has none."""
BOUND = "bound"
"""Name of the run of CP-SAT that only serves the proven bound."""
READY = frozenset(
    ("greedy", "random", "annealing", "metis", "linear-dp", "ideal-dp", "exact", "dp",
     "local-search", "default", "composed", "expert", "fusion-greedy", "heft", "order-search",
     "unit-annealing")
)  # fmt: skip
"""Methods with nothing to compile beyond functions of Numba; all others are taken to be learned."""


@dataclass(frozen=True)
class Methods:
    """Factories by label, in the order asked for."""

    make: Mapping[str, Factory]
    compiled: frozenset[str]
    """Labels of the methods that compile something on a new problem."""
    weights: Mapping[str, str]
    """Digest of the weights that a learned method starts from; empty for all others."""
    arms: Mapping[str, tuple[str, ...]]
    """Labels of the control arms of each policy; empty unless all were asked for."""


@dataclass(frozen=True)
class BenchmarkGraph:
    """A graph of the comparison; one of the zoo is read when it is first used."""

    name: str
    digest: str
    file: Path | None = None

    @cached_property
    def graph(self) -> OpGraph:
        """The graph itself."""
        return load_as_it_is(ZOO_PREFIX + self.name if self.file is None else self.file)

    @property
    def family(self) -> str:
        """Family in the zoo; a file is a family of its own."""
        return zoo_entry(self.name).family if self.file is None else str(self.file)


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
        graph = load_as_it_is(path)
        return [BenchmarkGraph(path.stem, graph.digest, path)]
    word = name.removeprefix(ZOO_PREFIX)
    if word not in SPLITS and word not in zoo_names(training=True):
        near = nearest(word, (*SPLITS, *zoo_names(training=True)))
        raise ZooError(f"{name}: the zoo has no such graph or split (go-rl zoo list){near}")
    chosen = zoo_names(word) if word in SPLITS else (word,)
    return [BenchmarkGraph(graph, zoo_entry(graph).digest) for graph in chosen]


DEFAULT = ("random", "annealing", "policy")
"""Methods when the user names none, after that of the reference plan."""
STRICT = ("strict",)
"""Rule sets of rings when the user names none."""


def settings_of(config: EvaluateConfig) -> tuple[Objective, list[Setting]]:
    """Return the objective of a comparison, and its settings in order.

    Raises:
        HardwareError, ProblemError: unknown hardware or rules, hardware of several objectives or
            of none that methods are compared on, or an option that it has no use for.
        CheckpointError, RecordError: what the cost model learned or measured is not there.
    """
    kinds = {name: load_hardware(name).links.topology for name in config.hardware}
    for name, topology in kinds.items():
        if topology not in OF_LINKS:
            raise ProblemError(
                f"evaluate: hardware {name!r} has {topology} links; methods are compared on rings, "
                "such as ring36, and on devices with links between all, such as p100x4"
            )
        priced_by(name, config.cost)
    if len({OF_LINKS[topology] for topology in kinds.values()}) > 1:
        shown = ", ".join(f"{name} ({topology})" for name, topology in kinds.items())
        raise ProblemError(f"evaluate: one comparison needs hardware of one kind, not {shown}")
    objective = OF_LINKS[next(iter(kinds.values()))]
    rules = _rules(config, objective)
    decide = ""
    if objective.traits.decides_several:
        decide = ",".join(decision_names(config.decide or DECISIONS))
    named = product(config.hardware, rules)  # what is named twice is one setting
    return objective, list(dict.fromkeys(
        Setting(name, one, decide, config.all_chips) for name, one in named
    ))  # fmt: skip


def _rules(config: EvaluateConfig, objective: Objective) -> tuple[str, ...]:
    """Rule sets; what has no meaning for the objective is refused."""
    ring = objective.traits.has_rules
    wrong = "rules" if config.rules is not None and not ring else ""
    wrong = "all_chips" if config.all_chips and not ring else wrong
    wrong = "decide" if config.decide is not None and ring else wrong
    wrong = "bound_seconds" if config.bound_seconds and not ring else wrong
    if wrong:
        raise ProblemError(f"evaluate: {wrong} has no meaning for objective {objective}; leave it "
                           "out")  # fmt: skip
    for name in config.rules or ():
        rule_set(name)
    return (config.rules or STRICT) if ring else (rule_set("default").name,)


def priced_by(hardware: str, cost: str) -> str:
    """Return `cost_identity` on hardware; it raises what that does."""
    return cost_identity(cost, load_hardware(hardware))


def named_problem(
    graph: BenchmarkGraph, setting: Setting, memory: bool | None, cost: str
) -> Problem:
    """Return the problem of these names."""
    hardware = load_hardware(setting.hardware)
    options = ProblemOptions(
        setting.objective,
        rule_set(setting.rules),
        memory,
        all_chips=setting.all_chips,
        cost_model=named_cost(cost, hardware),
        decisions=setting.decide or None,
    )
    return make_problem(graph.graph, hardware, options)


def find_methods(
    config: EvaluateConfig, objective: Objective, extra: Mapping[str, Factory]
) -> Methods:
    """Return the factories of the methods of a comparison, then the further ones.

    Raises:
        SearchError: no such method (the nearest is named), none at all, a label given twice, or
            control arms or weights where no method has a policy that takes them.
        CheckpointError: the weights of a learned method cannot be read.
    """
    make, arms, policies = _named_methods(config, objective)
    _check_once(config.once, (*make, *extra))
    if (config.control is not None or config.controls) and not policies:
        raise SearchError(
            "evaluate: control arms are for methods with a policy, such as policy, and none of "
            f"{', '.join(config.methods or DEFAULT)} has one"
        )
    for label, factory in extra.items():
        if label in make or label == BOUND:
            raise SearchError(f"evaluate: label {label!r} is taken; choose another one")
        make[label] = factory
    if not make:
        raise SearchError("evaluate: methods needs at least one entry")
    compiled = frozenset(extra) | (frozenset(make) - READY)
    weights = {label: _digest(make[label](), objective) for label in make}
    return Methods(make, compiled, weights, arms)


def _named_methods(
    config: EvaluateConfig, objective: Objective
) -> tuple[dict[str, Factory], dict[str, tuple[str, ...]], list[str]]:
    """Factories by label; labels of the arms of each policy; labels of policies."""
    # Imported only now: the policies bring JAX.
    from go_rl.compare.benchmark.methods import learned_methods
    from go_rl.compare.portfolio import METHODS
    from go_rl.policy.controls import controlled_name

    known = {**METHODS[objective]} | learned_methods(objective)
    make: dict[str, Factory] = {}
    arms: dict[str, tuple[str, ...]] = {}
    policies: list[str] = []
    named = (next(iter(known)), *DEFAULT) if config.methods is None else config.methods
    for name in named:
        if name not in known:
            raise SearchError(
                f"unknown method {name!r} of objective {objective}{nearest(name, known)} "
                f"Methods: {', '.join(known)}"
            )
        factory = known[name]
        if config.weights is not None:
            factory = _starting_from(config.weights, factory, objective)
        if not isinstance(known[name](), PolicyMethod):
            make[name] = factory
            continue
        policies.append(name)
        chosen = (None, *CONTROLS) if config.controls else (config.control,)
        found = {controlled_name(name, arm): _under(arm, factory) for arm in chosen}
        make |= found
        arms[name] = tuple(found)[1:]
    if config.weights is not None and not any(_takes_weights(known[name]()) for name in named):
        raise SearchError(
            "evaluate: weights are for methods with a policy, such as policy, and none of "
            f"{', '.join(named)} takes them; leave them out"
        )
    return make, arms, policies


def _check_once(once: Sequence[str], labels: Sequence[str]) -> None:
    for label in once:
        if label not in (*labels, *SEEDLESS):
            raise SearchError(
                f"evaluate: once names {label!r}, which is no method of the comparison"
                f"{nearest(label, labels)} Methods: {', '.join(labels)}"
            )


def _under(control: str | None, factory: Factory) -> Factory:
    """Give a factory's optimizers a control arm."""
    if control is None:
        return factory
    return lambda: replace(factory(), control=control)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _starting_from(weights: str, factory: Factory, objective: Objective) -> Factory:
    """Give a factory's optimizers these weights, unless they take none or bring their own."""

    def make() -> Optimizer:
        optimizer = factory()
        if not _takes_weights(optimizer):
            return optimizer
        from go_rl.policy.weights import load_weights

        return replace(optimizer, agent=load_weights(weights, objective).agent)  # pyright: ignore[reportArgumentType, reportCallIssue]

    return make


def _takes_weights(optimizer: Optimizer) -> bool:
    """Whether an optimizer has a policy, and brings no weights of its own."""
    return getattr(optimizer, "agent", NO_AGENT) is None


def _digest(optimizer: Optimizer, objective: Objective) -> str:
    """SHA-256 of the weights that an optimizer starts from; empty when it takes none."""
    agent: Any = getattr(optimizer, "agent", NO_AGENT)
    if agent is NO_AGENT:
        return ""
    import jax

    from go_rl.policy.weights import shipped_agent

    agent = shipped_agent(objective) if agent is None else agent
    arrays = (np.asarray(leaf) for leaf in jax.tree.leaves(agent.params))
    digest = hashlib.sha256(repr(agent.config).encode())
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()
