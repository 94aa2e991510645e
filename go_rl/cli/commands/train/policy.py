"""``go-rl train policy``: pretrain a policy on the zoo, resuming what was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, make_dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import tyro

from go_rl.api.training.pretrain import ProcessConfig
from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.cli.runtime_log import leaving_at_once
from go_rl.policy.config import POLICIES
from go_rl.policy.learn.config import (
    CHECKPOINTS,
    DEFAULT_NETWORK,
    TRAININGS,
    WEIGHTS_FILE,
    PrototypeTrainConfig,
    RunConfig,
    read_training,
)

Network = Literal["ring", "orders", "nodes", "dispatch"]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of ``go-rl train policy``."""

    PREFIXED: ClassVar[bool] = True
    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR")]
    """Folder of the run: checkpoints, log.jsonl, tensorboard, weights.npz."""
    config: Annotated[str | None, tyro.conf.arg(metavar="FILE.json")] = None
    """File of a configuration, such as config.json of another run; flags change its fields."""
    workers: Literal["local", "ray"] = "local"
    """Where samples are solved and evaluated: this process, or Ray workers (pip install
    'go_rl[ray]')."""
    processes: ProcessConfig = field(default_factory=ProcessConfig)
    """Processes that train together, on one host or many; the same command in each."""
    network: Network
    """Policy that is trained; the flags below are those of its configuration. Default: that of the
    file behind --config, else ring."""
    training: RunConfig


def _options(
    network: str, kind: type[RunConfig], default: Callable[[], RunConfig]
) -> type[TrainOptions]:
    """Return the options that train this policy; flags change the default configuration."""
    own = Annotated[kind, tyro.conf.arg(name="")]
    return make_dataclass(
        f"Train{network.title()}",
        [("network", Network, field(default=network)),
         ("training", own, field(default_factory=default))],
        bases=(TrainOptions,), namespace={"__doc__": TrainOptions.__doc__}, frozen=True,
        kw_only=True,
    )  # fmt: skip


OPTIONS = {network: _options(network, kind, kind) for network, kind in TRAININGS.items()}
"""Options by the name of the policy."""


def options_of(argv: Sequence[str]) -> type[TrainOptions]:
    """Return the options for the policy that the arguments name, or the file behind ``--config``;
    the fields of that file are their defaults.

    Raises:
        TrainingError: the file cannot be read, or is no configuration of the policy.
    """
    network, path = _named(argv, "--network"), _named(argv, "--config")
    if not path or network not in (None, *OPTIONS):
        return OPTIONS.get(network or DEFAULT_NETWORK, OPTIONS[DEFAULT_NETWORK])
    read = read_training(path, network)
    return _options(read.kind, type(read), lambda: read)


def _named(argv: Sequence[str], flag: str) -> str | None:
    """The word behind a flag, the last time that it is there."""
    words = [each.split("=", 1) if each.startswith("--") else [each] for each in argv]
    found = [after for word, after in pairwise(chain.from_iterable(words)) if word == flag]
    return found[-1] if found else None


def run(config: TrainOptions) -> int:
    """Run the command; returns the exit code."""
    processes = config.processes
    if not processes.several:
        return _train(config)
    number = "of this command" if processes.index is None else str(processes.index)
    return leaving_at_once(lambda: _train(config), f"process {number}")


def _train(config: TrainOptions) -> int:
    folder, training = Path(config.out), config.training
    if not config.processes.index:  # the others write nothing
        check_folder(folder, "DIR")
    from go_rl.api.training.pretrain import effort_sentence, pretrain

    shown = counting(f"training {training.name}: reading the problems", training.updates)
    is_searched = isinstance(training, PrototypeTrainConfig)
    with shown as report, saying_what_is_kept(folder, is_searched):
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
def saying_what_is_kept(folder: Path, is_searched: bool = False) -> Iterator[None]:
    """Let an interrupt say from where the same command will go on: a run of prototypes, whose
    problems are searched, has no checkpoints of updates."""
    try:
        yield
    except KeyboardInterrupt as stop:
        done = [int(p.name) for p in (folder / CHECKPOINTS).glob("*") if p.name.isdecimal()]
        kept = f"the checkpoint after {max(done)} updates is kept" if done else "no checkpoint yet"
        if is_searched:
            kept = "finished searches and stages are kept"
        if (folder / WEIGHTS_FILE).exists():
            kept += f", the best weights so far are {folder / WEIGHTS_FILE}"
        raise type(stop)(f"stopped; {kept}; the same command goes on from there") from None
