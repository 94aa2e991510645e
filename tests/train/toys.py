"""What the tests of training share, so that they share compilations, too."""

from __future__ import annotations

import pytest
from policy.tiny import TINY, chain, lattice

from go_rl.train import problems
from go_rl.train.collect import Case
from go_rl.train.config import PPOConfig, SampleConfig, TrainConfig

PPO = PPOConfig(learning_rate=1e-3, epochs=2)
SAMPLES = SampleConfig(orders=4, placements=4)
CONFIG = TrainConfig(
    name="toy",
    updates=4,
    graphs=1,
    samples=SAMPLES,
    ppo=PPO,
    policy=TINY,
    validate_every=2,
    checkpoint_every=2,
)


def toy_zoo(patch: pytest.MonkeyPatch) -> None:
    """Let a run draw from two small problems instead of the zoo's."""
    names = {"train": ["lattice", "chain"], "validation": ["chain"]}

    def case(name: str, hardware: str, rules: str, cost: str) -> Case:
        return Case(name, lattice(1, rules="relay") if name == "lattice" else chain(9))

    patch.setattr(problems, "_small", lambda split, max_nodes: names[split])
    patch.setattr(problems, "_case", case)
