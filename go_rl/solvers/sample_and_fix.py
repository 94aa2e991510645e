"""SAMPLE and FIX of one proposal (Partitioning ML Models on Multi-Chip Modules, MLSys 2022).

SAMPLE draws from the product of the blocks' distributions, conditioned on legality: an independent
draw where it is legal, else the cuts of the order that the distributions suggest, exactly. FIX
keeps a legal proposal; of another it returns what is nearest: the result of a short tree search
or the likeliest cuts. Where an order has no legal cuts, as with edges between distant chips that
the chip graph forces, tree search decides.

Both have a form that is the paper's: block by block, in topological order, from domains that
propagation keeps. A choice that turns out to have no legal completion is taken back and another one
drawn, so that SAMPLE draws a chip with probability P[v, c] / sum of P[v, c'] over the chips c' that
have one, given the chips before. After too many contradictions it starts anew, some times, and then
gives up: what the policy is credited for is its own draw, never another search's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int16, Int64, UInt64

from go_rl.core import Means
from go_rl.core.graph.depth_first import depth_first_order
from go_rl.solvers.draws.cut_distribution import CutDistribution, log_odds
from go_rl.solvers.draws.independent_draw import draw_independently, log_prob_within
from go_rl.solvers.draws.smoothed_order import chip_moments, order_of
from go_rl.solvers.network import Network, State
from go_rl.solvers.tree_search import EXHAUSTED, FOUND, NO_PROPOSAL, next_uniform, search

FAITH = 8.0
"""Log-odds that a chip loses, among the cuts of an order, for each chip of distance from the one
that FIX was asked for."""
NEAR = 0.01
"""Mean distance from the proposed chips at which FIX looks for nothing nearer."""
DOUBT = 1.0
"""Variance of the chips proposed to FIX, in chips^2: what cannot be kept is smoothed over edges."""


FULLY_SEARCHED = 2_000
"""Blocks: a contradiction takes time in proportion to them, and a search a second or two."""


@dataclass(frozen=True)
class SolverOptions:
    """Effort of the search."""

    quick_failures: int = 10
    """Contradictions before the tree search yields to cuts of a linear order."""
    full_failures: int = 20_000
    """Contradictions in the last attempt, when no linear order has a legal cut, of graphs with up
    to `FULLY_SEARCHED` blocks; of larger ones, fewer in proportion."""
    nodewise_failures: int = 200
    """Contradictions, node by node, before another start."""
    nodewise_starts: int = 5
    """Starts, node by node, before giving up; every second one leaves no gaps between chips."""
    threads: int | None = None
    """Threads for a batch; None: one for each core."""

    def most_failures(self, blocks: int) -> int:
        """Return the contradictions of the last attempt on a graph of this many blocks."""
        share = min(1.0, FULLY_SEARCHED / max(blocks, 1))
        return max(self.quick_failures, int(self.full_failures * share))

    def efforts(self, blocks: int) -> tuple[tuple[int, bool], ...]:
        """Return the failures of each start of the tree search, and whether it leaves no gaps."""
        quick = self.quick_failures
        return (quick, False), (quick, True), (self.most_failures(blocks), False)

    @property
    def nodewise_efforts(self) -> tuple[tuple[int, bool], ...]:
        """The same, node by node."""
        starts = range(self.nodewise_starts)
        return tuple((self.nodewise_failures, start % 2 == 1) for start in starts)


@dataclass
class Legal:
    """One legal partition, at the level of blocks."""

    chip: Int16[np.ndarray, "M"]
    mask: Int64[np.ndarray, "M"]
    """[M] chips among which each was drawn."""
    order: Int64[np.ndarray, "M"]
    """[M] the order that was cut; blocks as numbered otherwise."""
    means: Means
    log_prob: float


SearchVerdict = tuple[int, Legal | None]
"""A verdict of `search`, and the partition where there is one."""


class ProposalSearch:
    """Search that legalises one proposal after the other; belongs to one thread."""

    def __init__(self, net: Network, state: State, options: SolverOptions) -> None:
        """Args: ``state`` is at its root and returns there after every call."""
        self.net, self.state, self.options = net, state, options
        self.domain = state.domain
        self._efforts = options.efforts(len(net.weight))
        self._numbered = np.arange(len(net.weight))

    def sample(
        self, log_probs: Float64[np.ndarray, "M k"], uniform: bool, random: UInt64[np.ndarray, "1"]
    ) -> SearchVerdict:
        """Return a verdict and a draw; ``uniform``: cuts of a random order."""
        chip = np.zeros(len(log_probs), np.int16)
        if draw_independently(self.net, self.domain, log_probs, random, chip):
            _, kept = self._tree(chip, log_probs, 0, random)
            if kept is not None and (kept.chip == chip).all():
                return FOUND, self._untouched(kept, log_probs)
        order = (
            self._random_order(random) if uniform else order_of(self.net, *chip_moments(log_probs))
        )
        for cuts in self._cuts(order, log_probs, best=False):
            return FOUND, self._drawn(cuts, random)
        return self._stubborn(_no_proposal(log_probs), log_probs, random, self._efforts)

    def sample_nodewise(
        self, log_probs: Float64[np.ndarray, "M k"], random: UInt64[np.ndarray, "1"]
    ) -> SearchVerdict:
        """Return a verdict and a draw of one block after the other."""
        return self.fix_nodewise(_no_proposal(log_probs), log_probs, random)

    def fix_nodewise(
        self,
        proposal: Int16[np.ndarray, "M"],
        log_probs: Float64[np.ndarray, "M k"],
        random: UInt64[np.ndarray, "1"],
    ) -> SearchVerdict:
        """Return a verdict and [M] proposed chips where each is legal after those
        before; then the other blocks drawn one after the other."""
        return self._stubborn(proposal, log_probs, random, self.options.nodewise_efforts)

    def fix(
        self,
        proposal: Int16[np.ndarray, "M"],
        log_probs: Float64[np.ndarray, "M k"],
        random: UInt64[np.ndarray, "1"],
    ) -> SearchVerdict:
        """Return a verdict and the partition nearest to [M] proposed chips."""
        wanted = np.flatnonzero(proposal != NO_PROPOSAL)
        wish = proposal[wanted].astype(np.int64)
        verdict, kept = self._tree(proposal, log_probs, self.options.quick_failures, random)
        if verdict == EXHAUSTED:
            return verdict, None
        if kept is not None:
            distance = np.abs(kept.chip[wanted] - wish)
            if distance.sum() <= NEAR * len(proposal):
                complete = len(wanted) == len(proposal) and not distance.any()
                return FOUND, self._untouched(kept, log_probs) if complete else kept
        biased = log_odds(log_probs)
        biased[wanted] -= FAITH * np.abs(np.arange(self.net.chips) - wish[:, None])
        mean, variance = chip_moments(log_probs)
        mean[wanted], variance[wanted] = wish, DOUBT
        best = len(wanted) == len(proposal)
        for cuts in self._cuts(order_of(self.net, mean, variance), biased, best):
            found = self._drawn(cuts, random)
            if kept is None or _mass(biased, found.chip) > _mass(biased, kept.chip):
                kept = found
            break
        if kept is not None:
            return FOUND, kept
        return self._stubborn(proposal, log_probs, random, self._efforts)

    def likeliest(self, log_probs: Float64[np.ndarray, "M k"]) -> Legal | None:
        """Return the likeliest cuts of the order that the distributions suggest."""
        order = order_of(self.net, *chip_moments(log_probs))
        for cuts in self._cuts(order, log_probs, best=True):
            return self._drawn(cuts, np.zeros(1, np.uint64))
        return None

    def _random_order(self, random: np.ndarray) -> Int64[np.ndarray, "M"]:
        """Return a topological order by random scores: depth first, or smoothed over edges."""
        net, blocks = self.net, len(self._numbered)
        score = np.array([net.chips * next_uniform(random) for _ in range(blocks)])
        if next_uniform(random) < 0.5:
            found = depth_first_order(net.pred_ptr, net.succ_ptr, net.succ, score)
            return found.astype(np.int64)
        return order_of(net, score, np.full(blocks, net.chips**2 / 12))

    def _cuts(
        self, first: Int64[np.ndarray, "M"], log_probs: np.ndarray, best: bool
    ) -> Iterator[CutDistribution]:
        """Yield what has legal cuts of an order, and of the blocks as numbered."""
        for order in (first, self._numbered):
            cuts = CutDistribution(self.net, order, self.domain, log_probs, best)
            if cuts.log_partition > -np.inf:
                yield cuts

    def _drawn(self, cuts: CutDistribution, random: np.ndarray) -> Legal:
        chip = np.empty(len(cuts.order), np.int16)
        log_prob = cuts.draw(random, chip)
        return Legal(chip, self.domain.copy(), cuts.order, Means.CUTS, log_prob)

    def _untouched(self, kept: Legal, log_probs: np.ndarray) -> Legal:
        log_prob = log_prob_within(log_probs, self.domain, kept.chip)
        return Legal(kept.chip, self.domain.copy(), kept.order, Means.INDEPENDENT, log_prob)

    def _stubborn(
        self,
        proposal: np.ndarray,
        log_probs: np.ndarray,
        random: np.ndarray,
        efforts: Sequence[tuple[int, bool]],
    ) -> SearchVerdict:
        """Tree search, started anew for each effort: failures, and whether it leaves no gaps to be
        filled later. Without gaps it proves nothing."""
        verdict, found = EXHAUSTED, None
        for failures, tight in efforts:
            verdict, found = self._tree(proposal, log_probs, failures, random, tight)
            if verdict == FOUND or (verdict == EXHAUSTED and not tight):
                break
        return verdict, found

    def _tree(
        self,
        proposal: np.ndarray,
        log_probs: np.ndarray,
        failures: int,
        random: np.ndarray,
        tight: bool = False,
    ) -> SearchVerdict:
        blocks = len(proposal)
        chip, mask = np.zeros(blocks, np.int16), np.zeros(blocks, np.int64)
        verdict = search(
            self.net, self.state, log_probs, proposal, self._numbered, (failures, tight), random,
            (chip, mask),
        )  # fmt: skip
        if verdict != FOUND:
            return verdict, None
        log_prob = log_prob_within(log_probs, mask, chip)
        return verdict, Legal(chip, mask, self._numbered, Means.TREE, log_prob)


def _mass(log_probs: np.ndarray, chip: np.ndarray) -> float:
    return float(log_probs[np.arange(len(chip)), chip].sum())


def _no_proposal(log_probs: np.ndarray) -> Int16[np.ndarray, "M"]:
    return np.full(len(log_probs), NO_PROPOSAL, np.int16)
