"""`CalibratedKernels`: a kernel cost model that learned on one processor, corrected by kernels that
were measured on another, with an interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64

from go_rl.core import TrainingError
from go_rl.core.hardware.presets import CORE
from go_rl.costs.kernels.predictor import KernelPredictor, latest_weights, predict_kernels
from go_rl.costs.kernels.residuals import FEWEST, ResidualExamples, Residuals, compared_features
from go_rl.costs.learning.predictor import Predictor
from go_rl.graphs.cutting.compiled import CompiledNetwork
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.runtime.saved_model import SavedKind

KIND = SavedKind(
    "go_rl-calibrated-kernels", "calibrated kernel costs", {"interface": 3},
    "run go-rl calibrate again",
)  # fmt: skip
FOLDS = 5
TAILS = (0.05, 0.95)
"""Quantiles of errors on kernels left out that bound a 90 % interval."""
FEATURES, RATIO, CHAINS = "features", "ratio", "chains"
WORKING_SET, PER_BYTE = "working_set", "seconds_per_byte"
SCATTER = 1.25
"""Factor by which the speed of memory differs between products and moments, either way; assumed."""
PRIOR_CHAINS = 1.0
"""Chains as fast as their parts that count beside those measured."""


@dataclass(frozen=True, eq=False)
class MemoryFloor:
    """Seconds a byte of programs that read all their weights once, measured."""

    working_set: Float64[np.ndarray, "P"]
    """[P] bytes of weights, rising."""
    per_byte: Float64[np.ndarray, "P"]
    """[P] seconds a byte."""

    def seconds(
        self, weight_bytes: Float64[np.ndarray, "K"]
    ) -> tuple[Float64[np.ndarray, "K"], Float64[np.ndarray, "K"], Float64[np.ndarray, "K"]]:
        """Return [K] the least seconds of a network's K kernels, and bounds of them.

        Weights that the cache holds from one iteration to the next cost what the smallest program
        took a byte; between two programs the seconds a byte are interpolated in the logarithm of
        the working set. What else the network keeps in the cache is not known, so the bounds are
        those of half and twice the working set.

        Args:
            weight_bytes: [K] of each kernel.
        """
        if not len(self.working_set):
            nothing = np.zeros_like(weight_bytes)
            return nothing, nothing, nothing
        whole = max(float(weight_bytes.sum()), 1.0)
        usual, low, high = (
            np.interp(np.log(whole * share), np.log(self.working_set), self.per_byte)
            for share in (1.0, 0.5, 2.0)
        )
        rates = usual, min(usual, low) / SCATTER, max(usual, high) * SCATTER
        return tuple(weight_bytes * rate for rate in rates)  # pyright: ignore[reportReturnType]


NO_FLOOR = MemoryFloor(np.zeros(0), np.zeros(0))
"""Memory floor where nothing was measured of memory."""


@dataclass(frozen=True, eq=False)
class MeasuredKernels:
    """``K`` kernels and their seconds on the machine to which a model is calibrated."""

    kernels: KernelSet
    seconds: Float64[np.ndarray, "K"]
    processor: str
    """`go_rl.core.hardware.processor.processor_name`."""
    chains: tuple[tuple[KernelSet, float], ...] = ()
    """Kernels that XLA's library computes in one piece, and seconds of the piece."""
    memory: MemoryFloor = NO_FLOOR
    """Seconds a byte of weights that come from memory."""


@dataclass(frozen=True, eq=False)
class CalibratedPredictions:
    """Predictions for ``K`` kernels."""

    seconds: Float64[np.ndarray, "K"]
    low: Float64[np.ndarray, "K"]
    high: Float64[np.ndarray, "K"]
    """[K] bounds of a 90 % interval."""
    unlike: Bool[np.ndarray, "K"]
    """[K] unlike what the cost model learned from."""


