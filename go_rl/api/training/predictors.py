"""`train_kernels`, `train_flags`: what predicts or ranks seconds, from measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Int

from go_rl.api.progress import Progress, count_updates, ignore
from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, LESS_THAN_ALL, SEED, check_ranges
from go_rl.core.files.run_lock import exclusive
from go_rl.core.files.shipped import or_a_folder
from go_rl.core.hardware.processor import own_target
from go_rl.core.optimizer import Milestone

if TYPE_CHECKING:
    from go_rl.costs.kernels.measure.data import KernelData
    from go_rl.costs.kernels.predictor import KernelPredictor
    from go_rl.costs.kernels.ranks.predictor import FlagRanks

LEAST_KERNELS = 10
"""To learn from; fewer are refused."""
FEW_KERNELS = 500
"""Below this, what is learned hardly serves other models."""
UPDATES, UPDATES_A_KERNEL = 5000, 10
"""Updates of each network, at most; and for each kernel, where they are few."""


@dataclass(frozen=True)
class TrainKernelsConfig:
    """Training of a cost model of kernels."""

    target: str | None = None
    """Machine whose measurements in the folder are learned. Default: the only one there."""
    held_out: float = 0.2
    """Share of the kernels, chosen at random, that is evaluated and not learned from; 0: all are
    learned from, and none evaluated."""
    updates: int | None = None
    """Updates of each network. Default: 5000; fewer for fewer than 500 kernels, ten for each."""
    members: int = 3
    """Networks, which differ by their seed."""
    encoder: Literal["graphsage", "attention", "sequence", "none"] = "graphsage"
    """How operators see their neighbours: by GraphSAGE, by graph attention, by an LSTM over the
    operators in order, or not at all (docs/results.md compares them)."""
    reduction: Literal["transformer", "lstm", "column"] = "transformer"
    """How a kernel becomes one vector: attention among its operators, an LSTM over them, or mean,
    largest and sum alone."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        check_ranges(
            self,
            "train kernels",
            TrainingError,
            held_out=LESS_THAN_ALL,
            updates=COUNT,
            members=COUNT,
            seed=SEED,
        )


