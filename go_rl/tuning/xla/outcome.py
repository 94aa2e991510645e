"""`Tuned`: the result of tuning kernels, and the folder it is kept in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from go_rl.tuning.config import TuneConfig, TuningConfig
from go_rl.tuning.loop.result_folder import SUMMARY, write_results
from go_rl.tuning.xla.fusions import GraphFusion


@dataclass(frozen=True)
class TunePoint:
    """Best fusion and settings at one moment, until the next point."""

    minutes: float
    """Minutes of tuning when it was found."""
    seconds: float
    """Seconds of the graph, as known then."""
    default_seconds: float
    """Seconds of XLA's default, as known then: it is measured again, too."""
    found: str
    """Origin of the fusion, such as ``default``."""


@dataclass(frozen=True)
class Check:
    """Times of default and winner, measured again alternately."""

    default_seconds: float
    tuned_seconds: float
    """Sum of the median of each kernel's rounds, for the winner."""
    rounds: int

    @property
    def faster(self) -> bool:
        """Whether the winner is faster than the default."""
        return self.tuned_seconds < self.default_seconds


@dataclass(frozen=True, eq=False)
class Tuned:
    """Result of tuning: what is kept, and how it was found."""

    model: str
    guide: str
    target: str
    scheduler: str
    tuner: str
    fusion: GraphFusion
    """Fusion that is kept."""
    settings: Mapping[str, str]
    """Setting of each kernel that is not run as it comes, by hash."""
    seconds: Mapping[str, float]
    """Seconds of each kernel kept, by hash, as measured while tuning."""
    kept: str
    """Kind of what is kept: ``tuned``, or ``default``, XLA's default fusion and flags."""
    check: Check | None
    """Final check; None: the default was the best all along, or the winner could not be
    checked."""
    curve: tuple[TunePoint, ...]
    minutes: float
    """Minutes of tuning; the check comes on top."""
    trials: int
    """Fusions and settings tried for this folder, in all of its runs."""
    measured: int
    """Measurements of kernels that this run made, those of the check included."""
    replayed: int
    """Measurements that were in the records, and took the time that they took then."""
    candidates: int
    """Fusions that were measured whole."""
    notes: tuple[str, ...]

    @property
    def default_seconds(self) -> float:
        """Seconds of the graph as XLA has it: checked, or as measured while tuning."""
        return self.check.default_seconds if self.check else self.curve[0].seconds

    @property
    def kept_seconds(self) -> float:
        """Seconds of the graph as it is kept: checked, or as measured while tuning."""
        if self.kept == "default" or self.check is None:
            return self.default_seconds
        return self.check.tuned_seconds

    @property
    def speedup(self) -> float:
        """Seconds of the default over those of what is kept; 1: nothing faster was found."""
        return self.default_seconds / self.kept_seconds


def tuned_document(tuned: Tuned, config: TuningConfig) -> dict[str, Any]:
    """Return what ``tuned.json`` holds."""
    graph = tuned.fusion.graph
    return {
        "model": tuned.model, "graph": graph.digest, "target": tuned.target,
        "kept": tuned.kept, "speedup": tuned.speedup,
        "default_seconds": tuned.default_seconds, "kept_seconds": tuned.kept_seconds,
        "check": asdict(tuned.check) if tuned.check else None,
        "fusion": {"origin": tuned.fusion.origin, "leader": tuned.fusion.leader.tolist()},
        "kernels": _kernels(tuned),
        "guide": tuned.guide, "scheduler": tuned.scheduler, "tuner": tuned.tuner,
        "trials": tuned.trials, "minutes": tuned.minutes, "measured": tuned.measured,
        "replayed": tuned.replayed, "candidates": tuned.candidates,
        "curve": [asdict(point) for point in tuned.curve],
        "notes": list(tuned.notes), "config": asdict(config),
    }  # fmt: skip


def _kernels(tuned: Tuned) -> list[dict[str, Any]]:
    names = [str(name) for name in tuned.fusion.graph.names]
    return [
        {
            "hash": part.hash,
            "nodes": [names[node] for node in part.nodes],
            "setting": json.loads(tuned.settings.get(part.hash) or "{}"),
            "seconds": tuned.seconds[part.hash],
        }
        for part in tuned.fusion.parts
    ]


def write_tuned(tuned: Tuned, config: TuneConfig, folder: Path) -> None:
    """Write ``tuned.json`` and ``curve.csv``, each aside and renamed."""
    write_results(folder, tuned.curve, {SUMMARY: tuned_document(tuned, config)})
