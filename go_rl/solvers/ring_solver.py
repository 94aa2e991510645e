"""`RingSolver`: legal partitions of a ring problem, by FIX and by SAMPLE, batched and seeded."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Float64, Int, Int8, Int16, Int64

from go_rl.core import FREE, Problem, SolverError, Status
from go_rl.core.evaluation import STATUS_CODES
from go_rl.runtime.kernel_struct import kernel
from go_rl.runtime.threads import on_threads
from go_rl.simulate.bitset import bit, membership
from go_rl.simulate.ring.replication import presence
from go_rl.solvers.domains import OK
from go_rl.solvers.explain import explain
from go_rl.solvers.linear_cuts import expected_chips, guided_order, sample_cuts
from go_rl.solvers.network import Network, State, new_state
from go_rl.solvers.propagation import fill
from go_rl.solvers.ring_instance import RingInstance, ring_instance, without_copied
from go_rl.solvers.stage_costs import other_copies
from go_rl.solvers.tree_search import EXHAUSTED, FOUND, NO_PROPOSAL, search

CODE = {status: i for i, status in enumerate(STATUS_CODES)}
"""Small integer of each `Status`, as kernels and `Samples.status` hold it."""

FAITH = 50.0
"""Log-odds that FIX gives a proposed chip when it must fall back on cuts of a linear order."""


@dataclass(frozen=True)
class SolverOptions:
    """Effort of the search."""

    quick_failures: int = 10
    """Contradictions before the tree search yields to cuts of a linear order."""
    full_failures: int = 20_000
    """Contradictions in the last attempt, when no linear order has a legal cut."""
    threads: int | None = None
    """Threads for a batch; None: one for each core."""


@dataclass(frozen=True, eq=False)
class Samples:
    """``B`` proposals made legal."""

    device: Int16[np.ndarray, "B N"]
    """[B, N] chip of each node (home chip of a copied node); zeros where the status is not OK."""
    mask: Int64[np.ndarray, "B N"]
    """[B, N] chips that were possible when the node was drawn, as the bits of a word. One bit: the
    node was decided by others and has probability one."""
    status: Int8[np.ndarray, "B"]
    """[B] index into `STATUS_CODES`."""
    detail: str
    """Why there is none, when every sample failed."""

    @property
    def ok(self) -> np.ndarray:
        """[B] samples that are legal partitions."""
        return self.status == CODE[Status.OK]

    def masks(self, chips: int) -> np.ndarray:
        """Return boolean [B, N, chips] domains."""
        return membership(self.mask, chips)

    def log_prob(self, log_probs: Float[np.ndarray, "*B N k"]) -> Float64[np.ndarray, "B"]:
        """Return [B] log-probability of each sample under masked, renormalised ``log_probs``."""
        masked = np.where(self.masks(log_probs.shape[-1]), log_probs.astype(np.float64), -np.inf)
        top = masked.max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = top[..., 0] + np.log(np.exp(masked - top).sum(axis=-1))
        chosen = np.take_along_axis(masked, self.device[..., None].astype(np.int64), -1)[..., 0]
        several = (self.mask & (self.mask - 1)) != 0
        return np.where(several, chosen - total, 0.0).sum(axis=-1)


@kernel
@no_type_check
def to_nodes(block_of, replicated, leader, offsets, receivers, chip, block_mask, device, mask):
    """Spread [M] chips over [N] nodes; copied nodes go to their lowest consumer."""
    for n in range(len(block_of)):
        b = block_of[n]
        device[n] = chip[b] if b >= 0 else 0
    presence(offsets, receivers, replicated, device, mask)
    for n in range(len(block_of)):
        b = block_of[n]
        mask[n] = block_mask[b] if b >= 0 and leader[b] == n else bit(device[n])


class RingSolver:
    """Makes every proposal legal. Build once for a problem; thread-safe after that."""

    def __init__(self, problem: Problem, options: SolverOptions | None = None) -> None:
        self.problem = problem
        self.options = options or SolverOptions()
        self.instance: RingInstance = ring_instance(problem)
        self._order = np.arange(self.instance.num_blocks)
        self._offsets, edges = problem.graph.successors
        self._receivers = problem.graph.receivers[edges]
        self._idle: list[State] = []
        self._lock = threading.Lock()
        self.detail = self.instance.conflict or self._prove_root()
        self._failure = self._judge_failure() if self.detail else Status.GAVE_UP

    @property
    def feasible_so_far(self) -> bool:
        """False when propagation alone has proved that no partition exists with these copies."""
        return not self.detail

    def sample(
        self,
        log_probs: Float[np.ndarray, "*B N k"] | None = None,
        batch: int = 1,
        seed: int = 0,
    ) -> Samples:
        """SAMPLE: nodes in topological order, each drawn from its renormalised distribution.

        Args:
            log_probs: [N, chips] or [B, N, chips]; None: uniform. -inf where never wanted.
            batch: samples to draw when ``log_probs`` has no batch axis.
            seed: the same seed gives the same samples, whatever the number of threads.
        """
        rows = self._rows(log_probs, batch)
        none = np.full((1, self.instance.num_blocks), NO_PROPOSAL, np.int16)
        return self._run(rows, none, rows.shape[0] if rows.shape[0] > 1 else batch, seed)

    def fix(
        self,
        assignment: Int[np.ndarray, "*B N"],
        log_probs: Float[np.ndarray, "*C N k"] | None = None,
        seed: int = 0,
    ) -> Samples:
        """FIX: keep the proposed chips where still legal, sample the others.

        Args:
            assignment: [N] or [B, N] proposed chip of each node; -1: no proposal.
            log_probs: [N, chips] for all, or [B, N, chips], for the nodes that must be drawn.
            seed: as for `sample`.

        Raises:
            SolverError: shapes do not fit, or a proposed chip does not exist.
        """
        proposals = np.atleast_2d(np.asarray(assignment))
        nodes, chips = self.problem.graph.num_nodes, self.problem.hardware.num_chips
        if proposals.shape[1] != nodes:
            raise SolverError(f"fix: assignment has {proposals.shape[1]} nodes, the graph {nodes}")
        if proposals.min(initial=0) < -1 or proposals.max(initial=0) >= chips:
            raise SolverError(f"fix: chips must be 0..{chips - 1}, or -1 for no proposal")
        rows = self._rows(log_probs, len(proposals))
        if 1 not in (len(rows), len(proposals)) and len(rows) != len(proposals):
            raise SolverError(
                f"fix: a batch of {len(proposals)} assignments and one of {len(rows)} log_probs"
            )
        blocks = np.ascontiguousarray(proposals[:, self.instance.leader], np.int16)
        return self._run(rows, blocks, max(len(proposals), rows.shape[0]), seed)

    def _rows(self, log_probs: np.ndarray | None, batch: int) -> Float64[np.ndarray, "B M k"]:
        rows = log_prob_rows(self.problem, log_probs, batch)
        return np.ascontiguousarray(rows[:, self.instance.leader])

    def _run(self, rows: np.ndarray, proposals: np.ndarray, batch: int, seed: int) -> Samples:
        nodes = self.problem.graph.num_nodes
        device = np.zeros((batch, nodes), np.int16)
        mask = np.zeros((batch, nodes), np.int64)
        status = np.full(batch, CODE[self._failure], np.int8)
        if not self.detail:

            def share(mine: range) -> None:
                st = self._borrow()
                for i in mine:
                    self._one(st, rows[i % len(rows)], proposals[i % len(proposals)],
                              _seed(seed, i), device[i], mask[i], status[i : i + 1])  # fmt: skip
                self._give_back(st)

            on_threads(share, batch, self.options.threads)
        return Samples(device, mask, status, self.detail)

    def _one(
        self,
        st: State,
        log_probs: np.ndarray,
        proposal: np.ndarray,
        seed: np.uint64,
        device: np.ndarray,
        mask: np.ndarray,
        status: np.ndarray,
    ) -> None:
        inst = self.instance
        chip = np.zeros(inst.num_blocks, np.int16)
        block_mask = np.zeros(inst.num_blocks, np.int64)
        verdict = self._solve(st, log_probs, proposal, seed, chip, block_mask)
        if verdict == FOUND:
            to_nodes(inst.block_of, inst.replicated, inst.leader, self._offsets,
                      self._receivers, chip, block_mask, device, mask)  # fmt: skip
            status[0] = CODE[Status.OK]
        elif verdict == EXHAUSTED and self._impossible:
            status[0] = CODE[Status.INFEASIBLE]

    def _solve(
        self,
        st: State,
        log_probs: Float64[np.ndarray, "M k"],
        proposal: Int16[np.ndarray, "M"],
        seed: np.uint64,
        chip: Int16[np.ndarray, "M"],
        mask: Int64[np.ndarray, "M"],
    ) -> int:
        """Write one legal partition into ``chip`` and ``mask``; return a search verdict.

        A quick tree search, one that leaves no chip to be filled later, cuts of linear orders,
        and the tree search once more with all its effort.
        """
        net, order, random = self.instance.net, self._order, np.array([seed], np.uint64)

        def attempt(failures: int, tight: bool) -> int:
            return search(net, st, log_probs, proposal, order, failures, tight, random, chip, mask)

        for tight in (False, True):
            verdict = attempt(self.options.quick_failures, tight)
            if verdict == FOUND or (verdict == EXHAUSTED and not tight):
                return verdict
        wish, biased = expected_chips(log_probs), log_probs.copy()
        wanted = np.flatnonzero(proposal != NO_PROPOSAL)
        wish[wanted] = proposal[wanted]
        biased[wanted, proposal[wanted]] += FAITH
        for line in (guided_order(net, wish), order):
            if sample_cuts(net, line, st.domain, biased, random, chip, mask):
                return FOUND
        return attempt(self.options.full_failures, False)

    def _borrow(self) -> State:
        """Return a state at its root that no other thread uses."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        state = new_state(self.instance.net)
        fill(self.instance.net, state)
        return state

    def _give_back(self, state: State) -> None:
        with self._lock:
            self._idle.append(state)

    def _prove_root(self) -> str:
        state = new_state(self.instance.net)
        if fill(self.instance.net, state) == OK and self._root_holds(state):
            self._idle.append(state)
            return ""
        return explain(self.instance, state)

    def _root_holds(self, state: State) -> bool:
        return search_uniform(self.instance.net, state, 0, blocks=0) == FOUND

    def _judge_failure(self) -> Status:
        """A clash at the root proves infeasibility, unless other copies might have avoided it."""
        return Status.INFEASIBLE if self._impossible else Status.GAVE_UP

    @cached_property
    def _impossible(self) -> bool:
        """Whether no plan exists even without the nodes that it may copy; asked once this
        solver's own search has failed for good."""
        copyable = self.instance.replicated | other_copies(self.instance)
        if not copyable.any() or self._overfull():
            return True
        if copyable.all():
            return False
        rest = without_copied(ring_instance(self.problem, copyable))
        state = new_state(rest.net)
        if rest.conflict or fill(rest.net, state) != OK:
            return True
        return search_uniform(rest.net, state, self.options.full_failures) == EXHAUSTED

    def _overfull(self) -> bool:
        """Whether all weights, each kept once, exceed all memory: no copy helps against that."""
        if not self.problem.memory:
            return False
        group, size = self.problem.graph.weight_group, self.problem.weight_bytes
        tied = np.zeros(int(group.max(initial=FREE)) + 1)
        np.maximum.at(tied, group[group != FREE], size[group != FREE])
        room = sum(chip.memory_bytes for chip in self.problem.hardware.chips)
        return bool(size[group == FREE].sum() + tied.sum() > room)


