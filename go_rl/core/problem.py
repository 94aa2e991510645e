"""`Problem`: a graph on hardware with an objective and constraints; the input of every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int16, Int64

from go_rl.core.errors import GoRLError, ProblemError, nearest
from go_rl.core.graph.held_weights import HeldWeights, held_weights
from go_rl.core.graph.op_graph import FREE, OpGraph
from go_rl.core.hardware.hardware import Hardware
from go_rl.core.objective import DECISIONS, Objective

REPLICATE_SHARE = 1e-3
"""Largest share of the whole work that a replicable node may cost with all its ancestors."""


def decision_names(
    given: str | Sequence[str],
    known: Sequence[str] = DECISIONS,
    error: type[GoRLError] = ProblemError,
) -> tuple[str, ...]:
    """Return the decisions in ``placement,schedule`` or in a sequence of names.

    Args:
        given: names, with commas between or in a sequence.
        known: the decisions that there are.
        error: class of the error.

    Raises:
        GoRLError: no decision, an unknown one (the nearest is named), or one twice.
    """
    if not isinstance(given, str) and not (
        isinstance(given, Sequence) and all(isinstance(name, str) for name in given)
    ):
        raise error(f"decide: must be names, as a text or in a list, not {given!r}")
    words = given.split(",") if isinstance(given, str) else given
    names, listed = tuple(word.strip() for word in words if word.strip()), ", ".join(known)
    if not names:
        raise error(f"decide: name some of {listed}, with commas between")
    for name in names:
        if name not in known:
            raise error(f"unknown decision {name!r}{nearest(name, known)} Decisions: {listed}")
    if len(set(names)) != len(names):
        raise error(f"a decision is named twice: {', '.join(names)}")
    return names


@runtime_checkable
class KernelPrices(Protocol):
    """Seconds of fused kernels, from the cost model that priced the nodes."""

    def seconds(self, leader: Int64[np.ndarray, "N"]) -> Float64[np.ndarray, "K N"]:
        """Return [K, N] seconds on each device kind of the kernel of each leader.

        ``leader`` [N]: the lowest node of each node's kernel. Nodes that lead none get 0.
        """
        ...


@dataclass(frozen=True)
class Rules:
    """A rule set of the ring. Acyclicity and no-skip always hold."""

    replicate: bool = False
    """Cheap functions of constants and inputs may be copied to each consumer's chip."""
    relay: bool = False
    """A tensor for a farther chip is forwarded hop by hop, which makes triangles harmless."""

    @property
    def triangle(self) -> bool:
        """True when the chip-triangle rule binds."""
        return not self.relay

    @property
    def name(self) -> str:
        """Name on the command line."""
        return {v: k for k, v in RULE_SETS.items()}[self]


RULE_SETS = {
    "strict": Rules(),
    "replicate": Rules(replicate=True),
    "relay": Rules(relay=True),
    "default": Rules(replicate=True, relay=True),
}
"""Rule sets by name; ``strict`` are the paper's rules."""


