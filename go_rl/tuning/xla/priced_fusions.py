"""`PricedFusions`: fusions in the order of predicted seconds, corrected by what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.costs.kernels.residuals import FEWEST, ResidualExamples, Residuals, compared_features
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.tuning.xla.fusions import GraphFusion

KernelSeconds = Callable[[KernelSet], Float64[np.ndarray, "K"]]


@dataclass(frozen=True, eq=False)
class _Priced:
    """A kernel that was priced."""

    seconds: float
    features: Float32[np.ndarray, "F"]


class PricedFusions:
    """Scores are seconds: the sum over a fusion's kernels, each distinct one priced once.

    A kernel that was measured costs what was measured, any other what is predicted, corrected by
    how far predictions were off on those measured (`go_rl.costs.kernels.residuals`).

    Args:
        price: predicts.
    """

    def __init__(self, price: KernelSeconds) -> None:
        self._price = price
        self._priced: dict[str, _Priced] = {}
        self._expected: dict[str, float] = {}
        """Seconds that count, of kernels that were asked for since the last `learn`."""
        self._measured: dict[str, float] = {}
        self._residuals: Residuals | None = None

    def order(self, fusions: Sequence[GraphFusion]) -> Float64[np.ndarray, "C"]:
        return np.array([self._seconds(fusion.kernels) for fusion in fusions], np.float64)

    def learn(self, measured: Mapping[str, float]) -> None:
        """Hear seconds of kernels; infinite ones count, but nothing is learned from them."""
        if measured == self._measured:
            return
        self._measured, self._expected = dict(measured), dict(measured)
        usable = {h: s for h, s in measured.items() if h in self._priced and np.isfinite(s)}
        if not usable:
            return
        self._residuals = None
        if len(usable) >= FEWEST:
            priced = [self._priced[h] for h in usable]
            residual = np.log(list(usable.values())) - np.log([one.seconds for one in priced])
            features = np.array([one.features for one in priced])
            self._residuals = Residuals.fit(ResidualExamples(features, residual))

    def _seconds(self, kernels: KernelSet) -> float:
        new = {h: k for k, h in enumerate(kernels.hashes) if h not in self._priced}
        if new:
            some = kernels.take(np.array(list(new.values()), np.int64))
            seconds = self._price(some)
            rows = map(_Priced, seconds.tolist(), compared_features(some))
            self._priced |= dict(zip(new, rows, strict=True))
        if unknown := list(dict.fromkeys(h for h in kernels.hashes if h not in self._expected)):
            self._expected |= dict(zip(unknown, self._put_right(unknown).tolist(), strict=True))
        return sum(self._expected[h] for h in kernels.hashes)

    def _put_right(self, hashes: Sequence[str]) -> Float64[np.ndarray, "J"]:
        """[J] expected seconds of kernels that were priced."""
        priced = [self._priced[h] for h in hashes]
        seconds = np.array([one.seconds for one in priced])
        if self._residuals is None:
            return seconds
        return seconds * np.exp(self._residuals.predict(np.array([one.features for one in priced])))
