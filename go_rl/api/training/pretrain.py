"""`pretrain`: a policy from the graphs of the zoo, and its weights as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.options import check_type
from go_rl.api.progress import Progress, ignore
from go_rl.core import GoRLError, TrainingError, load_hardware
from go_rl.core.config_checks import check_tuple
from go_rl.core.files.own_json import TRAINING, kind_of
from go_rl.core.files.run_lock import locked
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.whole_file import write_text, writing
from go_rl.core.optimizer import Milestone
from go_rl.policy.config import POLICIES
from go_rl.policy.learn.config import (
    CHECKPOINTS,
    CONFIG_FILE,
    TRAININGS,
    PrototypeTrainConfig,
    RunConfig,
    TrainConfig,
)
from go_rl.policy.learn.processes.config import ProcessConfig

if TYPE_CHECKING:
    from go_rl.policy.weights import Weights


ONE_PROCESS = ProcessConfig()


def pretrain(
    config: RunConfig,
    folder: str | Path,
    *,
    report: Progress = ignore,
    graphs: Sequence[str | Path] | None = None,
    workers: str = "local",
    processes: ProcessConfig = ONE_PROCESS,
) -> Weights:
    """Train a policy on the zoo or on own graphs, resuming the run in the folder; return its best
    weights.

    Several processes, on one host or many, call it with the same arguments but for their index, and
    share the problems of every update out; the weights are those of one process. Only process 0
    touches the folder. Policies of prototypes are trained by one process.

    Args:
        config: `RingTrainConfig`, `OrdersTrainConfig`, `NodesTrainConfig` or
            `DispatchTrainConfig`.
        folder: for config.json, checkpoints, logs and weights.npz.
        report: called with the updates done, all updates and a sentence.
        graphs: own models instead of the zoo's (``config.graphs``): files that `go_rl.load` reads,
            graphs that ``go-rl graph --save`` wrote, folders of such. All are read before training.
        workers: where samples are solved and evaluated: ``local`` (this process) or ``ray``.
        processes: that train together; one by default.

    Raises:
        TrainingError, CheckpointError: an argument is of another type; see also
            `go_rl.policy.learn.pretrain.pretrain` and `go_rl.policy.learn.processes.join.joined`;
            what one process raises, all raise.
        MissingDependencyError: Ray is not installed.
        HardwareError: one is not known.
    """
    from go_rl.policy.learn import pretrain as training
    from go_rl.policy.learn.collect import pricer
    from go_rl.policy.learn.problems.curriculum import listed_files
    from go_rl.policy.learn.processes.join import joined
    from go_rl.policy.learn.prototypes.run import pretrain_prototypes

    config = _checked(config, folder, graphs)
    own = config.graphs if graphs is None else [str(each) for each in graphs]
    config = replace(config, graphs=listed_files(own))
    _check_hardware(config)
    _check_folder(Path(folder))
    updates = config.updates

    def tell(done: int, sentence: str) -> None:
        milestone = "validation" in sentence or "cover:" in sentence
        report(done, updates, Milestone(f"update {done}: {sentence}") if milestone else sentence)

    alone = nullcontext() if processes.index else locked(folder)  # the others write nothing
    if isinstance(config, PrototypeTrainConfig):
        _check_alone(workers, processes)
        with alone, _begun(Path(folder)):
            return pretrain_prototypes(config, Path(folder), tell)
    begun = nullcontext() if processes.index else _begun(Path(folder))
    with alone, begun, joined(processes, config) as group:
        group.on_first(lambda: _write_config(config, Path(folder)))
        return training.pretrain(config, folder, tell, pricer(workers), group=group)


@contextmanager
def _begun(folder: Path) -> Iterator[None]:
    """Take the configuration of a new run back if the run is refused before it has learned
    anything: a corrected one would contradict it."""
    path = folder / CONFIG_FILE
    known = path.exists()
    try:
        yield
    except GoRLError:
        if not known and not any((folder / CHECKPOINTS).glob("*")):
            path.unlink(missing_ok=True)
        raise


def _checked(
    config: RunConfig, folder: object, graphs: object
) -> PrototypeTrainConfig | TrainConfig:
    """Return the configuration; raise an error for an argument of `pretrain` of another type."""
    if not isinstance(config, PrototypeTrainConfig | TrainConfig):
        kinds = " or ".join(kind.__name__ for kind in TRAININGS.values())
        raise TrainingError(f"pretrain: config must be a {kinds}, not {config!r}")
    check_type(folder, str | Path, "pretrain: folder", TrainingError)
    if graphs is not None:
        check_tuple(graphs, "pretrain: graphs", TrainingError)
    return config


def _check_hardware(config: PrototypeTrainConfig | TrainConfig) -> None:
    """Raise an error for hardware that is not known, or of links that the policy cannot take,
    before anything is written."""
    objective = POLICIES[config.kind].objective
    for name in dict.fromkeys((*config.hardware, *getattr(config, "validation_hardware", ()))):
        if (links := load_hardware(name).links.topology) not in objective.traits.topologies:
            raise TrainingError(
                f"train: network {config.kind} needs {objective.traits.topology_hint[0]}; "
                f"hardware {name!r} has {links} links"
            )


def _check_folder(folder: Path) -> None:
    """Raise an error for a folder in which another command has left its configuration."""
    path = folder / CONFIG_FILE
    try:
        found = kind_of(read_json(path))
    except (OSError, ValueError):  # there is none, or it is damaged, which the run says itself
        return
    if found not in (None, TRAINING):
        raise TrainingError(f"{path}: is {found}; give a new folder, or that of a training run")


def _check_alone(workers: str, processes: ProcessConfig) -> None:
    if workers != "local" or processes.several:
        raise TrainingError(
            "train: policies of prototypes are trained by one process; leave workers and "
            "processes out (runs may share their searches: finds)"
        )


def _write_config(config: TrainConfig, folder: Path) -> None:
    """Write the configuration. A run that goes on to more updates has these in its file.

    Raises:
        CheckpointError: the folder holds a run whose configuration is another one, or damaged.
        TrainingError: it cannot be written.
    """
    path = folder / CONFIG_FILE
    if path.exists() and any(p.name.isdecimal() for p in (folder / CHECKPOINTS).glob("*")):
        config.check_goes_on(folder, path.read_text("utf-8", errors="replace"), path)
    with writing(folder, TrainingError):
        write_text(path, config.to_json() + "\n")


def save_weights(weights: Weights, path: str | Path) -> None:
    """Write weights that ``--weights`` reads; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    from go_rl.policy import weights as files

    files.save_weights(weights, path)


def effort_sentence(card: Mapping[str, Any]) -> str:
    """Return what training took, by the card of weights: core-hours, samples, attempts."""
    from go_rl.policy import effort

    return effort.effort_sentence(card)