@dataclass(frozen=True)
class TrainFlagsConfig:
    """Training of ranks of XLA's flags."""

    target: str | None = None
    """Machine whose measurements in the folder are learned. Default: the only one there."""
    loss: Literal["hinge", "logistic", "mse"] = "hinge"
    """Pairwise rank losses, or the squared error of log seconds."""
    updates: int = 1000
    """Updates of each network."""
    members: int = 3
    """Networks, which differ by their seed."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        check_ranges(self, "train flags", TrainingError, updates=COUNT, members=COUNT, seed=SEED)


@exclusive("out", file=True)
def train_kernels(
    source: str | Path,
    out: str | Path,
    config: TrainKernelsConfig | None = None,
    *,
    data: str | Path | None = None,
    report: Progress = ignore,
) -> KernelPredictor:
    """Train the cost model ``learned:OUT`` on measured kernels, and write its weights.

    Args:
        source: a folder that `measure_kernels` wrote, or a data set: a file, or the name of one
            that ships.
        out: .npz file of the weights, which are named after it.
        config: how it is trained.
        data: of a folder: .npz file to write all its measurements to, as one data set.
        report: called with the updates done, all updates and a sentence.

    Returns:
        The weights; ``card["judged"]`` holds the percentage errors on the kernels held out.

    Raises:
        TrainingError: too few kernels, or an option that the source has no use for.
        ReadError, RecordError: the measurements cannot be read.
        CheckpointError: the weights cannot be written.
    """
    from go_rl.costs.kernels.measure.data import save_kernel_data
    from go_rl.costs.kernels.network import KernelNetworkConfig
    from go_rl.costs.kernels.predictor import KernelPredictor
    from go_rl.costs.kernels.training import KernelTrainConfig

    config, out = config or TrainKernelsConfig(), _npz("train kernels: out", out)
    kept = None if data is None else _npz("train kernels: data", data)
    if kept is not None and not Path(source).is_dir():
        _data_set(source)
        raise _not_a_folder("train kernels: data", source)
    measured = _kernel_data("train kernels", source, config.target, kept and kept.stem)
    learned_from, held_out = split_kernels(measured, config, source)
    updates = config.updates or updates_for(len(learned_from))
    sentence = announcement(measured.target, len(learned_from), len(held_out), config, updates)
    report(0, config.members * updates, Milestone(sentence))
    network = KernelNetworkConfig(encoder=config.encoder, reduction=config.reduction)
    training = KernelTrainConfig(network, updates=updates, seed=config.seed)
    each_update = count_updates(report, config.members, updates)
    examples = measured.take(learned_from)
    weights = KernelPredictor.fit(examples, training, config.members, each_update)
    if kept is not None:
        save_kernel_data(measured, kept)
    card = {**weights.card, "judged": _errors(weights, measured, held_out)}
    weights = replace(weights, name=out.stem, card=card)
    weights.save(out)
    return weights


@exclusive("out", file=True)
def train_flags(
    source: str | Path,
    out: str | Path,
    config: TrainFlagsConfig | None = None,
    *,
    report: Progress = ignore,
) -> FlagRanks:
    """Train networks that rank the settings of XLA's flags of a kernel, and write their weights.

    Args:
        source: a folder that `measure_kernels` wrote, or a data set: a file, or the name of one
            that ships; of kernels measured under settings of flags.
        out: .npz file of the weights, which are named after it.
        config: how they are trained.
        report: called with the updates done, all updates and a sentence.

    Raises:
        TrainingError: no kernel was measured under two settings, or an option that the source has
            no use for.
        ReadError, RecordError: the measurements cannot be read.
        CheckpointError: the weights cannot be written.
    """
    from go_rl.costs.kernels.ranks.flag_times import flag_times
    from go_rl.costs.kernels.ranks.predictor import FlagRanks
    from go_rl.costs.kernels.ranks.training import RankTrainConfig

    config, out = config or TrainFlagsConfig(), _npz("train flags: out", out)
    times = flag_times(_kernel_data("train flags", source, config.target))
    training = RankTrainConfig(loss=config.loss, updates=config.updates, seed=config.seed)
    each_update = count_updates(report, config.members, config.updates)
    weights = FlagRanks.fit(times, training, config.members, each_update)
    weights = replace(weights, name=out.stem)
    weights.save(out)
    return weights


def updates_for(kernels: int) -> int:
    """Return the updates of each network that this many kernels are worth."""
    return min(UPDATES, UPDATES_A_KERNEL * kernels)


def announcement(
    target: str, kernels: int, held_out: int, config: TrainKernelsConfig, updates: int
) -> str:
    """Return what is about to be trained, before minutes go into it."""
    few = " These are few: expect it to be far off on other models."
    return (
        f"learning from {kernels:,} kernels measured on {target}, judged on {held_out:,} others: "
        f"{config.members} networks, {updates:,} updates each."
        f"{few if kernels < FEW_KERNELS else ''}"
    )


def only_target(folder: Path, command: str = "train kernels") -> str:
    """Return the target that a folder has records of; this machine's where there are none.

    Args:
        folder: of `measure_kernels`.
        command: that reads it, for messages.

    Raises:
        TrainingError: there are several.
    """
    from go_rl.runtime.records import RECORDS, RecordStore

    with RecordStore(folder / RECORDS) as store:
        targets = store.targets()
    if len(targets) > 1:
        raise TrainingError(
            f"{command}: {folder} has records of several targets: {', '.join(targets)}; name one "
            "as target"
        )
    return targets[0] if targets else own_target()


def split_kernels(
    data: KernelData, config: TrainKernelsConfig, source: str | Path
) -> tuple[Int[np.ndarray, "T"], Int[np.ndarray, "V"]]:
    """Return the kernels that are learned from, and those held out.

    Args:
        data: measured kernels.
        config: share that is held out, and seed.
        source: of the data, for messages.

    Raises:
        TrainingError: too few are left to learn from.
    """
    from go_rl.costs.kernels.measure.data import plain_seconds

    known = np.flatnonzero(np.isfinite(plain_seconds(data)))
    order = np.random.default_rng(config.seed).permutation(known)
    count = round(config.held_out * len(known))
    if len(known) - count < LEAST_KERNELS:
        raise TrainingError(
            f"train kernels: of the {len(known)} kernels with a time in {str(source)!r} "
            f"{len(known) - count} are left to learn from, and no cost model comes of fewer than "
            f"{LEAST_KERNELS}; measure more models, or hold out a smaller share"
        )
    return np.sort(order[count:]), np.sort(order[:count])


def _kernel_data(
    command: str, source: str | Path, target: str | None, name: str | None = None
) -> KernelData:
    """The measurements of a folder, as a data set of this name, by default the folder's; or a data
    set."""
    from go_rl.costs.kernels.measure.data import gather_kernels

    folder = Path(source)
    if folder.is_dir():
        name = name or folder.resolve().name
        return gather_kernels(folder, target or only_target(folder, command), name)
    data = _data_set(source)
    if target is not None:
        raise _not_a_folder(f"{command}: target", source)
    return data


def _data_set(source: str | Path) -> KernelData:
    """A data set, by file or by the name of one that ships; where there is neither, the error says
    that a folder would do, too."""
    from go_rl.costs.kernels.measure.data import load_kernel_data

    with or_a_folder(source, "go-rl measure kernels"):
        return load_kernel_data(source)


def _not_a_folder(option: str, source: str | Path) -> TrainingError:
    return TrainingError(
        f"{option} is for a folder of go-rl measure kernels, and {str(source)!r} is a data set, "
        "which has its own; leave it out"
    )


def _errors(
    weights: KernelPredictor, data: KernelData, which: Int[np.ndarray, "V"]
) -> dict[str, float]:
    """Percentage errors on kernels that were not learned from; empty: there are none."""
    from go_rl.costs.kernels.measure.data import plain_seconds

    if not len(which):
        return {}
    seconds = plain_seconds(data)[which]
    error = 100 * np.abs(weights.predict(data.kernels.take(which)) / seconds - 1)
    found = {"kernels": len(which), "mean": error.mean(), "median": np.median(error)}
    return {name: round(float(value), 2) for name, value in found.items()}


def _npz(what: str, path: str | Path) -> Path:
    if Path(path).suffix != ".npz":
        raise TrainingError(f"{what} must end in .npz, not {str(path)!r}")
    return Path(path)
