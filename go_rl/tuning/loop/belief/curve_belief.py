"""DynaTune's belief: the posterior of a parametric curve, by MCMC (Zhang et al., section 4.3).

The posterior of a curve's parameters and of its noise is sampled with the affine-invariant ensemble
of Goodman and Weare (2010) through emcee, from a tight ball around the least-squares fit. The prior
is uniform within the family's bounds, and zero where the curve at the horizon is below the best
known or above the device's peak. Needs emcee, an optional extra: ``pip install 'go_rl[tuning]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.optimize import least_squares

from go_rl.core.errors import nearest
from go_rl.core.installed import optional_library
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.belief.belief import CurvePrediction
from go_rl.tuning.loop.belief.curve_families import FAMILIES, CurveFamily

POINTS = 64
"""Values of a segment that the likelihood reads, evenly spaced; each stands for its neighbours."""
LEAST_NOISE, MOST_NOISE = 5e-3, 1.0
"""Deviation of the noise, relative to the best known: timings are not known better."""
ROOM = 1.05
"""Least ratio of the peak to the best known."""
BALL = 1e-3
"""Width of the first ball of walkers, relative to the width of the bounds."""


@dataclass(frozen=True)
class CurveBelief:
    """Samples what a curve may become.

    Raises:
        MissingDependencyError: emcee is not installed.
        TuningError: the family is unknown, or a number is out of range.
    """

    family: str = "log-power"
    """Name of a family of curves, out of `FAMILIES`."""
    walkers: int = 10
    steps: int = 500
    burn_in: int = 100
    """First steps, which are discarded."""
    samples: int = 200
    """Samples of the posterior, for mean, deviation and expected improvement."""

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise TuningError(
                f"unknown curve family {self.family!r}{nearest(self.family, FAMILIES)}"
            )
        if not 0 <= self.burn_in < self.steps or self.walkers < 2 * self.dimensions:
            raise TuningError(
                f"belief: burn_in must be below steps, and walkers >= {2 * self.dimensions}, not "
                f"{self.burn_in}, {self.steps} and {self.walkers}"
            )
        import_emcee()

    @property
    def dimensions(self) -> int:
        """Parameters that are sampled: the family's, and the logarithm of the noise."""
        return len(FAMILIES[self.family].parameters) + 1

    def predict(
        self, curve: Sequence[float], horizon: int, peak: float, seed: tuple[int, int]
    ) -> CurvePrediction:
        """Return what is believed (`go_rl.tuning.loop.belief.belief.Belief.predict`)."""
        peak = room_above(curve[-1], peak)
        posterior, chain, acceptance = self.sample(curve, horizon, peak, seed)
        flat = chain[self.burn_in :].reshape(-1, self.dimensions)
        chosen = flat[np.linspace(0, len(flat) - 1, self.samples).astype(int)]
        ends = posterior.at_horizon(chosen) * peak
        best = curve[-1]
        return CurvePrediction(
            mean=float(ends.mean()),
            deviation=float(ends.std()),
            improvement=float(np.maximum(ends - best, 0.0).mean()),
            acceptance=acceptance,
        )

    def sample(
        self, curve: Sequence[float], horizon: int, peak: float, seed: tuple[int, int]
    ) -> tuple[Posterior, Float64[np.ndarray, "steps walkers D"], float]:
        """Return the posterior, the chain of each walker, and the mean acceptance."""
        emcee, peak = import_emcee(), room_above(curve[-1], peak)
        start, values = last_segment(curve)
        posterior = Posterior(FAMILIES[self.family], values / peak, start, horizon)
        rng = np.random.default_rng((*seed, len(curve)))
        first = emcee.State(
            posterior.ball(self.walkers, rng),
            random_state=np.random.RandomState(rng.integers(2**31)).get_state(),
        )
        sampler = emcee.EnsembleSampler(
            self.walkers, self.dimensions, posterior.log_probability, vectorize=True
        )
        sampler.run_mcmc(first, self.steps, skip_initial_state_check=True)
        return posterior, sampler.get_chain(), float(sampler.acceptance_fraction.mean())


def room_above(best: float, peak: float) -> float:
    """Return the peak, or more where an operator comes near it or exceeds it: the stated one is
    too low then, or the measurement wrong; neither may stop a run."""
    return max(peak, ROOM * best)


