"""`DomainStore`: the solver one decision at a time, as Telamon shows its search space to an agent.

An agent reads the domains, sets a node to a chip, and the store propagates: the domains that are
left hold only chips that the rules, as far as propagation sees, still allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Int16, Int64

from go_rl.core import Problem, SolverError
from go_rl.core.bitset import ONE, bit, lowest, membership
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.constraints.custom_constraint import CustomConstraint
from go_rl.solvers.domains import DONE, NO_SKIP, OK, RELATIONS, TRAIL, shrink
from go_rl.solvers.explain import explain
from go_rl.solvers.network import Network, State, new_state
from go_rl.solvers.propagation import propagate, reset, undo
from go_rl.solvers.replication import place_copies
from go_rl.solvers.ring_instance import RingInstance, consumer_blocks, ring_instance

OPEN = -1
"""`DomainStore.placement`: the node has several chips left."""
NO_CONSUMER_CHIP = 0
"""Chip of a copied node without consumers."""

Mark = tuple[int, int, int]
"""Lengths of a state's three trails."""


@compiled
@no_type_check
def _intersect(net: Network, st: State, blocks, allowed) -> int:
    """Intersect the domains of some blocks and propagate; return OK or the clash."""
    for v in blocks:
        rule = shrink(net, st, v, allowed, NO_SKIP)
        if rule != OK:
            return rule
    return propagate(net, st)


@compiled
@no_type_check
def _possible(net: Network, st: State, v: int) -> int:
    """The chips of a block's domain that survive being set and propagated."""
    left, possible = st.domain[v], 0 * st.domain[v]
    trail, done, relations = st.cursor[TRAIL], st.cursor[DONE], st.cursor[RELATIONS]
    while left:
        c = lowest(left)
        left &= left - 1
        if shrink(net, st, v, bit(c), NO_SKIP) == OK and propagate(net, st) == OK:
            possible |= bit(c)
        undo(net, st, trail, done, relations)
    return possible


@compiled
@no_type_check
def _node_domains(offsets, receivers, block_of, domain, out) -> None:
    """Write [N] domains: a copied node may be wherever a consumer may."""
    for n in range(len(block_of) - 1, -1, -1):
        if block_of[n] >= 0:
            out[n] = domain[block_of[n]]
            continue
        out[n] = 0
        for i in range(offsets[n], offsets[n + 1]):
            out[n] |= out[receivers[i]]
        if offsets[n] == offsets[n + 1]:
            out[n] = bit(NO_CONSUMER_CHIP)