def search_uniform(net: Network, st: State, failures: int, blocks: int | None = None) -> int:
    """Return the verdict of a search without a policy over the first ``blocks`` blocks; of none:
    EXHAUSTED when propagation alone refutes the problem."""
    count = len(net.weight)
    return search(
        net,
        st,
        np.zeros((count, net.chips)),
        np.full(count, NO_PROPOSAL, np.int16),
        np.arange(count if blocks is None else blocks),
        failures,
        False,
        np.zeros(1, np.uint64),
        np.zeros(count, np.int16),
        np.zeros(count, np.int64),
    )


def log_prob_rows(
    problem: Problem, log_probs: np.ndarray | None, batch: int
) -> Float64[np.ndarray, "B N k"]:
    """Return [B, N, chips] checked log-probabilities; [1, N, chips] where all samples share them.

    Raises:
        SolverError: the shape does not fit the problem, NaN or +inf, or ``batch`` is below 1.
    """
    nodes, chips = problem.graph.num_nodes, problem.hardware.num_chips
    if batch < 1:
        raise SolverError(f"batch must be >= 1, not {batch}")
    if log_probs is None:
        return np.zeros((1, nodes, chips))
    if log_probs.ndim not in (2, 3) or log_probs.shape[-2:] != (nodes, chips):
        raise SolverError(
            f"log_probs must be [{nodes}, {chips}] or [B, {nodes}, {chips}], "
            f"not {list(log_probs.shape)}"
        )
    if np.isnan(log_probs).any() or (log_probs == np.inf).any():
        raise SolverError("log_probs must not hold NaN or +inf")
    return (log_probs if log_probs.ndim == 3 else log_probs[None]).astype(np.float64, copy=False)


def _seed(seed: int, index: int) -> np.uint64:
    return np.uint64(((seed + 1) * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03) % 2**64)
