"""Weights of CDMPP that ship, learned from the data set that ships.

Run: ``python -m experiments.programs.cdmpp.weights``, then with ``--go-on``. All networks are
learned from; a tenth of the tasks is not, and gives the interval and the errors of the model card.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import Script, say_loss
from go_rl.costs.learning.metrics import latency_metrics
from go_rl.costs.learning.splits import by_task
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.learn.weights_file import SHIPPED

OTHER_BATCHES = 100
"""Seed of the batches of further training."""


@dataclass(frozen=True)
class WeightsExperiment(Script):
    """Options of this script."""

    data: str = "programs-1"
    """Data set, and name of the weights."""
    steps: int = 2500
    """Updates of each network."""
    members: int = 3
    """Networks."""
    go_on: bool = False
    """Train those that ship further, by so many updates, instead of new ones."""

    def run(self) -> None:
        """Train and write."""
        examples = read_examples(self.data)
        inputs = examples.inputs
        split = by_task(inputs.task)
        learned_from = examples.take(np.concatenate([split.train, split.validation]))
        judged = examples.take(split.test)
        config = ProgramTrainConfig(steps=self.steps)

        if self.go_on:
            start = ProgramPredictor.load(self.data)
            learned = start.fine_tuned(
                learned_from, None, replace(config, seed=OTHER_BATCHES), say_loss, judged
            )
        else:
            learned = ProgramPredictor.fit(learned_from, config, self.members, say_loss, judged)
        known = judged.take(
            np.flatnonzero(np.isin(judged.inputs.leaves, learned_from.inputs.leaves))
        )
        found = learned.predict(known.inputs)
        group = known.inputs.task * len(inputs.targets) + known.inputs.target
        errors = latency_metrics(found, known.seconds, group)
        errors |= {"programs": len(known.seconds), "tasks": len(np.unique(known.inputs.task))}
        card = {**learned.card, "judged": errors}
        SHIPPED.mkdir(exist_ok=True)
        replace(learned, name=self.data, card=card).save(SHIPPED / f"{self.data}.npz")
        print(errors)


if __name__ == "__main__":
    WeightsExperiment.main()
