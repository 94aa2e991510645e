"""What a search remembers of its best decisions."""

import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.policy.learn.config import FineTuneConfig
from go_rl.policy.learn.memory import Memory
from go_rl.policy.learn.ppo import Batch, SampleGroup
from go_rl.policy.ring.order_decoder import OrderActions

GRAPH = jraph.GraphsTuple(None, None, None, None, None, np.zeros(1), np.zeros(1))


def batch(first: float, size: int = 3) -> Batch:
    """Decisions first, first + 1, ..."""
    mix = jnp.arange(first, first + size)[:, None]
    actions = {"placement": OrderActions(mix, jnp.zeros((size, 1, 2)))}
    return Batch(GRAPH, jnp.ones(2), jnp.int32(2), {"plan": SampleGroup(actions, jnp.zeros(size))})


def test_the_first_batch_stands_alone_and_the_best_of_all_come_with_the_next():
    memory = Memory(2)
    first, second = batch(0.0), batch(10.0)
    assert memory.lessons(first, np.array([-1.0, -3.0, -2.0])) == [first]
    fresh, best = memory.lessons(second, np.array([-2.5, -0.5, -1.0]))
    assert fresh is second
    assert np.asarray(best.groups["plan"].actions["placement"].mix).ravel().tolist() == [11.0, 0.0]
    assert best.groups["plan"].advantage.tolist() == [1.0, 1.0]


def test_the_earlier_of_equals_is_kept():
    memory = Memory(1)
    memory.lessons(batch(0.0), np.full(3, -1.0))
    _, best = memory.lessons(batch(10.0), np.full(3, -1.0))
    assert np.asarray(best.groups["plan"].actions["placement"].mix).ravel().tolist() == [0.0]


def test_nothing_is_remembered_without_room():
    memory, drawn = Memory(0), batch(0.0)
    for _ in range(2):
        assert memory.lessons(drawn, np.zeros(3)) == [drawn]
    with pytest.raises(TrainingError, match="remembered must be >= 0, not -1"):
        FineTuneConfig(remembered=-1)
