"""CDMPP's scores of recorded candidates, for ``experiments.tuning.guided.schedule_search``.

Run: ``python -m experiments.tuning.guided.cdmpp_scores RECORDS --network bert-tiny`` with the
folder that ``record_pools`` wrote; writes pools and scores into it. Three predictors: one that
learned the data set that ships without any operator of the network (``held-out``), its network
before any update (``untrained``), and the weights that ship (``shipped``), which saw a few
candidates of these operators.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from experiments.experiment import Script, say_loss
from experiments.tuning.guided.recorded_programs import RecordedPrograms, recorded_programs
from experiments.tuning.guided.schedule_search import save_scores
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.workloads import TensorTask
from go_rl.tuning.pools.candidate_pool import ENDING

HELD_OUT, UNTRAINED, SHIPPED = "held-out", "untrained", "shipped"
TOGETHER, REPEATS = 32, 20
"""Programs that are scored at once, and how often, where the time of scoring is taken."""


@dataclass(frozen=True)
class CdmppScores(Script):
    """Options of the script."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Of the records; pools and scores go there."""
    network: str = "bert-tiny"
    data: str = "programs-1"
    """Data set, and weights that ship."""
    steps: int = 2500
    """Updates of each network that is trained here."""
    members: int = 2
    """Networks of the ensemble that is trained here."""

    def run(self) -> None:
        """Write pools, weights and scores."""
        recorded = recorded_programs(self.folder, self.network)
        recorded.pools.save(self.folder / f"{self.network}{ENDING}")
        print(f"{recorded.pools.candidates} candidates, {recorded.failed} failed", flush=True)
        for name in (SHIPPED, HELD_OUT, UNTRAINED):
            _write(name, _predictor(name, recorded, self), recorded, self)


def without(examples: ProgramExamples, tasks: tuple[TensorTask, ...]) -> ProgramExamples:
    """Return the examples of other tasks."""
    own = [i for i, task in enumerate(examples.inputs.tasks) if task in set(tasks)]
    return examples.take(np.flatnonzero(~np.isin(examples.inputs.task, own)))


def _predictor(name: str, recorded: RecordedPrograms, options: CdmppScores) -> ProgramPredictor:
    """Return a predictor; one that was trained here before is read."""
    if name == SHIPPED:
        return ProgramPredictor.load(options.data)
    steps = options.steps if name == HELD_OUT else 0
    path = options.folder / f"cdmpp-{name}-{options.network}-{steps}.npz"
    if not path.exists():
        examples = without(read_examples(options.data), recorded.tasks)
        config = ProgramTrainConfig(steps=max(steps, 1), learning_rate=2e-3 if steps else 1e-12)
        print(f"{name}: {len(examples.seconds)} programs to learn from", flush=True)
        ProgramPredictor.fit(examples, config, options.members, say_loss).save(path)
    return ProgramPredictor.load(path)


def _write(
    name: str, predictor: ProgramPredictor, recorded: RecordedPrograms, options: CdmppScores
) -> None:
    scores = [predictor.predict(programs) for programs in recorded.programs]
    keys = np.concatenate([pool.keys for pool in recorded.pools.pools])
    took = _seconds_each(predictor, recorded)
    save_scores(options.folder / f"scores-{name}.npz", keys, np.concatenate(scores), took)
    print(f"{name}: {1e3 * took:.3f} ms a program", flush=True)


def _seconds_each(predictor: ProgramPredictor, recorded: RecordedPrograms) -> float:
    """Return CPU seconds that the score of a program takes, `TOGETHER` scored at once."""
    some = recorded.programs[0].take(np.arange(TOGETHER) % recorded.programs[0].num_programs)
    predictor.predict(some)
    began = time.process_time()
    for _ in range(REPEATS):
        predictor.predict(some)
    return (time.process_time() - began) / (REPEATS * TOGETHER)


if __name__ == "__main__":
    CdmppScores.main()
