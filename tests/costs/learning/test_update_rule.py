"""`UpdateRule`: what a weight decay does under each optimiser."""

import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.costs.learning.training import UpdateRule
from go_rl.costs.programs.learn.training import NAMED_RUNS


@pytest.mark.parametrize(
    ("optimizer", "change"), [("adamw", -0.1 * 0.5 * 4.0), ("adam", -0.1), ("sgd", -0.1 * 2.0)]
)
def test_decay_is_of_the_weight_or_of_the_gradient(optimizer, change):
    """A weight of 4, no gradient, a decay of 0.5 and a rate of 0.1: AdamW takes 0.1 · 0.5 · 4 of
    it; the others see a gradient of 2, of which Adam's first step is the rate alone."""
    rule = UpdateRule(1, 0.1, 0.5, optimizer, "constant").transformation()
    weights, nothing = jnp.array([4.0]), jnp.zeros(1)
    found, _ = rule.update(nothing, rule.init(weights), weights)
    assert np.asarray(found)[0] == pytest.approx(change, rel=1e-5)


def test_the_papers_run_has_its_table():
    run = NAMED_RUNS["paper"]
    assert (run.batch, run.learning_rate, run.weight_decay) == (600, 1.68e-5, 0.0013)
    assert (run.rule.optimizer, run.rule.schedule, run.cmd_weight) == ("adam", "cyclic", 1.0)
