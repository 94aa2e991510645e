"""Weights of the transfer tuner that ship, learned from the data set that ships.

Run: ``python -m experiments programs.transfer_weights``. Tasks are hidden: `go-rl tune programs`
knows statements of operators and no named sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from experiments.experiment import Script, say_loss
from experiments.programs.pruning import prune
from experiments.tuning.guided.transfer_runs import hidden
from experiments.tuning.guided.tuning_transfer import SIZES
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.tuning.tvm.tune_network import TRANSFER_WEIGHTS


@dataclass(frozen=True)
class TransferWeights(Script):
    """Options of the script."""

    data: str = "programs-1"
    epochs: int = 30
    seed: int = 0

    def run(self) -> None:
        """Train and write."""
        examples = read_examples(self.data)
        examples = examples.take(prune(examples).rows)
        examples = replace(examples, inputs=hidden(examples.inputs))
        run = TunerRun(epochs=self.epochs, batch=64, seed=self.seed)
        TransferTuner.fit(examples, run, SIZES, say_loss).save(TRANSFER_WEIGHTS)
