"""Rewards by name, by hand."""

import numpy as np
import pytest

from go_rl.core import EnvironmentUseError
from go_rl.envs.config import check_reward
from go_rl.envs.rewards import REWARDS

SECONDS = np.array([1.0, 4.0, np.inf])


@pytest.mark.parametrize(
    ("name", "earned"),
    [
        ("speed-up", [4.0, 1.0, -10.0]),
        ("log-speed-up", [np.log(4.0), 0.0, -2.0]),
        ("root", [-0.5, -1.0, -10.0]),
    ],
)
def test_each_compares_with_the_reference(name, earned):
    assert REWARDS[name](SECONDS, 4.0).tolist() == pytest.approx(earned)
    assert REWARDS[name](SECONDS, 4.0, -7.0).tolist() == pytest.approx([*earned[:2], -7.0])


def test_bad_rewards_are_refused():
    with pytest.raises(EnvironmentUseError, match=r"unknown reward 'rot'; did you mean 'root'\?"):
        check_reward("rot", None)
    with pytest.raises(EnvironmentUseError, match="failure_reward must be finite, not nan"):
        check_reward("root", float("nan"))
