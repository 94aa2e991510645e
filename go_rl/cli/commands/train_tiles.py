"""``go-rl train tiles``: from measured configurations to the weights that rank them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from go_rl.cli.console import console, counting, print_line
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.core import TrainingError


@dataclass(frozen=True)
class TrainTiles:
    """Options of ``go-rl train tiles``."""

    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OUT.npz")]
    """Weights to be written."""
    kernels: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE.npz")] = None
    """Kernels measured under settings of flags: a data set that ships, or a file."""
    tiles: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE.jsonl.gz")] = None
    """Programs measured under tilings: a data set that ships, or a file."""
    loss: Literal["hinge", "logistic", "mse"] = "hinge"
    """Pairwise rank losses, or the squared error of log seconds."""
    steps: int = 1000
    """Updates of each network."""
    members: int = 3
    """Networks, which differ by their seed."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        if not self.out.endswith(".npz"):
            raise TrainingError(f"train tiles: OUT must end in .npz, not {self.out!r}")
        if self.kernels is None and self.tiles is None:
            raise TrainingError("train tiles: give --kernels, --tiles or both to learn from")
        if self.steps < 1 or self.members < 1:
            raise TrainingError("train tiles: --steps and --members must be >= 1")


def run(config: TrainTiles) -> int:
    """Run ``go-rl train tiles``; returns the exit code."""
    out = Path(config.out)
    check_file(out, "OUT.npz")
    from go_rl.measure.kernels.data import load_kernel_data
    from go_rl.measure.tiles.data import load_tile_data
    from go_rl.predictors.ranks.data import flag_groups, tile_groups
    from go_rl.predictors.ranks.predictor import RankPredictor
    from go_rl.predictors.ranks.training import RankTrainConfig

    groups = [] if config.kernels is None else [flag_groups(load_kernel_data(config.kernels))]
    groups += [] if config.tiles is None else [tile_groups(load_tile_data(config.tiles))]
    training = RankTrainConfig(loss=config.loss, steps=config.steps, seed=config.seed)
    with counting("training", config.members * config.steps) as advance:

        def report(member: int, step: int, loss: float) -> None:
            advance(
                member * config.steps + step,
                f"network {member + 1}/{config.members}, update {step}, loss {loss:.4f}",
            )

        weights = RankPredictor.fit(groups, training, config.members, report)
    weights.save(out)
    counts = ", ".join(f"{count:,} of {task}" for task, count in weights.card["groups"].items())
    print_line(console(), f"{weights.target}: groups learned from: {counts}. Weights: {out}")
    say_next(console(), "tune", "kernels", EXAMPLE_MODEL)
    return OK
