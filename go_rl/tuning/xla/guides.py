"""Guides: the order in which fusions, and settings of a kernel, are measured.

The learned model prices a graph as the sum of its kernels' predicted seconds; the analytical model
likewise. Both are corrected while tuning by what was measured, XLA's default before anything else
(`PricedFusions`); the learned one also by what ``go-rl calibrate`` measured before. Their rivals
draw lots, or measure all that there is as it comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float64

from go_rl.core import CheckpointError, Device, HardwareError
from go_rl.core.hardware.presets import CORE, HOST, load_hardware
from go_rl.core.hardware.processor import own_target, processor_name
from go_rl.costs.kernels.calibrated import KIND, CalibratedKernels
from go_rl.costs.kernels.measure.settings import FLAG_SETTINGS
from go_rl.costs.kernels.predictor import KernelPredictor, latest_weights
from go_rl.costs.kernels.ranks.predictor import FlagRanks, shipped_ranks
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.kernel_cache import kernel_work
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.tuning.config import LEARNED, TuneConfig, TuningError
from go_rl.tuning.xla.fusions import GraphFusion
from go_rl.tuning.xla.priced_fusions import PricedFusions

FIXED = "kernels are tried under the settings in the order of docs/tuning.md"


@runtime_checkable
class FusionRanks(Protocol):
    """Orders fusions of one graph."""

    def order(self, fusions: Sequence[GraphFusion]) -> Float64[np.ndarray, "C"]:
        """Return [C] scores; the smallest is measured first."""
        ...

    def learn(self, measured: Mapping[str, float]) -> None:
        """Hear the seconds of kernels by hash, all that are known so far."""
        ...


@runtime_checkable
class SettingRanks(Protocol):
    """Orders the settings of kernels."""

    def order(self, kernels: KernelSet) -> Float[np.ndarray, "K S"]:
        """Return [K, S] scores of `FLAG_SETTINGS`; the smallest is measured first."""
        ...


@dataclass(frozen=True)
class Guide:
    """Orders what may be measured."""

    name: str
    fusions: FusionRanks
    settings: SettingRanks
    predicts: bool = False
    """Whether scores of fusions are predictions, worth a search before anything is measured."""
    selective: bool = True
    """Whether only the first k candidates are measured; False: all."""
    notes: tuple[str, ...] = ()
    """Sentences that the user should know."""


class AsTheyCome:
    """Ranks of fusions by their places."""

    def order(self, fusions: Sequence[GraphFusion]) -> Float64[np.ndarray, "C"]:
        return np.arange(len(fusions), dtype=np.float64)

    def learn(self, measured: Mapping[str, float]) -> None:
        """Learn nothing."""


class Shuffled:
    """Scores are drawn at random, always the same of equal fusions: a run that goes on draws as it
    would have."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def order(self, fusions: Sequence[GraphFusion]) -> Float64[np.ndarray, "C"]:
        rngs = (np.random.default_rng((self._seed, 1, int(f.key, 16))) for f in fusions)
        return np.array([rng.random() for rng in rngs], np.float64)

    def learn(self, measured: Mapping[str, float]) -> None:
        """Learn nothing."""


class FixedSettings:
    """Scores are places in `FLAG_SETTINGS`, whatever the kernel."""

    def order(self, kernels: KernelSet) -> Float[np.ndarray, "K S"]:
        return np.tile(np.arange(len(FLAG_SETTINGS), dtype=np.float64), (kernels.num_kernels, 1))


