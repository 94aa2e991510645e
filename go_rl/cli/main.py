"""The ``go-rl`` command: typed configuration in, files and tables out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
)

from go_rl.cli.exit_codes import EXIT_CODES, OK
from go_rl.cli.guard import guarded
from go_rl.cli.options.configuration import (
    CheckOptions,
    Evaluate,
    FineTune,
    FineTuneStep,
    GraphOptions,
    HardwareList,
    HardwareShow,
    Measure,
    Optimize,
    Partition,
    Train,
    TrainStep,
    ZooList,
    ZooShow,
)
from go_rl.cli.options.train_cost_configuration import TrainCost, TrainRanks
from go_rl.cli.options.tune_configuration import Tune
from go_rl.cli.renamed import check_renamed
from go_rl.cli.streams import prepare_streams
from go_rl.cost import CostModel

Subcommand = tyro.conf.subcommand
Plain = tyro.conf.OmitArgPrefixes
HardwareCommand = (
    Annotated[HardwareList, Subcommand("list")] | Annotated[HardwareShow, Subcommand("show")]
)
ZooCommand = Annotated[ZooList, Subcommand("list")] | Annotated[ZooShow, Subcommand("show")]
Command = (
    Annotated[Partition, Subcommand("partition"), Plain]
    | Annotated[Optimize, Subcommand("optimize"), Plain]
    | Annotated[FineTune, Subcommand("finetune"), Plain]
    | Annotated[FineTuneStep, Subcommand("finetune-step"), Plain]
    | Annotated[Train, Subcommand("train"), Plain]
    | Annotated[TrainStep, Subcommand("train-step")]
    | Annotated[Evaluate, Subcommand("evaluate"), Plain]
    | Annotated[CheckOptions, Subcommand("check"), Plain]
    | Annotated[GraphOptions, Subcommand("graph"), Plain]
    | Annotated[Measure, Subcommand("measure"), Plain]
    | Annotated[TrainCost, Subcommand("train-cost")]
    | Annotated[TrainRanks, Subcommand("train-ranks")]
    | Annotated[Tune, Subcommand("tune"), Plain]
    | Annotated[HardwareCommand, Subcommand("hardware", description="Hardware presets.")]
    | Annotated[ZooCommand, Subcommand("zoo", description="Frozen graphs of real networks.")]
)
DESCRIPTION = (
    f"Partition, place, schedule and fuse neural networks, with proven bounds. {EXIT_CODES}"
)
STYLE = (tyro.conf.FlagCreatePairsOff,)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``go-rl`` with these arguments (the process's own by default); returns the exit code."""
    prepare_streams()
    argv = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _command(argv))


def _command(argv: list[str]) -> int:
    if argv == ["--version"]:
        sys.stdout.write(f"go-rl {version('go_rl')}\n")
        return OK
    check_renamed(argv)
    _keep_compiled_programs()
    return _run(_parse(argv))


def _keep_compiled_programs() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless told another one."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(home) / "go_rl" / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")


def _parse(argv: list[str]) -> object:
    return tyro.cli(
        Command,  # pyright: ignore[reportArgumentType]
        args=argv,
        prog="go-rl",
        description=DESCRIPTION,
        config=STYLE,
        registry=_constructors(),
    )


def _constructors() -> ConstructorRegistry:
    """How the command line reads what only Python can give otherwise: a cost model, by its name."""
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def named(field: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if field.type != str | CostModel:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="NAME",
            instance_from_str=lambda words: words[0],
            is_instance=lambda value: isinstance(value, str),
            str_from_instance=lambda value: [str(value)],
        )

    return registry


def _run(command: object) -> int:
    if isinstance(command, Partition):
        from go_rl.cli.commands.partition import run_partition

        return run_partition(command)
    if isinstance(command, Optimize):
        from go_rl.cli.commands.optimize import run_optimize

        return run_optimize(command)
    if isinstance(command, TrainStep):
        from go_rl.cli.commands.train import run_train_step

        return run_train_step(command)
    if isinstance(command, FineTune):
        from go_rl.cli.commands.finetune import run_finetune

        return run_finetune(command)
    if isinstance(command, FineTuneStep):
        from go_rl.cli.commands.finetune import run_finetune_step

        return run_finetune_step(command)
    if isinstance(command, Train):
        from go_rl.cli.commands.train import run_train

        return run_train(command)
    if isinstance(command, Evaluate):
        from go_rl.cli.commands.evaluate import run_evaluate

        return run_evaluate(command)
    if isinstance(command, CheckOptions):
        from go_rl.cli.commands.check import run_check

        return run_check(command)
    if isinstance(command, GraphOptions):
        from go_rl.cli.commands.graph import run_graph

        return run_graph(command)
    if isinstance(command, ZooList | ZooShow):
        from go_rl.cli.commands.zoo import run_zoo

        return run_zoo(command)
    if isinstance(command, Measure):
        from go_rl.cli.commands.measure import run_measure

        return run_measure(command)
    if isinstance(command, TrainCost):
        from go_rl.cli.commands.train_cost import run_train_cost

        return run_train_cost(command)
    if isinstance(command, TrainRanks):
        from go_rl.cli.commands.train_ranks import run_train_ranks

        return run_train_ranks(command)
    if isinstance(command, Tune):
        from go_rl.cli.commands.tune import run_tune

        return run_tune(command)
    from go_rl.cli.commands.hardware import run_hardware

    assert isinstance(command, HardwareList | HardwareShow)
    return run_hardware(command)