class Posterior:
    """Log-probability of parameters and noise, given one segment.

    Args:
        family: of the curve.
        values: of the segment, over the peak.
        start: trials before the segment.
        horizon: trials to come.
    """

    def __init__(
        self, family: CurveFamily, values: Float64[np.ndarray, "n"], start: int, horizon: int
    ) -> None:
        self._family, self._best = family, float(values[-1])
        kept = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(int))
        self._weight = len(values) / len(kept)
        self._x, self._y = start + kept + 1.0, values[kept]
        self._end = np.array([float(start + len(values) + horizon)])
        self._read = np.append(self._x, self._end)
        noise = np.log([LEAST_NOISE, MOST_NOISE])
        self.lower = np.append(np.array(family.lower, float), noise[0])
        self.upper = np.append(np.array(family.upper, float), noise[1])

    def at_horizon(self, theta: Float64[np.ndarray, "W D"]) -> Float64[np.ndarray, "W"]:
        """Return [W] performance over the peak at the horizon."""
        return self._family(theta[:, :-1], self._end)[:, 0]

    def log_probability(self, theta: Float64[np.ndarray, "W D"]) -> Float64[np.ndarray, "W"]:
        """Return [W] logarithms of posterior densities, up to a constant."""
        inside = np.all((theta >= self.lower) & (theta <= self.upper), axis=1)
        found = np.full(len(theta), -np.inf)
        if not inside.any():
            return found
        theta = theta[inside]
        curves, noise = self._family(theta[:, :-1], self._read), theta[:, -1]
        errors = (curves[:, :-1] - self._y) / self._best
        squares = np.einsum("wn,wn->w", errors, errors)
        density = -self._weight * (0.5 * squares * np.exp(-2 * noise) + len(self._y) * noise)
        end = curves[:, -1]
        found[inside] = np.where((end >= self._best) & (end <= 1), density, -np.inf)
        return found

    def ball(self, walkers: int, rng: np.random.Generator) -> Float64[np.ndarray, "W D"]:
        """Return [W, D] first positions, all of positive density: near the fit, or nearer to what
        is allowed where the fit is not."""
        center = self.fit()
        width = BALL * (self.upper - self.lower)
        found: list[np.ndarray] = []
        for attempt in range(60):
            drawn = center + width * rng.standard_normal((4 * walkers, len(center)))
            drawn = np.clip(drawn, self.lower, self.upper)
            found.extend(drawn[np.isfinite(self.log_probability(drawn))])
            if len(found) >= walkers:
                return np.array(found[:walkers])
            width = width * 1.15
            center = self._raised(center) if attempt == 0 else center
        raise TuningError(f"belief: no {self._family.name} curve ends above {self._best:g}")

    def fit(self) -> Float64[np.ndarray, "D"]:
        """Return the least-squares fit, and the noise that it leaves: the maximum of the
        likelihood, where the prior allows it."""
        lower, upper = self.lower[:-1], self.upper[:-1]
        inner = 1e-9 * (upper - lower)
        best = None
        for start in self._family.starts(float(self._y[0]), self._best):
            fitted = least_squares(
                self._errors, np.clip(start, lower + inner, upper - inner),
                bounds=(lower, upper), x_scale=upper - lower, max_nfev=50,
            )  # fmt: skip
            best = fitted if best is None or fitted.cost < best.cost else best
        assert best is not None
        noise = np.sqrt(2 * best.cost / len(self._y))
        return np.append(best.x, np.log(np.clip(noise, 2 * LEAST_NOISE, MOST_NOISE / 2)))

    def _errors(self, theta: np.ndarray) -> np.ndarray:
        return (self._family(theta[None], self._x)[0] - self._y) / self._best

    def _raised(self, theta: np.ndarray) -> np.ndarray:
        """Return the parameters with the one that raises the curve most moved until the curve ends
        where the prior allows it."""
        moved = theta.copy()
        for _ in range(40):
            end = self.at_horizon(moved[None])[0]
            if self._best < end <= 1:
                break
            ratio = np.clip(1.01 * self._best / max(end, 1e-12), 0.5, 2.0)
            place = 2 if self._family.name == "pow4" else 1 if "linear" in self._family.name else 0
            moved[place] = moved[place] * ratio
        return np.clip(moved, self.lower, self.upper)


def import_emcee() -> Any:
    """Return emcee.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return optional_library(
        "emcee",
        "DynaTune's belief needs emcee; install it with: pip install 'go_rl[tuning]' "
        "-c constraints.txt",
    )


JUMP = 0.2
"""A rise by more, relative to the performance before it, begins another segment."""


def segment_starts(curve: Sequence[float]) -> list[int]:
    """Return where the segments of a curve begin, ascending; the trials before the first one that
    worked belong to none."""
    values = np.asarray(curve, np.float64)
    working = np.flatnonzero(values > 0)
    if not len(working):
        return []
    first = int(working[0])
    rises = values[first + 1 :] > (1 + JUMP) * values[first:-1]
    return [first, *(np.flatnonzero(rises) + first + 1).tolist()]


def last_segment(curve: Sequence[float]) -> tuple[int, Float64[np.ndarray, "n"]]:
    """Return how many trials lie before the last jump, and the values from there on: each segment
    has parameters of its own, so that only these tell about the future."""
    start = segment_starts(curve)[-1]
    return start, np.asarray(curve[start:], np.float64)
