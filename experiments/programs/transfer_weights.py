"""Weights of the transfer tuner that ship, learned from the data set that ships.

Run: ``python -m experiments.programs.transfer_weights``. Tasks are hidden: `go-rl tune programs`
knows statements of operators and no named sizes. All tasks are learned from; what the tuner is
worth on others, ``experiments.tuning.guided.tuning_transfer`` tells, with tuners that did not see
them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from experiments.pages import run_script
from experiments.programs.pruning import prune
from experiments.tuning.guided.transfer_runs import hidden
from experiments.tuning.guided.tuning_transfer import SIZES
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.tuning.loop.reuse.registry import WEIGHTS


@dataclass(frozen=True)
class Options:
    """Options of the script."""

    data: str = "programs-1"
    epochs: int = 30
    seed: int = 0


def main(options: Options) -> None:
    """Train and write."""
    examples = read_examples(options.data)
    examples = examples.take(prune(examples).rows)
    examples = replace(examples, inputs=hidden(examples.inputs))
    run = TunerRun(epochs=options.epochs, batch=64, seed=options.seed)

    def report(update: int, loss: float) -> None:
        print(update, f"{loss:.4f}", flush=True)

    TransferTuner.fit(examples, run, SIZES, report).save(WEIGHTS)


if __name__ == "__main__":
    run_script(main, Options, __doc__)