def rule_set(name: str) -> Rules:
    """Return the rule set called ``name``; a `ProblemError` names the nearest one."""
    if name not in RULE_SETS:
        raise ProblemError(
            f"unknown rules {name!r}{nearest(name, RULE_SETS)} Use {', '.join(RULE_SETS)}"
        )
    return RULE_SETS[name]


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem to optimise. Build one with `go_rl.costs.models.make_problem`, which prices the
    operators.

    ``K`` device kinds, ``N`` nodes, ``D`` devices. All sizes are in the hardware's number format.
    """

    graph: OpGraph
    hardware: Hardware
    objective: Objective
    rules: Rules
    seconds: Float64[np.ndarray, "K N"]
    """[K, N] seconds of each node on each device kind; inf: the kind cannot run it."""
    cost_model: str
    """Cost model of `seconds`: ``analytical``, ``profiled``, ``learned:NAME``, ..."""
    output_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of all results of a node."""
    weight_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of weights that stay on the chip (0 where they are streamed)."""
    tied_bytes: Float64[np.ndarray, "A"]
    """[A] bytes of each tied array (`OpGraph.tied_bytes`) on this hardware."""
    streamed_bytes: Float64[np.ndarray, "N"]
    """[N] weights streamed from the host in each iteration, included in `seconds`."""
    edge_bytes: Float64[np.ndarray, "E"]
    """[E] bytes of the tensor on each edge."""
    transfer_seconds: Float64[np.ndarray, "N"]
    """[N] seconds to move a node's output between device and host (max-load and latency)."""
    memory: bool = True
    """Whether weights and live tensors must fit each device."""
    all_chips: bool = False
    """Ring only: every chip must be used (m = chips - 1)."""
    fixed: Mapping[int, int] = field(default_factory=dict)
    """Device of nodes that the user has pinned, by node index."""
    notes: tuple[str, ...] = ()
    """Sentences about what was assumed or left out."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Symbolic dimensions the user set."""
    decisions: tuple[str, ...] = DECISIONS
    """Makespan only: the decisions. Without ``placement`` every node is fixed; without ``schedule``
    kernels run in topological order; without ``fusion`` nothing is fused."""
    kernels: KernelPrices | None = None
    """Prices of fused kernels; makespan only."""
    gap_seconds: Float64[np.ndarray, "N"] | None = None
    """[N] seconds after each node in which its engine idles and its results are not there yet
    (makespan only); None: none."""

    def __post_init__(self) -> None:
        devices = self.hardware.num_devices
        traits, links = self.objective.traits, self.hardware.links.topology
        if traits.topologies and links not in traits.topologies:
            needed, choice = traits.topology_hint
            raise ProblemError(
                f"objective {self.objective} needs {needed}; {self.hardware.name!r} has {links} "
                f"links: choose {choice}"
            )
        if not (self.hardware.links.uniform or traits.topologies):
            what = "is a " + links if self.hardware.links.shape else "has groups or hosts"
            raise ProblemError(
                f"objective {self.objective} knows one class of links, and {self.hardware.name!r} "
                f"{what}: choose objective makespan"
            )
        if devices > traits.most_devices:
            raise ProblemError(
                f"objective {self.objective} works with at most {traits.most_devices} "
                f"{traits.device}s, and {self.hardware.name!r} has {devices}: choose smaller "
                "hardware, or one with full, mesh or torus links and objective makespan"
            )
        decision_names(self.decisions)
        if self.all_chips and devices > self.graph.num_nodes:
            raise ProblemError(
                f"--all-chips: hardware {self.hardware.name!r} has {devices} chips and the graph "
                f"only {self.graph.num_nodes} nodes; use at most {self.graph.num_nodes} chips"
            )
        for node, device in self.fixed.items():
            if not 0 <= node < self.graph.num_nodes:
                raise ProblemError(f"fixed node {node} is not a node of {self.graph.name!r}")
            if not 0 <= device < devices:
                name = self.graph.names[node]
                raise ProblemError(
                    f"node {name!r} is fixed to {traits.device} {device}; {traits.device}s are "
                    f"0..{devices - 1}"
                )

    def __repr__(self) -> str:
        rules = f", rules {self.rules.name}" if self.objective.traits.has_rules else ""
        return (
            f"<Problem {self.graph.name!r} ({self.graph.num_nodes} nodes) on "
            f"{self.hardware.name!r}: objective {self.objective}{rules}, cost {self.cost_model}>"
        )

    @cached_property
    def device_kind(self) -> Int16[np.ndarray, "D"]:
        """[D] row of `seconds` for each device."""
        kinds = {kind: i for i, kind in enumerate(self.hardware.kinds)}
        return np.array([kinds[c.kind] for c in self.hardware.devices], np.int16)

    @cached_property
    def work(self) -> Float64[np.ndarray, "N"]:
        """[N] seconds of each node on the first device kind: the work of a homogeneous ring."""
        return self.seconds[0]

    @cached_property
    def held_weights(self) -> HeldWeights:
        """Weights that stay on devices, by node and by tied array."""
        graph = self.graph
        return held_weights(self.weight_bytes, graph.tied_node, graph.tied_array, self.tied_bytes)

    @cached_property
    def has_colocation(self) -> bool:
        """True when some nodes must share a device."""
        return bool((self.graph.colocation != FREE).any())
