"""`RingSolver`: legal partitions of a ring problem, by FIX and by SAMPLE, batched and seeded."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import no_type_check

import numpy as np
from jaxtyping import Float, Float64, Int, Int16, Int64

from go_rl.core import Fidelity, Means, Problem, SolverError, Status
from go_rl.core.bitset import bit
from go_rl.core.compiled_struct import compiled
from go_rl.core.evaluation import NOTHING_MADE
from go_rl.runtime.decoder_calls import count_decoder_calls
from go_rl.runtime.threads import on_threads
from go_rl.solvers.domains import OK
from go_rl.solvers.draws.cut_distribution import cut_windows, log_odds
from go_rl.solvers.draws.smoothed_order import chip_moments
from go_rl.solvers.explain import explain
from go_rl.solvers.network import Network, State, new_state
from go_rl.solvers.propagation import fill
from go_rl.solvers.replication import presence
from go_rl.solvers.ring_instance import RingInstance, ring_instance, without_copied
from go_rl.solvers.sample_and_fix import Legal, ProposalSearch, SearchVerdict, SolverOptions
from go_rl.solvers.samples import CODE, Samples, no_samples
from go_rl.solvers.stage_costs import other_copies
from go_rl.solvers.tree_search import EXHAUSTED, FOUND, NO_PROPOSAL, search


@compiled
@no_type_check
def to_nodes(block_of, replicated, leader, successors, chip, block_mask, device, mask):
    """Spread [M] chips over [N] nodes; copied nodes go to their lowest consumer."""
    offsets, receivers = successors
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
        offsets, edges = problem.graph.successors
        self._successors = offsets, problem.graph.receivers[edges]
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
        nodewise: bool = False,
    ) -> Samples:
        """SAMPLE: draw from the product of the nodes' distributions, given that it is legal.

        See `sample_and_fix` for how; without distributions: uniform cuts of random orders, or each
        node's chip uniformly.

        Args:
            log_probs: [N, chips] or [B, N, chips]; None: uniform. -inf where never wanted.
            batch: samples to draw when ``log_probs`` has no batch axis.
            seed: the same seed gives the same samples, whatever the number of threads.
            nodewise: one node after the other, from propagated domains, as published; else all
                together, or the cuts of an order.
        """
        rows = self._rows(log_probs, batch)
        batch = rows.shape[0] if rows.shape[0] > 1 else batch
        if not self.detail:
            count_decoder_calls(batch)

        def draw(search: ProposalSearch, row: int, random: np.ndarray) -> SearchVerdict:
            mine = rows[row % len(rows)]
            if nodewise:
                return search.sample_nodewise(mine, random)
            return search.sample(mine, log_probs is None, random)

        return self._run(draw, batch, seed)

    def fix(
        self,
        assignment: Int[np.ndarray, "*B N"],
        log_probs: Float[np.ndarray, "*C N k"] | None = None,
        seed: int = 0,
        nodewise: bool = False,
    ) -> Samples:
        """FIX: return the legal partition nearest to the proposed chips; draw the other nodes.

        Args:
            assignment: [N] or [B, N] proposed chip of each node; -1: no proposal.
            log_probs: [N, chips] for all, or [B, N, chips], for the nodes that must be drawn.
            seed: as for `sample`.
            nodewise: keep one node's proposal after the other where it is legal after those
                before, as published, however far the others then are from theirs.

        Raises:
            SolverError: shapes do not fit, or a proposed chip does not exist.
        """
        proposals = np.atleast_2d(_numbers(assignment, "assignment"))
        nodes, chips = self.problem.graph.num_nodes, self.problem.hardware.num_devices
        if proposals.shape[1] != nodes:
            raise SolverError(f"fix: assignment has {proposals.shape[1]} nodes, the graph {nodes}")
        if not len(proposals) or proposals.dtype.kind == "f":
            raise SolverError("fix: assignment must hold whole numbers, [N] or [B, N] with B >= 1")
        if proposals.min(initial=0) < -1 or proposals.max(initial=0) >= chips:
            raise SolverError(f"fix: chips must be 0..{chips - 1}, or -1 for no proposal")
        rows = self._rows(log_probs, len(proposals))
        if 1 not in (len(rows), len(proposals)) and len(rows) != len(proposals):
            raise SolverError(
                f"fix: a batch of {len(proposals)} assignments and one of {len(rows)} log_probs"
            )
        blocks = np.ascontiguousarray(proposals[:, self.instance.leader], np.int16)

        def keep(search: ProposalSearch, row: int, random: np.ndarray) -> SearchVerdict:
            method = search.fix_nodewise if nodewise else search.fix
            return method(blocks[row % len(blocks)], rows[row % len(rows)], random)

        return self._run(keep, max(len(proposals), rows.shape[0]), seed)

    def likeliest(self, log_probs: Float[np.ndarray, "N k"]) -> Int16[np.ndarray, "N"] | None:
        """Return [N] the likeliest cuts of the order that [N, chips] log-probabilities suggest.

        None where that order has no legal ones.
        """
        if self.detail:
            return None
        state = self._borrow()
        found = ProposalSearch(self.instance.net, state, self.options).likeliest(
            self._rows(log_probs, 1)[0]
        )
        self._give_back(state)
        if found is None:
            return None
        samples = no_samples(1, self.problem.graph.num_nodes, self.instance.num_blocks, Status.OK)
        self._write(samples, 0, FOUND, found)
        return samples.device[0]

    def fidelity(
        self,
        samples: Samples,
        row: int = 0,
        proposed: Int[np.ndarray, "N"] | None = None,
        log_probs: Float[np.ndarray, "N k"] | None = None,
    ) -> Fidelity:
        """Return how one sample follows from what was proposed for it.

        Args:
            samples: what `sample` or `fix` made.
            row: of ``samples``.
            proposed: [N] chips given to `fix`; -1: no proposal.
            log_probs: [N, chips] given to either, where they say what is wanted.
        """
        means = Means(samples.means[row])
        if means is Means.NONE:
            return NOTHING_MADE
        device, leader = samples.device[row], self.instance.leader
        every = None if log_probs is None else log_prob_rows(self.problem, log_probs, 1)[0]
        counted = self.instance.block_of >= 0
        wish = None if every is None else chip_moments(every)[0]
        if proposed is not None:
            counted = counted & (proposed != NO_PROPOSAL)
            wish = proposed.astype(np.float64)
        apart = None
        if wish is not None and counted.any():
            apart = float(np.abs(device - wish)[counted].mean())
        gap = None if every is None else self._gap(every[leader], device[leader])
        return Fidelity(means, apart, gap)

    def _gap(
        self, log_probs: Float64[np.ndarray, "M k"], chip: Int16[np.ndarray, "M"]
    ) -> float | None:
        """Gap of the mean log-probability of [M] chips below that of the likeliest cuts."""
        state = self._borrow()
        best = ProposalSearch(self.instance.net, state, self.options).likeliest(log_probs)
        self._give_back(state)
        if best is None:
            return None
        block, odds = np.arange(len(chip)), log_odds(log_probs)
        return max(0.0, float((odds[block, best.chip] - odds[block, chip]).mean()))

    def windows(self, order: Int64[np.ndarray, "M"]) -> tuple[np.ndarray, np.ndarray]:
        """Return [M] first and [k, M] last ends of the pieces of an order; see `cut_windows`."""
        state = self._borrow()
        found = cut_windows(self.instance.net, order, state.domain)
        self._give_back(state)
        return found

    def _rows(self, log_probs: np.ndarray | None, batch: int) -> Float64[np.ndarray, "B M k"]:
        rows = log_prob_rows(self.problem, log_probs, batch)
        return np.ascontiguousarray(rows[:, self.instance.leader])

    def _run(
        self,
        legalize: Callable[[ProposalSearch, int, np.ndarray], SearchVerdict],
        batch: int,
        seed: int,
    ) -> Samples:
        """Make every row of a batch legal; each has its own random numbers."""
        nodes, blocks = self.problem.graph.num_nodes, self.instance.num_blocks
        samples = no_samples(batch, nodes, blocks, self._failure, self.detail)
        if self.detail:
            return samples

        def share(mine: range) -> None:
            state = self._borrow()
            search = ProposalSearch(self.instance.net, state, self.options)
            for row in mine:
                random = np.array([_seed(seed, row)], np.uint64)
                self._write(samples, row, *legalize(search, row, random))
            self._give_back(state)

        on_threads(share, batch, self.options.threads)
        return samples

    def _write(self, samples: Samples, row: int, verdict: int, found: Legal | None) -> None:
        inst = self.instance
        if found is not None:
            to_nodes(inst.block_of, inst.replicated, inst.leader, self._successors,
                     found.chip, found.mask, samples.device[row], samples.mask[row])  # fmt: skip
            samples.means[row], samples.log_prob[row] = found.means, found.log_prob
            samples.order[row] = found.order
            samples.status[row] = CODE[Status.OK]
        elif verdict == EXHAUSTED and self._impossible:
            samples.status[row] = CODE[Status.INFEASIBLE]

    def _borrow(self) -> State:
        """Return a state at its root that no other thread uses."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        state = new_state(self.instance.net)
        fill(self.instance.net, state)
        self._root_holds(state)
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
        failures = self.options.most_failures(rest.num_blocks)
        return search_uniform(rest.net, state, failures) == EXHAUSTED

    def _overfull(self) -> bool:
        """Whether all weights, each kept once, exceed all memory: no copy helps against that."""
        if not self.problem.memory:
            return False
        everywhere = np.ones(self.problem.graph.num_nodes, np.bool_)
        room = sum(chip.memory_bytes for chip in self.problem.hardware.devices)
        return self.problem.held_weights.total(everywhere) > room


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
        (failures, False),
        np.zeros(1, np.uint64),
        (np.zeros(count, np.int16), np.zeros(count, np.int64)),
    )