@dataclass(frozen=True, eq=False)
class CalibratedKernels(Predictor[MeasuredKernels, KernelSet]):
    """A cost model and its corrections."""

    weights: KernelPredictor
    source: str
    """Name or path of the cost model's weights."""
    examples: ResidualExamples
    """Examples that were measured."""
    residuals: Residuals | None
    """None: a single factor predicts kernels left out better."""
    factor: float
    """Median of measured over predicted seconds."""
    low: float
    high: float
    """Quantiles of log errors on kernels left out."""
    error: float
    """Mean absolute percentage error on kernels left out."""
    processor: str
    chains: Float64[np.ndarray, "C"]
    """[C] logarithms of measured over predicted seconds of chains, the parts corrected."""
    memory: MemoryFloor = NO_FLOOR
    """Least time of a network's kernels, whose weights come from memory."""

    what = KIND.what
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(bool(len(self.examples.residual)))

    @classmethod
    def fit(cls, examples: MeasuredKernels, source: str | None = None) -> CalibratedKernels:
        """Return corrections of a cost model.

        Args:
            examples: at least `FEWEST` kernels.
            source: weights of the cost model; None: the latest that ship.
        """
        source = source or latest_weights(CORE.kind)
        count = len(examples.seconds)
        if count < FEWEST:
            raise TrainingError(
                f"calibration: {count} kernels have a time, and {FEWEST} are needed; calibrate "
                "more kernels (--kernels), those of other --networks, or for more --minutes"
            )
        weights = KernelPredictor.load(source)
        ratio = np.log(examples.seconds / weights.predict(examples.kernels))
        measured = ResidualExamples(compared_features(examples.kernels), ratio)
        found = cls._of(weights, source, measured, examples.processor, np.zeros(0))
        chains = [np.log(s / found.predict(parts).sum()) for parts, s in examples.chains]
        return replace(found, chains=np.array(chains, np.float64), memory=examples.memory)

    @property
    def chain_factor(self) -> float:
        """Ratio of a chain's time to the sum of its parts; drawn to 1 where few were measured."""
        return float(np.exp(self.chains.sum() / (len(self.chains) + PRIOR_CHAINS)))

    @classmethod
    def _of(
        cls, weights: KernelPredictor, source: str, measured: ResidualExamples, processor: str,
        chains: Float64[np.ndarray, "C"],
    ) -> CalibratedKernels:  # fmt: skip
        ratio = measured.residual
        smooth, constant = (_left_out(measured, each) for each in (True, False))
        better = np.abs(np.expm1(-smooth)).mean() < np.abs(np.expm1(-constant)).mean()
        errors = smooth if better else constant
        low, high = np.quantile(errors, TAILS)
        return cls(
            weights, source, measured, Residuals.fit(measured) if better else None,
            float(np.exp(np.median(ratio))), float(min(low, 0.0)), float(max(high, 0.0)),
            100 * float(np.abs(np.expm1(-errors)).mean()), processor, chains,
        )  # fmt: skip

    def predict(self, inputs: KernelSet) -> Float64[np.ndarray, "K"]:
        """Return [K] predictions of seconds."""
        return self.interval(inputs).seconds

    def interval(self, inputs: KernelSet) -> CalibratedPredictions:
        """Return predictions, bounds and flags."""
        found = predict_kernels(self.weights, inputs)
        shift = (
            np.full(len(found.seconds), np.log(self.factor))
            if self.residuals is None
            else self.residuals.predict(compared_features(inputs))
        )
        seconds = found.seconds * np.exp(shift)
        return CalibratedPredictions(
            seconds, seconds * np.exp(self.low), seconds * np.exp(self.high), found.unfamiliar
        )

    def network(
        self, network: CompiledNetwork, weight_bytes: Float64[np.ndarray, "K"] | None = None
    ) -> CalibratedPredictions:
        """Return predictions, bounds and flags of a network's kernels: what they compute again is
        theirs, those of a chain take longer, and none is faster than its weights are read.

        Args:
            network: as XLA compiles it.
            weight_bytes: [K] that each kernel reads in every iteration; None: nothing is known.
        """
        found = self.interval(network.kernels)
        seconds = found.seconds.copy()
        for chain in network.chains:
            seconds[list(chain)] *= self.chain_factor
        if network.again is not None:
            np.add.at(seconds, network.again_in, self.predict(network.again))
        bounds = seconds * np.exp(self.low), seconds * np.exp(self.high)
        read = np.zeros(len(seconds)) if weight_bytes is None else weight_bytes
        least, low, high = self.memory.seconds(read)
        return CalibratedPredictions(
            np.maximum(seconds, least), np.maximum(bounds[0], low), np.maximum(bounds[1], high),
            found.unlike,
        )  # fmt: skip

    def save(self, path: Path) -> None:
        """Write measurements to a file; the cost model's weights are not in it."""
        arrays = {FEATURES: self.examples.features, RATIO: self.examples.residual,
                  CHAINS: self.chains, WORKING_SET: self.memory.working_set,
                  PER_BYTE: self.memory.per_byte}  # fmt: skip
        KIND.write(path, arrays, {"source": self.source, "processor": self.processor})

    @classmethod
    def load(cls, source: str | Path) -> CalibratedKernels:
        """Read a saved file; none ship with the package."""
        with KIND.opened(source) as saved:
            weights, processor = saved.manifest["source"], saved.manifest["processor"]
            arrays = saved.arrays
            measured = ResidualExamples(arrays[FEATURES], arrays[RATIO])
            chains = arrays[CHAINS]
            memory = MemoryFloor(arrays[WORKING_SET], arrays[PER_BYTE])
        found = cls._of(KernelPredictor.load(weights), weights, measured, processor, chains)
        return replace(found, memory=memory)


def _left_out(measured: ResidualExamples, smooth: bool) -> Float64[np.ndarray, "K"]:
    """[K] log of measured over predicted seconds of each kernel, by the others.

    Args:
        measured: all of them.
        smooth: whether like kernels are corrected alike, or all by one factor.
    """
    count = len(measured.residual)
    fold = np.random.default_rng(0).permutation(count) % FOLDS
    found = np.zeros(count)
    for each in range(FOLDS):
        out, rest = fold == each, fold != each
        known = ResidualExamples(measured.features[rest], measured.residual[rest])
        if smooth and rest.sum() >= FEWEST:
            found[out] = Residuals.fit(known).predict(measured.features[out])
        else:
            found[out] = np.median(known.residual)
    return measured.residual - found
