"""`Evaluation`: value and resources of a plan; `Status`: its outcome, a failure is a value, not
a NaN; `Fidelity`: how a ring plan follows from what was proposed."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from jaxtyping import Float64


class Status(enum.StrEnum):
    """Outcome of a search or an evaluation; each member carries a sentence for the user."""

    OK = "ok"
    INFEASIBLE = "infeasible"
    OUT_OF_MEMORY = "out-of-memory"
    ILLEGAL = "illegal"
    UNSUPPORTED = "unsupported"
    GAVE_UP = "gave-up"

    @property
    def sentence(self) -> str:
        """One sentence that explains the member."""
        return _SENTENCES[self]

    @property
    def ok(self) -> bool:
        """True for a legal plan that fits."""
        return self is Status.OK


_SENTENCES = {
    Status.OK: "The plan is legal and fits.",
    Status.INFEASIBLE: "No plan obeys the rules: this was proved.",
    Status.OUT_OF_MEMORY: "A device needs more memory than it has.",
    Status.ILLEGAL: "The plan breaks a static rule.",
    Status.UNSUPPORTED: "A node sits on a device that cannot run it.",
    Status.GAVE_UP: "No legal plan was found, and it was not proved that there is none.",
}

STATUS_CODES = tuple(Status)
"""Status by the small integer that compiled functions return."""
OK, INFEASIBLE, OUT_OF_MEMORY, ILLEGAL, UNSUPPORTED, GAVE_UP = range(len(STATUS_CODES))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The evaluation of one plan. ``D`` devices, ``L`` links: on a ring, link i joins chip i to
    chip i + 1; for makespan, link ``i D + j`` goes from device i to device j."""

    status: Status
    seconds: float
    """The objective (T_max, largest load or makespan); inf if the plan is unusable."""
    device_seconds: Float64[np.ndarray, "D"]
    """[D] compute (and, for max-load, communication) of each device, seconds an iteration."""
    link_seconds: Float64[np.ndarray, "L"]
    """[L] time that each link is busy, seconds an iteration."""
    link_bytes: Float64[np.ndarray, "L"]
    """[L] traffic of each link, pass-through included, bytes an iteration."""
    weight_bytes: Float64[np.ndarray, "D"]
    """[D] weights resident on each device."""
    streamed_bytes: Float64[np.ndarray, "D"]
    """[D] weights streamed from the host in each iteration because one operator's exceed the
    memory."""
    peak_bytes: Float64[np.ndarray, "D"]
    """[D] resident weights plus the largest sum of live tensors."""
    detail: str = ""
    """Failure and its place, in words; empty when nothing failed."""

    @property
    def throughput(self) -> float:
        """Iterations a second; 0 for a failure."""
        return 1.0 / self.seconds if self.seconds > 0 else 0.0

    @property
    def effective_devices(self) -> float:
        """Devices that share the work, uneven shares counting less; see `effective_count`."""
        return effective_count(self.device_seconds)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers; infinities become None. Of a list of more than
        `LONGEST_LIST` numbers only those that are not 0 are written, each with its place."""
        document: dict[str, Any] = {"status": str(self.status), "detail": self.detail}
        document["seconds"] = finite(self.seconds)
        for name in _ARRAYS:
            document[name] = _list(getattr(self, name))
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Evaluation:
        """Read what `to_json` wrote."""
        seconds = document["seconds"]
        return cls(
            status=Status(document["status"]),
            seconds=float("inf") if seconds is None else float(seconds),
            detail=str(document.get("detail", "")),
            **{name: _array(document[name]) for name in _ARRAYS},
        )


_ARRAYS = (
    "device_seconds",
    "link_seconds",
    "link_bytes",
    "weight_bytes",
    "streamed_bytes",
    "peak_bytes",
)


LONGEST_LIST = 4096
"""Most numbers that are all written: the links between 64 devices."""


def _list(numbers: Float64[np.ndarray, "D"]) -> Any:
    if len(numbers) <= LONGEST_LIST:
        return [finite(x) for x in numbers]
    there = np.flatnonzero(numbers).tolist()
    return {"entries": len(numbers), "nonzero": [[i, finite(numbers[i])] for i in there]}


def _array(numbers: list[Any]) -> Float64[np.ndarray, "D"]:
    return np.array([np.inf if x is None else float(x) for x in numbers], np.float64)


def effective_count(amounts: Float64[np.ndarray, "D"]) -> float:
    """Return the exponential of the entropy of [D] shares of a whole: D where all are equal, 1
    where one has everything, 0 of nothing.

    The Hill number of order one (Hill, "Diversity and evenness", Ecology 1973).
    """
    held = amounts[amounts > 0]
    if not held.size or not np.isfinite(held).all():
        return 0.0
    share = held / held.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def finite(value: float | None) -> float | None:
    """Return the number, or None where JSON cannot represent it."""
    return None if value is None or not np.isfinite(value) else float(value)


def failed(status: Status, devices: int, detail: str) -> Evaluation:
    """Return the evaluation of a plan that could not be evaluated."""
    zeros, none = np.zeros(devices), np.zeros(0)
    return Evaluation(status, float("inf"), zeros, none, none, zeros, zeros, zeros, detail)


OPTIMAL_GAP = 1e-6
"""Largest value / bound - 1 that counts as closed: the difference that rounding, and the integer
costs of CP-SAT, may leave between an optimal plan and its bound."""


def proved_optimal(value: float, bound: float) -> bool:
    """Return whether a proven lower ``bound`` (seconds) shows that nothing beats ``value``
    (seconds); never for a failure, whose value is infinite."""
    return isfinite(value) and value <= bound * (1.0 + OPTIMAL_GAP)


class Means(enum.IntEnum):
    """Ways in which a proposal is made legal."""

    NONE = 0
    """Not at all."""
    INDEPENDENT = 1
    """Every block drawn on its own, or taken as proposed; all of it was legal."""
    CUTS = 2
    """An exact draw of the cuts of one linear order; by FIX, the likeliest cuts."""
    TREE = 3
    """Tree search with propagation."""

    @property
    def word(self) -> str:
        """Name in documents and in ``info``."""
        return self.name.lower()


@dataclass(frozen=True)
class Fidelity:
    """Distance of a plan from the proposal that the solver made legal.

    Copied nodes, which go where their readers are, do not count.
    """

    legalized_by: Means
    displacement: float | None = None
    """Mean distance of the nodes' chips from the proposed ones, in chips; of a proposal that is a
    distribution, from its mean. None: nothing was proposed."""
    log_prob_gap: float | None = None
    """Mean log-probability of a unit's chip in the likeliest legal plan known, less that here, in
    nats, >= 0; None: no probabilities were proposed, or no other plan is known."""

    def to_json(self) -> dict[str, Any]:
        """Return the object described in docs/plan.md."""
        return {
            "legalized_by": self.legalized_by.word,
            "displacement": finite(self.displacement),
            "log_prob_gap": finite(self.log_prob_gap),
        }


NOTHING_MADE = Fidelity(Means.NONE)
"""Fidelity of a proposal that nothing legal was found for."""
