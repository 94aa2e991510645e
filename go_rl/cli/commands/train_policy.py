"""``go-rl train policy``: pretrain a policy on the zoo, resuming what was interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from go_rl.api.options import named_decisions
from go_rl.cli.configuration import from_json
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.core import Objective, ProblemError, TrainingError
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.whole_file import write_text
from go_rl.train.config import (
    CHECKPOINTS,
    CONFIG_FILE,
    SEARCHES,
    WEIGHTS_FILE,
    MakespanTrainConfig,
    PPOConfig,
    RingTrainConfig,
    TrainConfig,
    current_fields,
)

DecisionSets = tuple[tuple[str, ...], ...]


def _decision_sets(words: list[str]) -> DecisionSets:
    """Read ``placement,schedule,fusion placement``; a ValueError, for tyro, names a wrong one."""
    try:
        return tuple(named_decisions(word) or () for word in words)
    except ProblemError as error:
        raise ValueError(str(error)) from error


DECISION_SETS: tyro.constructors.PrimitiveConstructorSpec[DecisionSets] = (
    tyro.constructors.PrimitiveConstructorSpec(
        nargs="*",
        metavar="NAME,NAME [NAME,NAME ...]",
        instance_from_str=_decision_sets,
        is_instance=lambda given: isinstance(given, tuple),
        str_from_instance=lambda sets: [",".join(names) for names in sets],
    )
)


@dataclass(frozen=True)
class MakespanPPO(PPOConfig):
    """One update."""

    placement_entropy: Annotated[float, tyro.conf.Suppress] = PPOConfig.placement_entropy
    """Not read: a policy for makespan has one entropy."""


@dataclass(frozen=True)
class MakespanTraining(MakespanTrainConfig):
    """One pretraining run; the same configuration and machine give the same weights."""

    decide: Annotated[DecisionSets, DECISION_SETS] = MakespanTrainConfig.decide
    """Sets of decisions, each as often as it is listed."""
    ppo: MakespanPPO = field(
        default_factory=lambda: MakespanPPO(**asdict(MakespanTrainConfig().ppo))
    )
    """The learner."""

    def plain(self) -> MakespanTrainConfig:
        """Return the configuration that the library knows."""
        values: dict[str, Any] = {
            f.name: getattr(self, f.name) for f in fields(MakespanTrainConfig)
        }
        values["ppo"] = PPOConfig(**asdict(self.ppo))
        return MakespanTrainConfig(**values)


Folder = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
Workers = Literal["local", "ray"]
ConfigFile = Annotated[str | None, tyro.conf.arg(metavar="FILE.json")]


@dataclass(frozen=True)
class TrainRing:
    """Options of ``go-rl train policy``."""

    PREFIXED: ClassVar[bool] = True
    out: Folder
    """Folder of the run: checkpoints, log.jsonl, tensorboard, weights.npz."""
    training: Annotated[RingTrainConfig, tyro.conf.arg(name="")] = field(
        default_factory=RingTrainConfig
    )
    objective: Literal["ring", "makespan"] = "ring"
    """What the policy minimises; the flags below are those of its configuration."""
    config: ConfigFile = None
    """Read the whole configuration from a file instead (docs/policy.md); DIR/config.json is one."""
    workers: Workers = "local"
    """Where samples are solved and evaluated: this process, or Ray workers (pip install
    'go_rl[ray]')."""


@dataclass(frozen=True)
class TrainMakespan:
    """Options of ``go-rl train policy --objective makespan``."""

    PREFIXED: ClassVar[bool] = True
    out: Folder
    """Folder of the run: checkpoints, log.jsonl, tensorboard, weights.npz."""
    training: Annotated[MakespanTraining, tyro.conf.arg(name="")] = field(
        default_factory=MakespanTraining
    )
    objective: Literal["ring", "makespan"] = "makespan"
    """What the policy minimises; the flags below are those of its configuration."""
    config: ConfigFile = None
    """Read the whole configuration from a file instead (docs/policy.md); DIR/config.json is one."""
    workers: Workers = "local"
    """Where samples are solved and evaluated: this process, or Ray workers (pip install
    'go_rl[ray]')."""


def options_of(argv: Sequence[str]) -> type:
    """Return the options for the objective that the arguments name."""
    words = " ".join(argv).replace("=", " ").split()
    named = words[words.index("--objective") + 1 :] if "--objective" in words else []
    return TrainMakespan if named[:1] == [Objective.MAKESPAN] else TrainRing


def run(config: TrainRing | TrainMakespan) -> int:
    """Run the command; returns the exit code."""
    folder, training = Path(config.out), _training(config)
    check_folder(folder, "DIR")
    from go_rl.api.train import pretrain

    objective = Objective(config.objective)
    _begin(training, folder)
    with counting(f"training {training.name}", training.updates) as advance:
        weights = pretrain(training, folder, advance, config.workers)
    out, path = console(), folder / WEIGHTS_FILE
    if curve := weights.card["validation"]:
        updates, reward = max(curve, key=lambda point: point[1])
        print_line(out, f"best validation reward {reward:+.4f} (higher is better) after "
                        f"{updates:g} updates")  # fmt: skip
    print_line(out, f"written to {path}")
    if objective is Objective.MAKESPAN:
        use = ["optimize", EXAMPLE_MODEL, "--objective", objective]
    else:
        use = ["evaluate", "zoo:test", "--methods", "greedy", "policy"]
    say_next(out, *use, "--weights", path)
    return OK


def _training(config: TrainRing | TrainMakespan) -> TrainConfig:
    """The configuration of the run, from its file where one is named."""
    ring = isinstance(config, TrainRing)
    if config.config is not None:
        kind = RingTrainConfig if ring else MakespanTrainConfig
        return from_json(kind, _document(Path(config.config)), config.config)
    return config.training if ring else config.training.plain()


def _document(path: Path) -> dict[str, Any]:
    """The fields of a training run in a JSON file."""
    try:
        document = read_json(path)
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise TrainingError(f"{path}: is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise TrainingError(f"{path}: must be a JSON object with the fields of a training run")
    return current_fields(document)


def _begin(training: TrainConfig, folder: Path) -> None:
    """Write the configuration, unless the folder holds a run.

    A run with a checkpoint or searches is resumed or refused by the trainer, and has its file
    already.
    """
    path = folder / CONFIG_FILE
    begun = any(p.name.isdecimal() for p in (folder / CHECKPOINTS).glob("*"))
    if path.exists() and (begun or (folder / SEARCHES / CONFIG_FILE).exists()):
        return
    try:
        write_text(path, training.to_json() + "\n")
    except OSError as error:
        raise TrainingError(f"{folder}: cannot be written ({error.strerror})") from error
