"""`measure_kernels`, `measure_programs`: real seconds of kernels and programs on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.api.progress import Progress, ignore, one_by_one
from go_rl.core.files.run_lock import exclusive
from go_rl.costs.timing.config import CollectConfig, ProgramsConfig

if TYPE_CHECKING:
    from go_rl.graphs.zoo.models.building import ZooModel


@dataclass(frozen=True)
class MeasuredFolder:
    """Additions of one run of `measure_kernels`."""

    made: int
    """Measurements of this run."""
    records: int
    """Measurements of the target in the folder, those of this run included."""
    path: Path
    """Store of the records."""

    @classmethod
    def of(cls, made: int, folder: Path, target: str) -> MeasuredFolder:
        """Return what a folder has of a target after a run that made so many measurements."""
        from go_rl.runtime.records import RECORDS, RecordStore

        with RecordStore(folder / RECORDS) as store:
            return cls(made, store.count(target), folder / RECORDS)


@exclusive("folder")
def measure_kernels(
    folder: str | Path,
    config: CollectConfig | None = None,
    models: Sequence[str] = (),
    *,
    report: Progress = ignore,
) -> MeasuredFolder:
    """Compile and time kernels of the zoo's models; what the folder knows is not measured again.

    Args:
        folder: of the records and kernels (docs/kernels.md).
        config: what is measured, and how.
        models: names in the zoo; none: all of them.
        report: called with the models done, all of them and a sentence.

    Raises:
        ZooError, MissingDependencyError: a model is unknown, or cannot be built here.
        RecordError: nothing can be measured here, or the records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    from go_rl.costs.kernels.measure.collect import collect_kernels

    folder, config, chosen = Path(folder), config or CollectConfig(), _models(models)
    folder.mkdir(parents=True, exist_ok=True)
    made = collect_kernels(chosen, folder, config, one_by_one(report, len(chosen)))
    return MeasuredFolder.of(made, folder, config.target)


@exclusive("folder")
def measure_programs(
    folder: str | Path, config: ProgramsConfig | None = None, *, report: Progress = ignore
) -> MeasuredFolder:
    """Build and time random candidates of the operators of networks, through TVM; what the folder
    knows is not measured again.

    Args:
        folder: of the records (docs/programs.md).
        config: which programs are measured, and how.
        report: called with the drawings done, all of them and a sentence.

    Raises:
        MissingDependencyError: TVM is not installed.
        RecordError: the records cannot be read or written.
        CheckpointError: there are no weights of which members could disagree.
        TaskError: the data set or a level of x86-64 is unknown.
        TrainingError: more tasks are to be chosen than there are.
        TuningError: this processor does not run a level of x86-64.
        WorkerError: the core cannot be had.
        ZooError: a network is unknown.
    """
    from go_rl.costs.programs.learn.predictor import ProgramPredictor
    from go_rl.costs.programs.measure.collect import (
        collect_programs,
        drawn_nests,
        listed_drawings,
        listed_tasks,
    )
    from go_rl.costs.programs.measure.data_file import shipped_programs
    from go_rl.costs.programs.measure.program_sets import program_set
    from go_rl.tuning.tvm.codegen import level_of

    folder, config = Path(folder), config or ProgramsConfig()
    folder.mkdir(parents=True, exist_ok=True)
    tasks = listed_tasks(config)
    drawings = listed_drawings(config, tasks)
    for level in dict.fromkeys(drawing.codegen for drawing in drawings):
        level_of(level)
    if config.choice.choose == "disagreement":
        ProgramPredictor.load(config.choice.weights)  # drawing all programs takes minutes
    wanted = None
    if config.choice.choose != "all":
        from go_rl.costs.programs.learn.choose_programs import choose_programs

        wanted = choose_programs(drawn_nests(drawings, config), config, folder)
    measured, target = {}, config.measure.target
    if config.data_set and config.measure.round == 0:
        draws = program_set(config.data_set).draws
        measured = shipped_programs(config.data_set, draws, target)
    tell = one_by_one(report, len(drawings))
    made = collect_programs(folder, config, tell, tasks, wanted, measured)
    return MeasuredFolder.of(made, folder, target)


def tensor_tasks(config: ProgramsConfig | None = None) -> list[tuple[str, str, int]]:
    """Return network, task and FLOP of each distinct operator that `measure_programs` measures.

    Raises:
        ZooError: a network is unknown.
    """
    from go_rl.costs.programs.measure.collect import listed_tasks

    tasks = listed_tasks(config or ProgramsConfig())
    return [(network, task.title, task.flops) for task, network in tasks.items()]


def _models(names: Sequence[str]) -> list[ZooModel]:
    """The models that were named, which must be here; or all, of which some may be left out."""
    from go_rl.graphs.zoo.models.inventory import ZOO_MODELS, zoo_model
    from go_rl.graphs.zoo.models.vision.keras_applications import require_keras

    chosen = [zoo_model(name) for name in names]
    for model in chosen:
        require_keras(model)
    return chosen or list(ZOO_MODELS)
