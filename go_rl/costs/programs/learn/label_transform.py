"""Transforms of seconds into the labels that networks learn (CDMPP, section 5.4).

Seconds are first divided by a unit, half the fastest example, so that every label of `box-cox`,
`yeo-johnson` and `log` is above 0: percentage losses of labels that cross 0 have no meaning. (So
nothing is standardised here, as scikit-learn's ``PowerTransformer`` would by default.) A network
learns ``(label - mean) / deviation``; its losses are those of labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64
from scipy.special import boxcox, inv_boxcox
from scipy.stats import boxcox_normmax, norm, yeojohnson, yeojohnson_normmax

from go_rl.core import TrainingError
from go_rl.core.errors import nearest

LabelKind = Literal["box-cox", "yeo-johnson", "quantile", "log", "none"]
KINDS: tuple[LabelKind, ...] = ("box-cox", "yeo-johnson", "quantile", "log", "none")
KNOTS = 257
"""Quantiles that a `quantile` transform keeps; between them it is linear in log seconds."""
TAIL = 1e-4
"""Ranks are kept so far from 0 and 1."""
UP = 5.0
"""Offset added to labels of `quantile`, which are normal scores, so that they are above 0."""
MARGIN = 4.0
"""Labels are inverted up to this many deviations beyond those learned from: powers explode."""


@dataclass(frozen=True, eq=False)
class LabelTransform:
    """A transform fitted to seconds."""

    kind: LabelKind
    unit: float
    """Unit of the labels, in seconds."""
    power: float
    """Power λ of `box-cox` and `yeo-johnson`."""
    knots: Float64[np.ndarray, "Q"]
    """[Q] log seconds over the unit at evenly spread ranks, of `quantile`; else empty."""
    mean: float
    deviation: float
    """Deviation of the labels fitted to."""
    low: float
    high: float
    """Least and largest label fitted to."""

    @classmethod
    def fit(cls, kind: str, seconds: Float64[np.ndarray, "P"]) -> LabelTransform:
        """Return a transform whose parameters are the likeliest of these seconds.

        Raises:
            TrainingError: there is no such kind, or fewer than two distinct seconds.
        """
        known = _known_kind(kind)
        if known is None:
            raise TrainingError(f"no label transform {kind!r}{nearest(kind, KINDS)}")
        if len(np.unique(seconds)) < 2:
            raise TrainingError("labels: at least two different times are needed")
        unit = float(seconds.min()) / 2
        ratio = seconds / unit
        knots = np.zeros(0)
        likeliest: Any = 0.0
        if kind == "box-cox":
            likeliest = boxcox_normmax(ratio, method="mle")
        if kind == "yeo-johnson":
            likeliest = yeojohnson_normmax(ratio)
        if kind == "quantile":
            knots = np.quantile(np.log(ratio), np.linspace(0, 1, KNOTS))
            knots = knots + 1e-9 * np.arange(KNOTS)  # strictly ascending
        power = float(likeliest)
        bare = cls(known, unit, power, knots, 0.0, 1.0, -np.inf, np.inf)
        labels = bare.labels(seconds)
        return cls(
            known, unit, power, knots, float(labels.mean()), float(labels.std()),
            float(labels.min()), float(labels.max()),
        )  # fmt: skip

    def labels(self, seconds: Float64[np.ndarray, "P"]) -> Float64[np.ndarray, "P"]:
        """Return [P] labels."""
        ratio = np.asarray(seconds, np.float64) / self.unit
        if self.kind == "box-cox":
            return np.asarray(boxcox(ratio, self.power))
        if self.kind == "yeo-johnson":
            return np.asarray(yeojohnson(ratio, self.power))
        if self.kind == "log":
            return np.log(ratio)
        if self.kind == "quantile":
            rank = np.interp(np.log(ratio), self.knots, np.linspace(0, 1, KNOTS))
            return UP + np.asarray(norm.ppf(np.clip(rank, TAIL, 1 - TAIL)))
        return ratio

    def seconds(self, labels: Float64[np.ndarray, "*P"]) -> Float64[np.ndarray, "*P"]:
        """Return [..., P] seconds of labels, which are first kept near those fitted to."""
        reach = MARGIN * self.deviation
        labels = np.clip(labels, self.low - reach, self.high + reach)
        return self.unit * np.maximum(self._ratio(labels), 1e-3)

    def _ratio(self, labels: Float64[np.ndarray, "*P"]) -> Float64[np.ndarray, "*P"]:
        if self.kind == "box-cox":
            return np.asarray(inv_boxcox(_within_box_cox(labels, self.power), self.power))
        if self.kind == "yeo-johnson":
            shifted = _within_box_cox(np.maximum(labels, 0.0), self.power)
            return np.asarray(inv_boxcox(shifted, self.power)) - 1.0
        if self.kind == "log":
            return np.exp(labels)
        if self.kind == "quantile":
            return np.exp(np.interp(norm.cdf(labels - UP), np.linspace(0, 1, KNOTS), self.knots))
        return labels

    def to_json(self) -> dict[str, object]:
        """Return the transform as JSON."""
        return {
            "kind": self.kind, "unit": self.unit, "power": self.power, "mean": self.mean,
            "deviation": self.deviation, "low": self.low, "high": self.high,
            "knots": self.knots.tolist(),
        }  # fmt: skip

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> LabelTransform:
        """Read what `to_json` wrote; else a `KeyError`, `TypeError` or `ValueError`."""
        fields = dict(document)
        named = fields.pop("kind")
        kind = _known_kind(str(named))
        if kind is None:
            raise ValueError(f"label transform {named!r}")
        knots = np.array(fields.pop("knots"), np.float64)
        numbers = {name: float(value) for name, value in fields.items()}
        return LabelTransform(kind=kind, knots=knots, **numbers)


def _known_kind(name: str) -> LabelKind | None:
    kinds: dict[str, LabelKind] = {kind: kind for kind in KINDS}
    return kinds.get(name)


def _within_box_cox(labels: np.ndarray, power: float) -> np.ndarray:
    """Labels that a Box-Cox transform can have: those of a negative power are below -1 / power."""
    if power < 0:
        return np.minimum(labels, -1.0 / power - 1e-6)
    if power > 0:
        return np.maximum(labels, -1.0 / power + 1e-6)
    return labels