def log_prob_rows(
    problem: Problem, log_probs: np.ndarray | None, batch: int
) -> Float64[np.ndarray, "B N k"]:
    """Return [B, N, chips] checked log-probabilities; [1, N, chips] where all samples share them.

    Raises:
        SolverError: not numbers, the shape does not fit the problem, NaN or +inf, or ``batch`` is
            below 1.
    """
    nodes, chips = problem.graph.num_nodes, problem.hardware.num_devices
    if batch < 1:
        raise SolverError(f"batch must be >= 1, not {batch}")
    if log_probs is None:
        return np.zeros((1, nodes, chips))
    log_probs = _numbers(log_probs, "log_probs")
    if log_probs.ndim not in (2, 3) or log_probs.shape[-2:] != (nodes, chips):
        raise SolverError(
            f"log_probs must be [{nodes}, {chips}] or [B, {nodes}, {chips}], "
            f"not {list(log_probs.shape)}"
        )
    if not len(log_probs):
        raise SolverError("log_probs: a batch of none")
    if np.isnan(log_probs).any() or (log_probs == np.inf).any():
        raise SolverError("log_probs must not hold NaN or +inf")
    return (log_probs if log_probs.ndim == 3 else log_probs[None]).astype(np.float64, copy=False)


def _numbers(values: object, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise SolverError(f"{name} must be an array of numbers, not of {array.dtype}")
    return array


def _seed(seed: int, index: int) -> np.uint64:
    return np.uint64(((seed + 1) * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03) % 2**64)
