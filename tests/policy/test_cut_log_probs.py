"""Log-probabilities of cuts as the learner sees them, against the solver's and its marginals."""

import jax
import jax.numpy as jnp
import numpy as np
from reference.cuts import cut_log_probs as every_log_prob
from reference.cuts import legal_cuts
from reference.random_rings import random_ring

from go_rl.policy.ring.cut_log_probs import CutWindows, cut_log_probs
from go_rl.solvers import ring_instance
from go_rl.solvers.draws.cut_distribution import CutDistribution
from go_rl.solvers.network import Network

PADDED, CHIPS = 16, 6
"""Sizes of the padded arrays: more than any of the problems has."""


def padded_windows(net: Network, order: np.ndarray, cuts: CutDistribution) -> CutWindows:
    units, chips = len(order), net.chips
    last = np.full((CHIPS, PADDED), -1)
    last[:chips, :units] = cuts.last
    final = np.zeros(CHIPS, np.bool_)
    final[:chips] = not net.all_chips
    final[chips - 1] = True
    extra = np.arange(units, PADDED)
    return CutWindows(
        jnp.asarray(np.r_[order, extra]), jnp.asarray(np.r_[cuts.first, extra + 1]),
        jnp.asarray(last), jnp.int32(units), jnp.asarray(final),
    )  # fmt: skip


def padded_log_probs(log_probs: np.ndarray) -> jax.Array:
    found = np.zeros((PADDED, CHIPS), np.float32)
    found[: log_probs.shape[0], : log_probs.shape[1]] = log_probs
    return jnp.asarray(found)


def starts(order: np.ndarray, chip: np.ndarray) -> jax.Array:
    """The first position of each piece, then the number of units."""
    found = np.searchsorted(chip[order], np.arange(CHIPS + 1))
    return jnp.asarray(found)


def test_its_gradient_is_the_plan_less_the_marginals():
    random = np.array([3], np.uint64)
    slope = jax.jit(jax.grad(lambda *given: cut_log_probs(*given).sum()))
    compared = 0
    for seed in range(60, 110):
        net = ring_instance(random_ring(seed)).net
        rng = np.random.default_rng(seed)
        order = np.arange(len(net.weight))
        log_probs = rng.standard_normal((len(order), net.chips))
        every = list(legal_cuts(net, order, net.start))
        if not every:
            continue
        cuts = CutDistribution(net, order, net.start, log_probs)
        chip = np.zeros(len(order), np.int16)
        cuts.draw(random, chip)
        weights = np.exp(every_log_prob(net, order, log_probs, net.start))
        marginal = sum(w * one_hot(c, net.chips) for w, c in zip(weights, every, strict=True))
        expected = one_hot(chip, net.chips) - marginal / weights.sum()
        found = slope(
            padded_log_probs(log_probs), padded_windows(net, order, cuts), starts(order, chip)
        )
        assert np.isfinite(np.asarray(found)).all()
        np.testing.assert_allclose(found[: len(order), : net.chips], expected, atol=1e-4)
        assert not np.asarray(found)[len(order) :].any()
        compared += 1
    assert compared > 20


def one_hot(chip: np.ndarray, chips: int) -> np.ndarray:
    return np.eye(chips)[chip]
