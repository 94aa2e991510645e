"""The placement task's distribution, and exact credit through the solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY, lattice, lively_agent, small_padded
from rounding import assert_rounded_alike

from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.config import MAX_CHIPS
from go_rl.policy.network import Policy
from go_rl.policy.ring.cut_log_probs import blank_windows
from go_rl.policy.ring.placement_decoder import PlacementActions
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.ring.ring_policy import RingPolicy
from go_rl.solvers import Means

KEY = jax.random.key(7)
UNITS, CHIPS, BATCH = 24, 3, 4


@pytest.fixture(scope="module")
def judge():
    """Log-probabilities of placements, compiled once."""

    def log_prob(params, encoded, graph, chosen, possible):
        windows = jax.tree.map(jnp.asarray, blank_windows(len(chosen), chosen.shape[-1], MAX_CHIPS))
        cuts = jnp.zeros((len(chosen), MAX_CHIPS + 1), jnp.int32)
        by_cuts = jnp.zeros(len(chosen), jnp.bool_)
        actions = PlacementActions(chosen, possible, by_cuts, windows, cuts)
        return judge_actions(params, encoded, graph, actions)

    return log_prob


@jax.jit
def judge_actions(params, encoded, graph, actions):
    return RingPolicy(TINY).apply(params, encoded, graph, "placement", actions, method=Policy.judge)


def placements(agent, padded, encoded, noise):
    """Placements as drawn, before the solver."""
    return agent.draw(padded, encoded, ("placement",), KEY, noise)["placement"]


@pytest.fixture(scope="module")
def drawn():
    """A graph, its encoding and four placements, the last without noise."""
    agent, padded = lively_agent(), small_padded(0, UNITS)
    encoded = agent.encode(padded)
    noise = np.array([1.0, 1.0, 1.0, 0.0], np.float32)
    return agent, padded, encoded, placements(agent, padded, encoded, noise)


def everything(padded) -> jax.Array:
    """Masks that allow every chip of the hardware."""
    shape = (BATCH, len(padded.real), MAX_CHIPS)
    return jnp.asarray(np.broadcast_to(np.arange(MAX_CHIPS) < padded.num_devices, shape))


def test_chips_beyond_the_package_are_impossible(drawn):
    _, _, _, placed = drawn
    probability = np.exp(np.asarray(placed.log_probs, np.float64))
    assert probability[..., CHIPS:].max() == 0.0
    np.testing.assert_allclose(probability[..., :CHIPS].sum(axis=-1), 1.0, rtol=1e-5)
    assert np.asarray(placed.chosen).max() == CHIPS - 1


def test_fix_credits_the_proposal_in_full(drawn, judge):
    """With every chip possible, the last log-probability is that of the drawn chip."""
    agent, padded, encoded, placed = drawn
    found, unsure = judge(agent.params, encoded, padded.graph, placed.chosen, everything(padded))
    rows = np.asarray(placed.log_probs)
    last = np.asarray(placed.chosen)[:, -1]
    expected = np.take_along_axis(rows, last[..., None], -1)[..., 0]
    assert_rounded_alike(found.chips.chosen[:, -1], expected)
    entropy = -(np.exp(rows) * rows).sum(axis=-1)
    assert float(unsure) == pytest.approx(entropy[:, :UNITS].mean(), rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"colocation": [0, -1, 0, 1, -1, 1, *[-1] * 6]}])
@pytest.mark.parametrize("rules", ["relay", "strict"])
def test_credit_is_what_the_solver_says_its_samples_are_worth(rules, options):
    """The log-probabilities of the last iteration, chips or pieces, sum to `Samples.log_prob`."""
    problem = lattice(2, chips=CHIPS, rules=rules, **options)
    workspace, agent = RingWorkspace(problem), lively_agent()
    decoder = RingPlans(problem, workspace)
    padded, noise = decoder.padded, np.ones(16, np.float32)
    encoded = agent.encode(padded)
    actions = decoder.draw(agent, encoded, "placement", noise, KEY)
    rollouts = decoder.price(decoder.proposals(actions, noise), 3)
    drawn = rollouts.drawn
    assert drawn is not None
    assert drawn.ok.all()
    assert (drawn.means == Means.CUTS).any()
    credited = decoder.credit(actions, rollouts)["placement"]
    judged, _ = judge_actions(agent.params, encoded, padded.graph, credited)
    (chips, weight), (pieces, there) = judged.parts(jnp.asarray(padded.real))
    claimed = (chips * weight)[:, -1].sum(-1) + (pieces * there).sum(-1)
    np.testing.assert_allclose(np.asarray(claimed), drawn.log_prob, atol=1e-3)
    by_cuts = drawn.means == Means.CUTS
    assert not np.asarray(weight)[by_cuts, -1].any()
    assert (np.asarray(there).sum(-1) > 0).tolist() == by_cuts.tolist()