class DomainStore:
    """The domains of every node of a ring problem, and the decisions taken so far.

    A copied node (see `RingInstance.replicated`) is wherever a consumer is: its domain is the
    union of theirs, and setting or removing its chip sets or removes that of all its consumers.
    Not thread-safe.
    """

    def __init__(
        self, problem: Problem | RingInstance, constraints: Sequence[CustomConstraint] = ()
    ) -> None:
        self.instance = problem if isinstance(problem, RingInstance) else ring_instance(problem)
        self.constraints = tuple(constraints)
        graph = self.problem.graph
        self._offsets, edges = graph.successors
        self._receivers = graph.receivers[edges]
        self._state = new_state(self.instance.net)
        self._marks: list[Mark] = []
        self._clash, self._feasible = self.instance.conflict, False
        self._feasible = self._settle_root()
        self._root = self._mark()

    @property
    def problem(self) -> Problem:
        return self.instance.problem

    @property
    def feasible(self) -> bool:
        """False when no plan exists: proved before any decision."""
        return self._feasible

    @property
    def clash(self) -> str:
        """The rule and the nodes of the last contradiction in words; empty when none was met."""
        return self._clash

    @property
    def depth(self) -> int:
        """Decisions that `undo` can take back."""
        return len(self._marks)

    @property
    def complete(self) -> bool:
        """True when every node has its chip: the assignment is a legal partition."""
        return self._feasible and bool(self._state.done.all())

    def domains(self) -> Bool[np.ndarray, "N chips"]:
        """Return [N, chips] which chips each node may still take; all False when infeasible."""
        return membership(self._words(), self.instance.net.chips)

    def domain(self, node: int) -> int:
        """Return the chips a node may still take, as the bits of a word >= 0."""
        block = self._block(node)
        word = self._state.domain[block] if block >= 0 else self._words()[node]
        return int(word) & 0xFFFF_FFFF_FFFF_FFFF if self._feasible else 0

    def chips(self, node: int) -> tuple[int, ...]:
        word = self.domain(node)
        return tuple(c for c in range(self.instance.net.chips) if word >> c & 1)

    def placement(self) -> Int16[np.ndarray, "N"]:
        """Return [N] the chip of each node that has one left, `OPEN` for all others."""
        words = self._words()
        single = (words != 0) & (words & (words - 1) == 0)
        return np.where(single, np.bitwise_count(words - 1).astype(np.int16), np.int16(OPEN))

    def possible(self, node: int) -> Bool[np.ndarray, "chips"]:
        """Return [chips] the part of a node's domain that propagation would not refute if set.

        Sharper than `domains` and more expensive: one propagation a chip. Custom constraints are
        not asked, and the domain itself is returned for a copied node.
        """
        block, chips = self._block(node), self.instance.net.chips
        if block < 0 or not self._feasible:
            return self.domains()[node]
        word = np.array(_possible(self.instance.net, self._state, block), np.int64)
        return membership(word, chips)

    def set(self, node: int, chip: int) -> bool:
        """Put a node on a chip and propagate; False, and nothing changed, on a contradiction."""
        return self._decide(node, chip, ONE << np.int64(self._chip(chip)))

    def remove(self, node: int, chip: int) -> bool:
        """Take a chip from a node's domain and propagate; False, and nothing changed, on a
        contradiction."""
        return self._decide(node, chip, ~(ONE << np.int64(self._chip(chip))))

    def undo(self) -> None:
        """Take back the last `set` or `remove` that returned True, exactly.

        Raises:
            SolverError: there is none.
        """
        if not self._marks:
            raise SolverError("undo: no decision is left to take back")
        self._back_to(self._marks.pop())

    def reset(self) -> None:
        """Take back all decisions."""
        self._marks.clear()
        self._back_to(self._root)
        if self._feasible:
            self._clash = ""

    def assignment(self) -> Int16[np.ndarray, "N"]:
        """Return [N] the chip of each node, copied nodes as `place_copies` puts them.

        Raises:
            SolverError: a node has several chips left, or no plan exists.
        """
        if not self.feasible:
            raise SolverError(f"assignment: no plan exists: {self.clash}")
        if not self.complete:
            node = int(self.instance.leader[~self._state.done][0])
            raise SolverError(
                f"assignment: node {self.problem.graph.names[node]!r} still has chips "
                f"{list(self.chips(node))}; set every node first"
            )
        device = np.full(self.problem.graph.num_nodes, NO_CONSUMER_CHIP, np.int16)
        own = self.instance.block_of >= 0
        chip_of = membership(self._state.domain, self.instance.net.chips).argmax(axis=1)
        device[own] = chip_of[self.instance.block_of[own]]
        return place_copies(self.problem, self.instance.replicated, device)[0]

    def _words(self) -> Int64[np.ndarray, "N"]:
        out = np.zeros(self.problem.graph.num_nodes, np.int64)
        if self._feasible:
            _node_domains(self._offsets, self._receivers, self.instance.block_of,
                          self._state.domain, out)  # fmt: skip
        return out

    def _settle_root(self) -> bool:
        if self._clash:
            return False
        if reset(self.instance.net, self._state) != OK:
            self._clash = explain(self.instance, self._state)
            return False
        self._feasible = True
        return self._ask_constraints()

    def _decide(self, node: int, chip: int, allowed: np.int64) -> bool:
        blocks = self._blocks_behind(node)
        if not self._feasible:
            return False
        mark = self._mark()
        if self._empties(blocks, allowed):
            self._clash = self._taken(node, chip)
        elif self._narrow(blocks, allowed) and self._ask_constraints():
            self._marks.append(mark)
            return True
        self._back_to(mark)
        return False

    def _ask_constraints(self) -> bool:
        """Let the user's constraints prune until nothing changes; False on a contradiction."""
        changed = bool(self.constraints)
        while changed:
            changed = False
            for constraint in self.constraints:
                for node, chip in list(constraint.prune(self)):
                    allowed = ~(ONE << np.int64(self._chip(chip)))
                    if not self.domain(node) >> int(chip) & 1:
                        continue
                    changed, blocks = True, self._blocks_behind(node)
                    if self._empties(blocks, allowed):
                        self._clash = self._refused(constraint, node)
                        return False
                    if not self._narrow(blocks, allowed):
                        return False
        return True

    def _empties(self, blocks: Int64[np.ndarray, "blocks"], allowed: np.int64) -> bool:
        """Whether a domain would be left empty; a node that nobody consumes cannot move."""
        if not len(blocks):
            return not (ONE << np.int64(NO_CONSUMER_CHIP)) & allowed
        return bool((self._state.domain[blocks] & allowed == 0).any())

    def _narrow(self, blocks: Int64[np.ndarray, "blocks"], allowed: np.int64) -> bool:
        """Intersect and propagate; on a contradiction remember why."""
        if _intersect(self.instance.net, self._state, blocks, allowed) == OK:
            return True
        self._clash = explain(self.instance, self._state)
        return False

    def _mark(self) -> Mark:
        cursor = self._state.cursor
        return int(cursor[TRAIL]), int(cursor[DONE]), int(cursor[RELATIONS])

    def _back_to(self, mark: Mark) -> None:
        undo(self.instance.net, self._state, *mark)

    def _block(self, node: int) -> int:
        if not 0 <= node < self.problem.graph.num_nodes:
            raise SolverError(f"node {node} is not one of 0..{self.problem.graph.num_nodes - 1}")
        return int(self.instance.block_of[node])

    def _chip(self, chip: int) -> int:
        if not 0 <= chip < self.instance.net.chips:
            raise SolverError(f"chip {chip} is not one of 0..{self.instance.net.chips - 1}")
        return int(chip)

    def _blocks_behind(self, node: int) -> Int64[np.ndarray, "blocks"]:
        """The block of a node, or the blocks that consume a copied one."""
        if self._block(node) >= 0:
            return self.instance.block_of[node : node + 1].astype(np.int64)
        found = consumer_blocks(self.problem, self.instance.block_of, int(node))
        return np.array(sorted(found), np.int64)

    def _taken(self, node: int, chip: int) -> str:
        name = self.problem.graph.names[node]
        return f"node {name!r} cannot be put on chip {chip}; it has {list(self.chips(node))} left"

    def _refused(self, constraint: CustomConstraint, node: int) -> str:
        name = self.problem.graph.names[node]
        return f"constraint {type(constraint).__name__}: no chip is left for node {name!r}"
