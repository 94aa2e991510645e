"""What the tests of training share, so that they share compilations, too."""

from __future__ import annotations

from policy.tiny import TINY, chain, lattice

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


class ToyProblems:
    """Two small problems in turn, in place of the zoo's."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.cases = [Case("lattice", lattice(1, rules="relay")), Case("chain", chain(9))]

    def draw(self, step: int) -> list[Case]:
        return [self.cases[step % 2]]

    def validation_cases(self):
        yield self.cases[1]
