"""`calibrate_programs`: a predictor of tensor programs, fine-tuned to this machine's processor.

Tasks are chosen by k-means among those of a data set that ships (CDMPP, algorithm 1), random
schedules of each are built by TVM and timed here, and the weights learn on with them and with what
they learned from (section 5.3).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.api.progress import Progress, ignore
from go_rl.api.this_device import check_core, records_beside
from go_rl.core import TrainingError
from go_rl.core.config_checks import PART, SEED, Range, check_ranges
from go_rl.core.files.run_lock import locked
from go_rl.core.hardware.processor import own_target
from go_rl.costs.timing.config import FEW_VISITS, ProgramsConfig, ProgramTiming, SamplingConfig

if TYPE_CHECKING:
    from go_rl.costs.programs.learn.code_trees import ProgramTrees
    from go_rl.costs.programs.learn.examples import ProgramExamples
    from go_rl.costs.programs.learn.predictor import ProgramPredictor
    from go_rl.costs.programs.workloads import TensorTask

SOURCE = "programs-1"
"""Data set which networks learn again."""
STARTS_WITH = "programs-5"
"""Weights that ship: trees that learned all data sets."""
CHOOSES_FROM = ("programs-3", "programs-4")
"""Data sets among whose tasks is chosen."""
JUDGED = 4
"""One timed task in this many is held out, to measure errors."""
LEAST_TASKS = 8
"""Least tasks timed from which something is learned."""
SMALLEST = 2
"""Tasks of the fewest FLOP that are timed besides."""


@dataclass(frozen=True)
class CalibrateProgramsConfig:
    """Programs to time, and for how long."""

    minutes: float = 20.0
    """Minutes after which no further tensor task is begun."""
    tasks: int = 32
    """Tensor tasks to time, chosen by k-means."""
    candidates: int = 8
    """Random candidates of each tensor task, beside its loops as they are."""
    weights: str = STARTS_WITH
    """Weights of a predictor of seconds that are fine-tuned, by name or path."""
    most_away: float = 0.7
    """Programs are not learned from while whose timing others had the core for a larger share; on a
    machine with other work, 1."""
    core: int | None = None
    """Core that measures. Default: the last one of this process."""
    seed: int = 0
    """Random seed of the choice and of the candidates."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "calibrate", TrainingError, minutes=Range(0, 24 * 60, above=True),
            tasks=Range(LEAST_TASKS), candidates=Range(2), most_away=PART, seed=SEED,
        )  # fmt: skip

    def measuring(self, level: str) -> ProgramsConfig:
        """Return the configuration of the measurement for a level of x86-64."""
        return ProgramsConfig(
            candidates=self.candidates, codegen=(level,), core=self.core, seed=self.seed,
            timing=ProgramTiming(**asdict(FEW_VISITS)),
        )  # fmt: skip


@dataclass(frozen=True)
class CalibratedPrograms:
    """Result of `calibrate_programs`."""

    path: Path
    programs: int
    tasks: int
    """Programs and tasks that were timed and have a time."""
    before: float
    after: float
    """Mean absolute percentage errors on the programs of the tasks that judge, of the weights given
    and of those written."""


def calibrate_programs(
    out: str | Path | None = None,
    config: CalibrateProgramsConfig | None = None,
    *,
    report: Progress = ignore,
) -> CalibratedPrograms:
    """Time programs on this machine, chosen to resemble all, and write weights that learned from
    them. What was timed before is not timed again.

    Args:
        out: ``.npz`` to be written, beside a folder of the records; None:
            `go_rl.costs.programs.learn.program_weights.this_machine_weights`.
        config: what is timed, and for how long.
        report: called with the tasks done, all of them and a sentence.

    Raises:
        TrainingError: the name of the file is another, this process may not use the core, or
            too few tasks have a time.
        MissingDependencyError: TVM is not installed.
        RecordError: nothing can be measured here.
        WorkerError: the core cannot be had.
        CheckpointError: weights cannot be read, or the file cannot be written.
        RunLockError: another run writes it.
    """
    from go_rl.costs.programs.learn.program_weights import (
        predictor_of_seconds,
        this_machine_weights,
    )
    from go_rl.costs.programs.learn.reading import read_examples
    from go_rl.costs.timing.tvm_calls import import_tvm
    from go_rl.tuning.tvm.codegen import level_of

    config, path = config or CalibrateProgramsConfig(), Path(out or this_machine_weights())
    check_core(config.core)
    records = records_beside(path)
    with locked(path, file=True):
        start = predictor_of_seconds(config.weights)
        import_tvm()
        chosen = chosen_tasks(read_examples(CHOOSES_FROM), config)
        measured = _measured(chosen, records, config, level_of(""), report)
        report(len(chosen), len(chosen), "learning from what was timed")
        tuned, errors = tuned_weights(start, measured, config.seed)
        tuned.save(path)
        return CalibratedPrograms(path, len(measured.seconds), _tasks(measured), *errors)


