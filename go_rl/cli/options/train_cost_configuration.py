"""What ``go-rl train-cost`` and ``go-rl train-ranks`` accept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from go_rl.core import TrainingError


@dataclass(frozen=True)
class TrainCost:
    """Train a learned cost model on measured kernels; --cost learned:OUT uses it."""

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DIR|DATA")]
    """A folder of go-rl measure kernels, or a data set: a file, or the name of one that ships."""
    out: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="OUT.npz")]
    """Weights to be written; the file's name is theirs."""
    data: Annotated[str | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Of a folder: also write all its measurements as one data set."""
    target: str | None = None
    """Of a folder: the machine whose measurements are learned. Default: the only one there."""
    held_out: float = 0.2
    """Share of the kernels that is judged and not learned from, by chance; 0: all are learned
    from, and none judged."""
    steps: int | None = None
    """Updates of each network. Default: 5000; fewer for fewer than 500 kernels, ten for each."""
    members: int = 3
    """Networks, which differ by their seed."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        if not self.out.endswith(".npz"):
            raise TrainingError(f"train-cost: OUT must end in .npz, not {self.out!r}")
        if self.data is not None and not self.data.endswith(".npz"):
            raise TrainingError(f"train-cost: --data must end in .npz, not {self.data!r}")
        if not 0 <= self.held_out < 1:
            raise TrainingError(f"train-cost: --held-out must lie in [0, 1), not {self.held_out}")
        if (self.steps is not None and self.steps < 1) or self.members < 1:
            raise TrainingError("train-cost: --steps and --members must be >= 1")


@dataclass(frozen=True)
class TrainRanks:
    """Train networks that rank tilings and XLA flags of kernels; go-rl tune kernels asks them."""

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
            raise TrainingError(f"train-ranks: OUT must end in .npz, not {self.out!r}")
        if self.kernels is None and self.tiles is None:
            raise TrainingError("train-ranks: give --kernels, --tiles or both to learn from")
        if self.steps < 1 or self.members < 1:
            raise TrainingError("train-ranks: --steps and --members must be >= 1")
