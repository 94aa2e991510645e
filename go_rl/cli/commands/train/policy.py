"""``go-rl train policy``: pretrain a policy on the zoo, resuming what was interrupted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from go_rl.api.training.pretrain import ProcessConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.cli.runtime_log import leaving_at_once
from go_rl.core import ProblemError, TrainingError, decision_names
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.typed_json import from_json
from go_rl.policy.config import POLICIES
from go_rl.policy.learn.config import (
    CHECKPOINTS,
    WEIGHTS_FILE,
    DispatchTrainConfig,
    NodesTrainConfig,
    OrdersTrainConfig,
    PPOConfig,
    RingTrainConfig,
    RunConfig,
)

DecisionSets = tuple[tuple[str, ...], ...]


def _decision_sets(words: list[str]) -> DecisionSets:
    """Read ``placement,schedule,fusion placement``; a ValueError, for tyro, names a wrong one."""
    try:
        return tuple(decision_names(word) for word in words)
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


Network = Literal["ring", "orders", "nodes", "dispatch"]


def _plain(training: RunConfig, kind: type[RunConfig]) -> RunConfig:
    """Return the configuration that the library knows, of flags for connected devices."""
    values: dict[str, Any] = {f.name: getattr(training, f.name) for f in fields(kind)}
    if "ppo" in values:
        values["ppo"] = PPOConfig(**asdict(values["ppo"]))
    return kind(**values)


@dataclass(frozen=True)
class NodesTraining(NodesTrainConfig):
    """One pretraining run; the same configuration and machine give the same weights."""

    decide: Annotated[DecisionSets, DECISION_SETS] = NodesTrainConfig.decide
    """Sets of decisions, each as often as it is listed."""


@dataclass(frozen=True)
class DispatchTraining(DispatchTrainConfig):
    """One pretraining run; the same configuration and machine give the same weights."""

    decide: Annotated[DecisionSets, DECISION_SETS] = DispatchTrainConfig.decide
    """Sets of decisions, each as often as it is listed."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions(ABC):
    """Abstract: what the options of all objectives share."""

    PREFIXED: ClassVar[bool] = True
    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the run: checkpoints, log.jsonl, tensorboard, weights.npz."""
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.json")] = None
    """Read the whole configuration from a file instead (docs/policy.md); DIR/config.json is one."""
    workers: Literal["local", "ray"] = "local"
    """Where samples are solved and evaluated: this process, or Ray workers (pip install
    'go_rl[ray]')."""
    processes: ProcessConfig = field(default_factory=ProcessConfig)
    """Processes that train together, on one host or many; the same command in each."""
    network: Network
    """Policy that is trained; the flags below are those of its configuration."""

    @property
    @abstractmethod
    def given(self) -> RunConfig:
        """The configuration that the flags describe."""

    @property
    def chosen(self) -> RunConfig:
        """The configuration of the run, from its file where one is named."""
        if self.config is None:
            return self.given
        return from_json(type(self.given), _document(Path(self.config)), self.config)


@dataclass(frozen=True, kw_only=True)
class TrainRing(TrainOptions):
    """Options of ``go-rl train policy``."""

    network: Network = "ring"
    """Policy that is trained; the flags below are those of its configuration."""
    training: Annotated[RingTrainConfig, tyro.conf.arg(name="")] = field(
        default_factory=RingTrainConfig
    )

    @property
    def given(self) -> RunConfig:
        """The configuration that the flags describe."""
        return self.training


@dataclass(frozen=True, kw_only=True)
class TrainOrders(TrainOptions):
    """Options of ``go-rl train policy --network orders``."""

    network: Network = "orders"
    """Policy that is trained; the flags below are those of its configuration."""
    training: Annotated[OrdersTrainConfig, tyro.conf.arg(name="")] = field(
        default_factory=OrdersTrainConfig
    )

    @property
    def given(self) -> RunConfig:
        """The configuration that the flags describe."""
        return self.training


@dataclass(frozen=True, kw_only=True)
class TrainNodes(TrainOptions):
    """Options of ``go-rl train policy --network nodes``."""

    network: Network = "nodes"
    """Policy that is trained; the flags below are those of its configuration."""
    training: Annotated[NodesTraining, tyro.conf.arg(name="")] = field(
        default_factory=NodesTraining
    )

    @property
    def given(self) -> RunConfig:
        """The configuration that the flags describe."""
        return _plain(self.training, NodesTrainConfig)


@dataclass(frozen=True, kw_only=True)
class TrainDispatch(TrainOptions):
    """Options of ``go-rl train policy --network dispatch``."""

    network: Network = "dispatch"
    """Policy that is trained; the flags below are those of its configuration."""
    training: Annotated[DispatchTraining, tyro.conf.arg(name="")] = field(
        default_factory=DispatchTraining
    )

    @property
    def given(self) -> RunConfig:
        """The configuration that the flags describe."""
        return _plain(self.training, DispatchTrainConfig)


OPTIONS: dict[str, type[TrainOptions]] = {
    "ring": TrainRing, "orders": TrainOrders, "nodes": TrainNodes, "dispatch": TrainDispatch
}  # fmt: skip
"""Options by the name of the policy."""


def options_of(argv: Sequence[str]) -> type[TrainOptions]:
    """Return the options for the policy that the arguments name."""
    words = " ".join(argv).replace("=", " ").split()
    named = words[words.index("--network") + 1 :] if "--network" in words else []
    return OPTIONS.get(named[0] if named else "", TrainRing)


def run(config: TrainOptions) -> int:
    """Run the command; returns the exit code."""
    processes = config.processes
    if not processes.several:
        return _train(config)
    number = "of this command" if processes.index is None else str(processes.index)
    return leaving_at_once(lambda: _train(config), f"process {number}")


def _train(config: TrainOptions) -> int:
    folder, training = Path(config.out), config.chosen
    if not config.processes.index:  # the others write nothing
        check_folder(folder, "DIR")
    from go_rl.api.training.pretrain import effort_sentence, pretrain

    shown = counting(f"training {training.name}: reading the problems", training.updates)
    with shown as report, saying_what_is_kept(folder):
        weights = pretrain(
            training, folder, report=report, workers=config.workers, processes=config.processes
        )
    if config.processes.index:
        print_line(console(), f"done; process 0 has written to {folder}")
        return OK
    out, path = console(), folder / WEIGHTS_FILE
    if curve := weights.card.get("validation"):
        updates, reward = max(curve, key=lambda point: point[1])
        print_line(out, f"best validation reward {reward:+.4f} (higher is better) after "
                        f"{updates:g} updates")  # fmt: skip
    print_line(out, effort_sentence(weights.card))
    print_line(out, f"written to {path}")
    objective = POLICIES[config.network].objective
    if objective.traits.is_replayed:
        use = ["optimize", EXAMPLE_MODEL, "--objective", objective]
    else:
        use = ["evaluate", "zoo:test", "--methods", "greedy", "policy"]
    say_next(out, *use, "--weights", path)
    return OK


@contextmanager
def saying_what_is_kept(folder: Path) -> Iterator[None]:
    """Let an interrupt say from which update the same command will go on."""
    try:
        yield
    except KeyboardInterrupt as stop:
        done = [int(p.name) for p in (folder / CHECKPOINTS).glob("*") if p.name.isdecimal()]
        kept = f"the checkpoint after {max(done)} updates is kept" if done else "no checkpoint yet"
        if (folder / WEIGHTS_FILE).exists():
            kept += f", the best weights so far are {folder / WEIGHTS_FILE}"
        raise type(stop)(f"stopped; {kept}; the same command goes on from there") from None


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
    return document
