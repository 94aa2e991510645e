"""``go-rl train kernels``: from measured kernels to the weights of a learned cost model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import tyro
from jaxtyping import Int

from go_rl.cli.console import console, counting, print_line, tell
from go_rl.cli.exit_codes import OK
from go_rl.cli.folders import check_file
from go_rl.cli.next_command import EXAMPLE_MODEL, say_next
from go_rl.core import TrainingError
from go_rl.core.presets import CORE
from go_rl.core.processor import own_target

LEAST_KERNELS = 10
"""To learn from; fewer are refused."""
FEW_KERNELS = 500
"""Below this, what is learned hardly serves other models."""
STEPS, STEPS_A_KERNEL = 5000, 10
"""Updates of each network, at most; and for each kernel, where they are few."""

if TYPE_CHECKING:
    from go_rl.measure.kernels.data import KernelData
    from go_rl.predictors.kernels.predictor import KernelPredictor


@dataclass(frozen=True)
class TrainKernels:
    """Options of ``go-rl train kernels``."""

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
            raise TrainingError(f"train kernels: OUT must end in .npz, not {self.out!r}")
        if self.data is not None and not self.data.endswith(".npz"):
            raise TrainingError(f"train kernels: --data must end in .npz, not {self.data!r}")
        if not 0 <= self.held_out < 1:
            raise TrainingError(
                f"train kernels: --held-out must lie in [0, 1), not {self.held_out}"
            )
        if (self.steps is not None and self.steps < 1) or self.members < 1:
            raise TrainingError("train kernels: --steps and --members must be >= 1")


def run(config: TrainKernels) -> int:
    """Run ``go-rl train kernels``; returns the exit code."""
    out = Path(config.out)
    check_file(out, "OUT.npz")
    if config.data is not None:
        check_file(Path(config.data), "--data")
    from go_rl.measure.kernels.data import save_kernel_data

    data = _data(config)
    learned_from, judged = _split(data, config)
    config = replace(config, steps=config.steps or steps_for(len(learned_from)))
    _announce(data, learned_from, judged, config)
    weights = _trained(data, learned_from, config)
    if config.data is not None:
        save_kernel_data(data, Path(config.data))
    said = _judged(weights, data, judged)
    card = {**weights.card, "judged": said}
    replace(weights, name=out.stem, card=card).save(out)
    _print(data, learned_from, said, out)
    return OK


def _data(config: TrainKernels) -> KernelData:
    from go_rl.measure.kernels.data import gather_kernels, load_kernel_data

    folder = Path(config.source)
    if folder.is_dir():
        name = Path(config.data or config.out).stem
        return gather_kernels(folder, config.target or _only_target(folder), name)
    given = {"--data": config.data, "--target": config.target}
    for option in (name for name, value in given.items() if value is not None):
        raise TrainingError(
            f"train kernels: {option} is for a folder of go-rl measure kernels, and "
            f"{config.source!r} is a data set, which has its own; leave it out"
        )
    return load_kernel_data(config.source)


def steps_for(kernels: int) -> int:
    """Return the updates of each network that so many kernels are worth."""
    return min(STEPS, STEPS_A_KERNEL * kernels)


def _announce(
    data: KernelData,
    learned_from: Int[np.ndarray, "T"],
    judged: Int[np.ndarray, "V"],
    config: TrainKernels,
) -> None:
    """Say what begins, before minutes go into it."""
    few = len(learned_from) < FEW_KERNELS
    warning = " These are few: expect it to be far off on other models." if few else ""
    tell(
        f"learning from {len(learned_from):,} kernels measured on {data.target}, judged on "
        f"{len(judged):,} others: {config.members} networks, {config.steps:,} updates each."
        f"{warning}"
    )


def _only_target(folder: Path) -> str:
    """The target that a folder has records of; this machine's where there are none."""
    from go_rl.measure.kernels.collect import RECORDS
    from go_rl.records import RecordStore

    with RecordStore(folder / RECORDS) as store:
        targets = store.targets()
    if len(targets) > 1:
        raise TrainingError(
            f"train kernels: {folder} has records of several targets: {', '.join(targets)}; name "
            "one with --target"
        )
    return targets[0] if targets else own_target()


def _split(
    data: KernelData, config: TrainKernels
) -> tuple[Int[np.ndarray, "T"], Int[np.ndarray, "V"]]:
    """Kernels that are learned from, and those that are judged."""
    from go_rl.predictors.kernels.examples import plain_seconds

    known = np.flatnonzero(np.isfinite(plain_seconds(data)))
    order = np.random.default_rng(config.seed).permutation(known)
    count = round(config.held_out * len(known))
    if len(known) - count < LEAST_KERNELS:
        raise TrainingError(
            f"train kernels: of the {len(known)} kernels with a time in {config.source} "
            f"{len(known) - count} are left to learn from, and no cost model comes of fewer than "
            f"{LEAST_KERNELS}; measure more models, or give a smaller --held-out"
        )
    return np.sort(order[count:]), np.sort(order[:count])


def _trained(
    data: KernelData, learned_from: Int[np.ndarray, "T"], config: TrainKernels
) -> KernelPredictor:
    from go_rl.predictors.kernels.predictor import KernelPredictor
    from go_rl.predictors.kernels.training import KernelTrainConfig

    steps = config.steps or STEPS
    training = KernelTrainConfig(steps=steps, seed=config.seed)
    with counting("training", config.members * steps) as advance:

        def report(member: int, step: int, loss: float) -> None:
            advance(
                member * steps + step,
                f"network {member + 1}/{config.members}, update {step}, loss {loss:.4f}",
            )

        return KernelPredictor.fit(data.take(learned_from), training, config.members, report)


def _judged(
    weights: KernelPredictor, data: KernelData, which: Int[np.ndarray, "V"]
) -> dict[str, float]:
    """Percentage errors on kernels that were not learned from; empty: there are none."""
    from go_rl.predictors.kernels.examples import plain_seconds

    if not len(which):
        return {}
    seconds = plain_seconds(data)[which]
    error = 100 * np.abs(weights.predict(data.kernels.take(which)) / seconds - 1)
    found = {"kernels": len(which), "mean": error.mean(), "median": np.median(error)}
    return {name: round(float(value), 2) for name, value in found.items()}


def _print(
    data: KernelData, learned_from: Int[np.ndarray, "T"], said: dict[str, float], out: Path
) -> None:
    models = len({data.models[k] for k in learned_from})
    sentence = f"{len(learned_from):,} kernels of {models} models on {data.target} learned from"
    if said:
        sentence += (
            f"; {said['kernels']:,.0f} others predicted within {said['mean']:.1f} % on average, "
            f"{said['median']:.1f} % in the median"
        )
    screen = console()
    print_line(screen, f"{sentence}. Weights: {out}")
    if data.target in (CORE.kind, own_target()):
        hardware, cost = f"{data.target}-ring4", f"learned:{out}"
        say_next(screen, "optimize", EXAMPLE_MODEL, "--hardware", hardware, "--cost", cost)
    else:  # which needs a hardware file of one's own; a preset is a start for it
        say_next(screen, "hardware", "show", f"{CORE.kind}-ring4", "--json")
