"""Imitation by ring policies: what is imitated is what is drawn, and plans only improve."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from policy.tiny import chain, lattice, tiny_agent

from go_rl.core import CheckpointError
from go_rl.policy.learn.config import RING_IMITATION
from go_rl.policy.learn.ring_imitation.lesson import RingLesson, imitate
from go_rl.policy.learn.ring_imitation.teachers import RingTeacher, explored, first_ring_teacher
from go_rl.policy.ring.ring_plans import RingPlans

QUICK = replace(RING_IMITATION, updates=120, problems=1, learning_rate=1e-2, astray=0.0)


@cache
def decoder() -> RingPlans:
    return RingPlans(chain(8))


def lesson(mix: float = 1.0, taught: bool = True) -> RingLesson:
    """Five units on the first chip, the others one by one: not the even cuts that an untrained
    policy proposes."""
    width = tiny_agent().params["params"]["order"]["mix_mean"]["bias"].shape[0]
    chip = np.array([0, 0, 0, 0, 0, 1, 2, 3], np.int16)
    return RingLesson("chain", decoder(), chip, np.full((2, width), mix, np.float32), taught)


@pytest.mark.slow
def test_imitated_chips_become_the_likeliest():
    learned, losses = imitate(tiny_agent(), [lesson()], QUICK, 0)
    actions, _ = decoder().sample(learned, "placement", np.zeros(1, np.float32), 0)
    proposed = decoder().proposals(actions, np.zeros(1, np.float32))["log_probs"][0].argmax(-1)
    assert proposed.tolist() == lesson().chip.tolist()
    assert losses[-10:].mean() < losses[:5].mean()


@pytest.mark.slow
def test_teachers_only_improve_and_survive_the_file(tmp_path: Path):
    uneven = RingPlans(lattice(1))
    first = first_ring_teacher(uneven, None, 0)
    later = explored(tiny_agent(), uneven, first, 16, 0)
    assert later.seconds <= first.seconds
    assert (np.diff(later.mix_seconds) >= 0).all()
    path = tmp_path / "a.npz"
    later.save(path)
    again = RingTeacher.load(path)
    assert again.seconds == later.seconds
    assert (again.chip == later.chip).all()
    price = uneven.workspace.pricer.price(uneven.workspace.nodes_of(again.chip[None]))
    assert price[0][0] == pytest.approx(again.seconds)
    path.write_bytes(b"no plan")
    with pytest.raises(CheckpointError, match="delete it"):
        RingTeacher.load(path)
