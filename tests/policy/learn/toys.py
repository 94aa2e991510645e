"""What the tests of training share, so that they share compilations, too."""

import pytest
from policy.tiny import TINY, chain, lattice

from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.learn.collect import TrainingCase
from go_rl.policy.learn.config import PPOConfig, RingTrainConfig
from go_rl.policy.learn.problems import ring
from go_rl.policy.ring.ring_plans import RingPlans

PPO = PPOConfig(learning_rate=1e-3, epochs=2)
CONFIG = RingTrainConfig(
    name="toy",
    updates=4,
    problems=1,
    samples=4,
    solver="sample",
    ppo=PPO,
    policy=TINY,
    validate_every=2,
    checkpoint_every=2,
)


def toy_zoo(patch: pytest.MonkeyPatch) -> None:
    """Let a run draw from two small problems instead of the zoo's."""
    names = {"train": ["lattice", "chain"], "validation": ["chain"]}

    def case(name: str, hardware: str, rules: str, cost: str, solver: str) -> TrainingCase:
        problem = lattice(1, rules="relay") if name == "lattice" else chain(9)
        return TrainingCase(name, RingPlans(problem, RingWorkspace(problem), solver))

    patch.setattr(ring, "small_graphs", lambda split, max_nodes: names[split])
    patch.setattr(ring, "graph_size", len)
    patch.setattr(ring, "ring_case", case)