def chosen_tasks(source: ProgramExamples, config: CalibrateProgramsConfig) -> dict[TensorTask, str]:
    """Return the tasks to be timed, each with a network: the `SMALLEST`, which tell how long
    parallel loops take to enter, and then those of the largest clusters."""
    import numpy as np

    from go_rl.costs.programs.learn.choose_programs import program_features, select_tasks

    inputs, most = source.inputs, SamplingConfig.most_flops
    fit = [task is not None and task.flops <= most for task in inputs.tasks]
    some = inputs.take(np.flatnonzero(np.array(fit)[inputs.task]))
    count = min(config.tasks, len(np.unique(some.task)))
    numbers = select_tasks(program_features(some), some.task, count, config.seed).tolist()
    flops = {number: task.flops for number in np.unique(some.task).tolist()
             if (task := inputs.tasks[number]) is not None}  # fmt: skip
    smallest = sorted(flops, key=flops.__getitem__)[:SMALLEST]
    found: dict[TensorTask, str] = {}
    for number in dict.fromkeys([*smallest, *numbers]):
        task = inputs.tasks[number]
        assert task is not None  # `fit`
        found[task] = next(iter(inputs.networks[number]), "")
    return found


def _measured(
    chosen: dict[TensorTask, str], folder: Path, config: CalibrateProgramsConfig, level: str,
    report: Progress,
) -> ProgramExamples:  # fmt: skip
    """Time programs of one task after the other, as long as there are minutes."""
    import time

    from go_rl.costs.programs.learn.examples import KeepRules, examples_of
    from go_rl.costs.programs.measure.collect import collect_programs
    from go_rl.costs.programs.measure.data import gather_programs

    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * config.minutes
    for done, (task, network) in enumerate(chosen.items()):
        if time.monotonic() > until:
            break
        report(done, len(chosen), f"timing {task.title}")
        collect_programs(folder, config.measuring(level), lambda _: None, {task: network})
    return examples_of(gather_programs(folder, own_target()), KeepRules(most_away=config.most_away))


def tuned_weights(
    start: ProgramPredictor | ProgramTrees, measured: ProgramExamples, seed: int
) -> tuple[ProgramPredictor | ProgramTrees, tuple[float, float]]:
    """Return weights that learned on, and their errors before and after on tasks that judge (MAPE).

    Networks learn `SOURCE` again, and with it what was measured, repeated until it is about as
    much. Trees learn the data sets that they learned again (`ProgramTrees.for_processor`); where
    these do not ship they are continued on what was measured.

    Raises:
        TrainingError: too few tasks have a time.
    """
    import numpy as np

    from go_rl.costs.learning.metrics import mape
    from go_rl.costs.programs.learn.predictor import ProgramPredictor
    from go_rl.costs.programs.learn.reading import join_examples, read_examples

    known = [start.knows(count) for count in measured.inputs.leaves.tolist()]
    measured = measured.take(np.flatnonzero(known))
    if _tasks(measured) < LEAST_TASKS:
        left_out = "".join(
            f"; {count} programs are {why}" for why, count in measured.dropped if count
        )
        raise TrainingError(
            f"calibrate: {_tasks(measured)} tasks have a time, and {LEAST_TASKS} are the least; "
            f"give more minutes{left_out}"
        )
    tasks = np.random.default_rng(seed).permutation(np.unique(measured.inputs.task))
    judging = np.isin(measured.inputs.task, tasks[: len(tasks) // JUDGED])
    judged = measured.take(np.flatnonzero(judging))
    learned = measured.take(np.flatnonzero(~judging))
    before = mape(start.predict(judged.inputs), judged.seconds)
    if isinstance(start, ProgramPredictor):
        source = read_examples(SOURCE)
        old = [start.knows(count) for count in source.inputs.leaves.tolist()]
        both = join_examples([source.take(np.flatnonzero(old)), learned])
        count = len(both.seconds) - len(learned.seconds)
        new = np.arange(count, len(both.seconds))
        repeats = max(count // max(len(new), 1), 1)
        rows = np.concatenate([np.arange(count), np.tile(new, repeats)])
        tuned = start.fine_tuned(both.take(rows), judged=judged)
        tuned = replace(tuned, name=own_target())
    elif start.data:
        tuned = start.for_processor(read_examples(start.data), learned, judged)
    else:
        tuned = start.fine_tuned(learned, judged=judged)
    return tuned, (before, mape(tuned.predict(judged.inputs), judged.seconds))


def _tasks(examples: ProgramExamples) -> int:
    return len(set(examples.inputs.task.tolist()))
