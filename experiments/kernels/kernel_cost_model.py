"""Kernel cost models compared: percentage errors of runtimes on kernels that were not learned from.

Run: ``python -m experiments kernels.kernel_cost_model [--data kernels-cpu-1 | --folder DIR]``.
*data sheet* is the roofline with the chip's peak rates and the time of an empty call; *calibrated*
the same with its efficiencies and the call fitted; *xla* the calibrated roofline on XLA's own FLOP
and bytes; *boosted* trees on summed features; *learned* the ensemble with GraphSAGE, *Transformer*
with both (as it ships), *no neighbours* with neither. Published ("A Learnt Performance Model for
TPUs", fusion, random split): learned 4.5 % on average, analytical 31.1 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int

from experiments.experiment import Experiment, timed
from experiments.page_text import cell
from go_rl.core import Device, HardwareError, load_hardware
from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.kernels.measure.data import (
    KernelData,
    absolute_rows,
    gather_kernels,
    load_kernel_data,
    plain_seconds,
)
from go_rl.costs.kernels.network import EncoderName, KernelNetworkConfig, Reduction
from go_rl.costs.kernels.predictor import KernelPredictor, predict_layouts
from go_rl.costs.kernels.training import KernelTrainConfig
from go_rl.costs.learning.metrics import mape
from go_rl.costs.models.analytical import Analytical, Efficiency
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.kernel_cache import kernel_work
from go_rl.costs.trees.boosted import BoostedTrees, SummedKernels, summed_features
from go_rl.graphs.cutting.opcode_names import vocabulary_of
from go_rl.graphs.zoo import zoo_entry
from go_rl.report.text_table import markdown_table
from go_rl.runtime.records import AS_IT_COMES

CHIP = load_hardware("cpu-1").devices[0]
"""One core of the machine that measured, by its data sheet."""
SHEET = Efficiency(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
CALLS = (8e-6, 9e-6, 1e-5, 1.2e-5, 1.6e-5)
"""Seconds of a call that calibration tries."""
HELD_OUT = ("convdraw", "wavernn", "gnmt", "ssd", "rnnlm", "resnet", "transformer")
"""Families of the published table."""


@dataclass(frozen=True)
class KernelCostModel(Experiment):
    """Options of this experiment."""

    folder: Path | None = None
    """Gather the data from a folder of go-rl measure kernels."""
    data: str = "kernels-cpu-1"
    """Otherwise: a data set that ships, or a file."""
    updates: int = 5000
    """Updates of each network."""
    members: int = 3
    """Networks of the ensemble."""
    seed: int = 0
    """Of the random split."""

    def run(self) -> None:
        """Compare on both splits and write the page."""
        data = (
            load_kernel_data(self.data)
            if self.folder is None
            else gather_kernels(self.folder, "cpu-1", self.data)
        )
        seconds = plain_seconds(data)
        known = np.flatnonzero(np.isfinite(seconds))
        models = len(set(data.models))
        text = (
            f"# Kernel cost models\n\n{len(known)} kernels of {models} models, one core; mean "
            f"absolute percentage errors of kernels not learned from; *learned*: {self.members} "
            f"networks of {self.updates} updates. {_noise(data)}\n"
        )
        order = np.random.default_rng(self.seed).permutation(known)
        splits = {"At random": (order[len(order) // 5 :], order[: len(order) // 5])}
        families = [zoo_entry(name).family for name in data.models]
        train, test = by_model_split(families, HELD_OUT)
        splits["By model"] = (np.intersect1d(train, known), np.intersect1d(test, known))
        for title, split in splits.items():
            text += _compare(title, data, split, self)
        self.write_page(text)


Predict = Callable[[np.ndarray, Sequence[str]], np.ndarray]
"""From kernels (numbers) and their settings ("": XLA's default; only layouts matter) to seconds."""


def by_model_split(
    models: Sequence[str], held_out: Sequence[str]
) -> tuple[Int[np.ndarray, "T"], Int[np.ndarray, "V"]]:
    """Return the kernels of other models, and those of the models held out."""
    out = np.isin(np.array(models), list(held_out))
    return np.flatnonzero(~out), np.flatnonzero(out)


def by_model(models: Sequence[str], measure: Callable[[np.ndarray], float]) -> dict[str, float]:
    """Return a measure of the rows of each model, by name."""
    owner = np.array(models)
    return {str(name): measure(np.flatnonzero(owner == name)) for name in sorted(set(models))}


def _noise(data: KernelData) -> str:
    again = data.noise()
    if not len(again):
        return "None was measured twice."
    mean, median = 100 * again.mean(), 100 * np.median(again)
    return (
        f"{len(again)} measured twice: {mean:.1f} % apart on average, {median:.1f} % in the median."
    )


def _compare(
    title: str, data: KernelData, split: tuple[np.ndarray, np.ndarray], options: KernelCostModel
) -> str:
    train, test = split
    seconds = plain_seconds(data)
    families = [zoo_entry(data.models[k]).family for k in test]
    rows: dict[str, dict[str, float]] = {}
    fitted: dict[str, Predict] = {}
    alike = [AS_IT_COMES] * len(test)
    for name, fit in METHODS.items():
        fitted[name], fitting = timed(lambda fit=fit: fit(data, train, options))
        predicted, asking = timed(lambda name=name: fitted[name](test, alike))
        errors = by_model(families, lambda r, p=predicted: mape(p[r], seconds[test][r]))
        total = {"all kernels": mape(predicted, seconds[test]), "seconds": fitting + asking}
        rows[name] = errors | total
        print(title, name, {k: round(v, 1) for k, v in total.items()}, flush=True)
    shown = [f for f in sorted(set(families)) if f in HELD_OUT] or sorted(set(families))
    return (
        f"\n## {title}: {len(train)} kernels learned from, {len(test)} judged\n\n"
        f"{error_table(rows, shown, {'all kernels': 1, 'seconds': 1})}"
    )


def error_table(
    columns: Mapping[str, Mapping[str, float]], shown: Sequence[str], rest: Mapping[str, int]
) -> str:
    """Return a table of errors by method, with the mean and the median of the rows shown, and
    further rows with the decimals of their numbers."""
    rows = {label: ([each[label] for each in columns.values()], 1) for label in shown}
    for label, middle in (("*mean*", np.mean), ("*median*", np.median)):
        middles = [float(middle([each[row] for row in shown])) for each in columns.values()]
        rows[label] = (middles, 1)
    for label, digits in rest.items():
        rows[label] = ([each[label] for each in columns.values()], digits)
    lines = ([name, *(cell(each, to) for each in found)] for name, (found, to) in rows.items())
    return markdown_table(["", *columns], lines).replace("|  |", "| |", 1)


def _roofline(work: Kernels, chip: Device, efficiency: Efficiency) -> Predict:
    priced = Analytical({chip.kind: efficiency}).seconds(work, chip)
    return lambda which, settings: priced[which]


def _xla(data: KernelData, train: np.ndarray, options: KernelCostModel) -> Predict:
    """Where XLA gives none, the graph's own FLOP and bytes."""
    del options
    work, xla = kernel_work(data.kernels), data.xla
    flops = np.where(np.isfinite(xla[:, 0]), xla[:, 0] + np.nan_to_num(xla[:, 1]), work.flops)
    size = np.where(np.isfinite(xla[:, 2]), xla[:, 2], work.bytes_accessed)
    return _fitted(replace(work, flops=flops, bytes_accessed=size), plain_seconds(data), train)


def _fitted(work: Kernels, seconds: np.ndarray, train: np.ndarray) -> Predict:
    part = replace(
        work, kind=work.kind[train], flops=work.flops[train],
        bytes_accessed=work.bytes_accessed[train], streamed_bytes=work.streamed_bytes[train],
    )  # fmt: skip
    best, least = (CHIP, SHEET), np.inf
    for call in CALLS:
        chip = replace(CHIP, launch_seconds=call)
        efficiency = calibrate(part, chip, seconds[train])
        priced = Analytical({chip.kind: efficiency}).seconds(part, chip)
        error = float(np.abs(np.log(priced / seconds[train])).mean())
        if error < least:
            best, least = (chip, efficiency), error
    return _roofline(work, *best)


def calibrate(
    kernels: Kernels, device: Device, measured: Float64[np.ndarray, "K"], rounds: int = 4
) -> Efficiency:
    """Fit a device's efficiencies to measured seconds by coordinate search on the log error.

    Args:
        kernels: what was run.
        device: where it was run.
        measured: [K] seconds, each > 0.
        rounds: sweeps over the parameters, each on a grid twice as fine.

    Raises:
        HardwareError: a time is not a number > 0, or the lengths differ.
    """
    if measured.shape != kernels.flops.shape:
        raise HardwareError(f"calibrate: {len(measured)} times for {len(kernels.flops)} kernels")
    if not (np.isfinite(measured) & (measured > 0)).all():
        raise HardwareError("calibrate: every measured time must be a number > 0")
    best = Efficiency()
    step = 2.0
    for _ in range(rounds):
        for name in [f.name for f in fields(Efficiency)]:
            best = _line_search(best, name, step, kernels, device, measured)
        step = step**0.5
    return best


def _line_search(
    start: Efficiency,
    name: str,
    step: float,
    kernels: Kernels,
    device: Device,
    measured: np.ndarray,
) -> Efficiency:
    def error(candidate: Efficiency) -> float:
        seconds = Analytical({device.kind: candidate}).seconds(kernels, device)
        busy = seconds > 0
        return float(np.abs(np.log(seconds[busy] / measured[busy])).mean()) if busy.any() else 0.0

    shares = np.clip(getattr(start, name) * step ** np.arange(-4.0, 5.0), 1e-4, 1.0)
    return min((replace(start, **{name: float(s)}) for s in shares), key=error)


def _boosted(data: KernelData, train: np.ndarray, options: KernelCostModel) -> Predict:
    del options
    vocabulary = vocabulary_of(data.kernels.take(train).graph.op_type)
    every = kernel_features(data.kernels, vocabulary)

    def table(which: np.ndarray, settings: Sequence[str]) -> np.ndarray:
        return summed_features(every.take(which).with_layouts(settings), len(vocabulary))

    rows = absolute_rows(data)
    rows = rows[np.isin(data.kernel[rows], train)]
    known = table(data.kernel[rows], [data.settings[i] for i in data.setting[rows]])
    trees = BoostedTrees.fit(SummedKernels(known, data.seconds[rows]))
    return lambda which, settings: trees.predict(table(which, settings))


def _network(
    encoder: EncoderName,
    reduction: Reduction,
    data: KernelData,
    train: np.ndarray,
    options: KernelCostModel,
) -> Predict:
    network = KernelNetworkConfig(encoder=encoder, reduction=reduction)
    config = KernelTrainConfig(network, updates=options.updates)
    weights = KernelPredictor.fit(data.take(train), config, options.members)
    return lambda which, settings: predict_layouts(weights, data.kernels, which, settings).seconds


METHODS: dict[str, Callable[[KernelData, np.ndarray, KernelCostModel], Predict]] = {
    "data sheet": lambda data, train, options: _roofline(kernel_work(data.kernels), CHIP, SHEET),
    "calibrated": lambda data, train, options: _fitted(
        kernel_work(data.kernels), plain_seconds(data), train
    ),
    "xla": _xla,
    "boosted": _boosted,
    "learned": partial(_network, "graphsage", "column"),
    "Transformer": partial(_network, "graphsage", "transformer"),
    "no neighbours": partial(_network, "none", "column"),
}
