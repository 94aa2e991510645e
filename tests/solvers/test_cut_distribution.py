"""The cuts of one order: log Z, frequencies, likeliest cuts and marginals against enumeration."""

import numpy as np
import pytest
from reference.cuts import cut_log_probs, legal_cuts
from reference.random_rings import random_ring
from reference.small_rings import ring_problem

from go_rl.core.graph.list_order import list_order
from go_rl.solvers import ring_instance
from go_rl.solvers.draws.cut_distribution import CutDistribution
from go_rl.solvers.network import Network


def networks(count: int, first: int = 0) -> list[tuple[int, Network]]:
    """Networks of small random problems, with all combinations of rules and memory."""
    made = [(seed, ring_instance(random_ring(seed)).net) for seed in range(first, first + count)]
    return [(seed, net) for seed, net in made if len(net.weight)]


def some_order(net: Network, rng: np.random.Generator) -> np.ndarray:
    return list_order(net.pred_ptr, net.succ_ptr, net.succ, rng.random(len(net.weight)))


def log_probs_of(net: Network, rng: np.random.Generator) -> np.ndarray:
    return 3.0 * rng.standard_normal((len(net.weight), net.chips))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("domains", ["all chips", "at the root"])
def test_the_mass_of_all_cuts_equals_enumeration(domains):
    without = 0
    for seed, net in networks(150):
        rng = np.random.default_rng(seed)
        order, log_probs = some_order(net, rng), log_probs_of(net, rng)
        everything = np.full(len(order), (1 << net.chips) - 1)
        domain = net.start if domains == "at the root" else everything
        every = cut_log_probs(net, order, log_probs, domain)
        found = CutDistribution(net, order, domain, log_probs).log_partition
        best = CutDistribution(net, order, domain, log_probs, best=True).log_partition
        if len(every):
            assert found == pytest.approx(np.logaddexp.reduce(every), abs=1e-9), seed
            assert best == pytest.approx(every.max(), abs=1e-9), seed
        else:
            assert found == best == -np.inf, seed
            without += 1
    assert 5 < without < 100


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_draws_follow_the_product_of_the_distributions():
    """Chi-squared over all cuts, and the log-probability that each draw claims."""
    random = np.array([1], np.uint64)
    checked = 0
    for seed, net in networks(60, first=300):
        rng = np.random.default_rng(seed)
        order, log_probs = some_order(net, rng), 0.3 * log_probs_of(net, rng)
        every = [tuple(chip.tolist()) for chip in legal_cuts(net, order, net.start)]
        if not 2 <= len(every) <= 12:
            continue
        mass = cut_log_probs(net, order, log_probs, net.start)
        expected = dict(zip(every, np.exp(mass - np.logaddexp.reduce(mass)), strict=True))
        cuts = CutDistribution(net, order, net.start, log_probs)
        chip, seen = np.zeros(len(order), np.int16), dict.fromkeys(every, 0)
        for _ in range(2_000):
            claimed = cuts.draw(random, chip)
            drawn = tuple(chip.tolist())
            seen[drawn] += 1
            assert claimed == pytest.approx(np.log(expected[drawn]), abs=1e-9)
        for chips, times in seen.items():
            mean = 2_000 * expected[chips]
            assert abs(times - mean) <= 5 * np.sqrt(mean) + 1, (seed, chips)
        checked += 1
    assert checked > 10


def test_probability_zero_everywhere_is_drawn_where_it_must_be():
    """Two blocks of a chain on all of two chips: 0 then 1, though block 0 never wants chip 0."""
    net = ring_instance(ring_problem(2, [(0, 1)], 2, all_chips=True)).net
    log_probs = np.array([[-np.inf, 0.0], [0.0, 0.0]])
    cuts = CutDistribution(net, np.arange(2), np.full(2, 3), log_probs)
    chip = np.zeros(2, np.int16)
    assert cuts.draw(np.array([5], np.uint64), chip) == pytest.approx(0.0)
    assert chip.tolist() == [0, 1]