class ShuffledSettings:
    """Scores are drawn at random, always the same of equal kernels."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def order(self, kernels: KernelSet) -> Float[np.ndarray, "K S"]:
        rngs = (np.random.default_rng((self._seed, 2, int(h, 16))) for h in kernels.hashes)
        drawn = [rng.random(len(FLAG_SETTINGS)) for rng in rngs]
        return np.array(drawn, np.float64).reshape(kernels.num_kernels, len(FLAG_SETTINGS))


def guide_of(config: TuneConfig) -> Guide:
    """Return the guide that a configuration names.

    Raises:
        TuningError: no weights ship for the target, these are of another one or cannot be read.
    """
    if config.guide == "learned":
        known = _calibrated(config)
        weights = known.weights if known else guide_weights(config)
        return learned_guide(weights, _settings(config, weights.target), known)
    if config.guide == "analytical":
        return _analytical(config.target)
    if config.guide == "random":
        return Guide("random", Shuffled(config.seed), ShuffledSettings(config.seed))
    return Guide("everything", AsTheyCome(), FixedSettings(), selective=False)


def learned_guide(
    weights: KernelPredictor,
    settings: SettingRanks | None = None,
    calibrated: CalibratedKernels | None = None,
) -> Guide:
    """Return the guide that asks an ensemble.

    Args:
        weights: of the ensemble.
        settings: ranks of settings; None: there are none.
        calibrated: corrects what it predicts, on this machine.
    """
    priced = PricedFusions(calibrated.predict if calibrated else weights.predict)
    notes = () if settings else (f"No ranking of settings ships for {weights.target}: {FIXED}",)
    notes = notes if calibrated else (*notes, *_elsewhere(weights, processor_name()))
    return Guide("learned", priced, settings or FixedSettings(), predicts=True, notes=notes)


def _elsewhere(weights: KernelPredictor, here: str) -> tuple[str, ...]:
    """Notes if the kernels were measured on another processor than this machine's."""
    if not weights.processor or not here or weights.processor == here:
        return ()
    return (
        f"{weights.name} learned on a processor {weights.processor}, and this machine's is {here}: "
        "its order begins as a guess; what is kept is decided by times measured here",
    )


def _settings(config: TuneConfig, target: str) -> SettingRanks | None:
    """The ranking of settings that is named, or that ships for a target.

    Raises:
        CheckpointError: there is none of that name, or it is damaged.
    """
    return FlagRanks.load(config.ranks) if config.ranks else shipped_ranks(target)


def _analytical(target: str) -> Guide:
    device, notes = _device(target)
    priced = PricedFusions(lambda kernels: Analytical().seconds(kernel_work(kernels), device))
    notes = (*notes, f"The analytical model does not tell settings apart: {FIXED}")
    return Guide("analytical", priced, FixedSettings(), predicts=True, notes=notes)


def _device(target: str) -> tuple[Device, tuple[str, ...]]:
    try:
        return load_hardware(target).devices[0], ()
    except HardwareError:
        note = f"No hardware is called {target!r}: the analytical model takes the device of 'host'"
        return replace(HOST, kind=target), (note,)


def _calibrated(config: TuneConfig) -> CalibratedKernels | None:
    """Calibration by go-rl calibrate, if one is named.

    Raises:
        TuningError: it is of another processor.
    """
    path = Path(config.weights)
    if not path.is_file() or not KIND.holds(path):
        return None
    known = CalibratedKernels.load(path)
    if known.processor != processor_name():
        raise TuningError(
            f"--cost {config.cost}: calibrated to a processor {known.processor}, and this "
            f"machine's is {processor_name()}; run go-rl calibrate --device this --out FILE.npz"
        )
    return known


def guide_weights(config: TuneConfig) -> KernelPredictor:
    """Return the weights of the learned guide; on this machine, those of another processor may
    begin to guess.

    Raises:
        TuningError: there are none, or they are of another target.
    """
    here = config.target == own_target()
    try:
        weights = KernelPredictor.load(config.weights or latest_weights(config.target))
    except CheckpointError as error:
        if config.cost == LEARNED:
            if here:
                return KernelPredictor.load(latest_weights(CORE.kind))
            raise TuningError(
                f"--target {config.target}: no kernel cost weights ship for a machine of that name;"
                f" {_OTHERWISE}"
            ) from error
        raise TuningError(f"--cost {config.cost}: {error}; {_OTHERWISE}") from error
    if weights.target != config.target and not here:
        raise TuningError(
            f"--cost {config.cost}: learned from kernels of {weights.target!r}, and this machine "
            f"is called {config.target!r} (--target); {_OTHERWISE}"
        )
    return weights


_OTHERWISE = (
    "take --guide analytical, or learn one from this machine's kernels (go-rl train kernels) and "
    "give --cost learned:FILE.npz"
)
