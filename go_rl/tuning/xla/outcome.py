"""What tuning found: `Tuned`, and the folder it is kept in."""

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
    """The best so far, from here on."""

    minutes: float
    """Of tuning, when it was found."""
    seconds: float
    """Of the graph, as known then."""
    default_seconds: float
    """Of XLA's default, as known then: it is measured again, too."""
    found: str
    """What it was, such as ``default``."""


@dataclass(frozen=True)
class Check:
    """Baseline and winner, measured again alternately."""

    baseline_seconds: float
    tuned_seconds: float
    """Sums of the median of each kernel's rounds."""
    rounds: int

    @property
    def faster(self) -> bool:
        """Whether the winner is one."""
        return self.tuned_seconds < self.baseline_seconds


@dataclass(frozen=True, eq=False)
class Tuned:
    """What is kept, and how it was found."""

    model: str
    guide: str
    target: str
    scheduler: str
    tuner: str
    fusion: GraphFusion
    """The fusion kept."""
    settings: Mapping[str, str]
    """Setting of each kernel that is not run as it comes, by hash."""
    seconds: Mapping[str, float]
    """Of each kernel kept, by hash, as measured while tuning."""
    kept: str
    """``tuned`` or ``baseline``: XLA's default fusion and flags."""
    check: Check | None
    """None: the baseline was the best all along, or the winner could not be checked."""
    curve: tuple[TunePoint, ...]
    minutes: float
    """Of tuning; the check comes on top."""
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
    def baseline_seconds(self) -> float:
        """Of the graph as XLA has it: checked, or as measured while tuning."""
        return self.check.baseline_seconds if self.check else self.curve[0].seconds

    @property
    def kept_seconds(self) -> float:
        """Of the graph as it is kept, measured in the same way."""
        if self.kept == "baseline" or self.check is None:
            return self.baseline_seconds
        return self.check.tuned_seconds

    @property
    def speedup(self) -> float:
        """Baseline over what is kept; 1: nothing faster was found."""
        return self.baseline_seconds / self.kept_seconds


def tuned_document(tuned: Tuned, config: TuningConfig) -> dict[str, Any]:
    """Return what ``tuned.json`` holds."""
    graph = tuned.fusion.graph
    return {
        "model": tuned.model, "graph": graph.digest, "target": tuned.target,
        "kept": tuned.kept, "speedup": tuned.speedup,
        "baseline_seconds": tuned.baseline_seconds, "kept_seconds": tuned.kept_seconds,
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
