"""Live tuning of SqueezeNet on this CPU: schedulers at equal minutes, and the tuned network beside
XLA's and ONNX Runtime's on the same core.

``python -m experiments tuning.live FOLDER --minutes 3`` writes `experiments/results/live_tuning.md`
and ``.csv``; what is tuned in FOLDER goes on. ``--seeds 0 1 2`` tells the spread. Needs the extras
tvm, tuning and onnxruntime.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jax
import numpy as np
import onnx
import tyro

import go_rl
from experiments.experiment import Experiment
from experiments.page_text import grid_table
from experiments.rows import grouped as rows_by
from experiments.statistics import with_range
from experiments.tuning.squeezenet import SHAPE, jax_function, onnx_network
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.core.files.whole_file import write_text
from go_rl.costs.timing.config import CollectConfig, TimingConfig
from go_rl.report.text_table import markdown_table
from go_rl.tuning.config import TuneProgramsConfig, TuningError
from go_rl.tuning.tvm.measure.measurers import LocalMeasurer
from go_rl.tuning.tvm.measure.worker import Measuring, NetworkRequest, RivalRequest
from go_rl.tuning.tvm.models.jax_function import jax_network
from go_rl.tuning.tvm.models.read_model import read_model

MODEL = "squeezenet.onnx"
TIMEOUT = 600.0
MOMENTS = (0.25, 0.5, 1.0)
"""Shares of the minutes at which latencies are told."""
HEADS = ("scheduler", "seeds", "minutes", "trials", "untuned ms", "TVM tuned ms", "XLA ms",
         "ONNX Runtime ms", "XLA / tuned", "ONNX Runtime / tuned", "error")  # fmt: skip


SEED = "-seed-"
"""Between a run's scheduler and its seed, where that is not 0."""


@dataclass(frozen=True)
class Live(Experiment):
    """Options of the script."""

    page_name: ClassVar[str] = "live_tuning"

    folder: Annotated[Path, tyro.conf.Positional]
    """What is tuned there goes on."""
    minutes: float = 3.0
    """Of tuning, for each scheduler."""
    schedulers: tuple[str, ...] = ("dynatune", "round-robin")
    seeds: tuple[int, ...] = (0,)
    """Of the schedulers."""
    core: int | None = None
    """Core that measures."""
    beside: str = "nothing else"
    """What else the machine does; the page says so."""

    def run(self) -> None:
        """Tune, compare, write the page."""
        summaries = {name: tuned(self, name) for name in configs(self)}
        times = compared(self)
        groups = grouped(summaries)
        rows = [
            _row(name, [summaries[x] for x in runs], [times[x] for x in runs], times)
            for name, runs in groups.items()
        ]
        text = (
            "# Live tuning of SqueezeNet 1.1 (128 x 128) through TVM on one core\n\nEach scheduler "
            f"over the inner tuner `annealing`, {self.minutes:g} minutes a run; medians over the "
            f"seeds, in brackets their range; measured beside {self.beside}. All networks compute "
            "in one process on one core, visited in turn (`go_rl.costs.timing.timing`); a ratio "
            "above 1 says that the rival is slower than the tuned network. *Untuned*: the loops as "
            f"they are under LLVM.\n\n{markdown_table(HEADS, rows)}\n{_order(self)}"
        )
        self.write_page(text)
        table = "\n".join(",".join(row) for row in (HEADS, *rows))
        write_text(self.path(".csv"), table + "\n")


def configs(options: Live) -> dict[str, TuneProgramsConfig]:
    """Return what is tuned how, by the name of its folder: seed by seed, all schedulers in turn."""
    plain = TuneProgramsConfig(minutes=options.minutes, core=options.core)
    return {
        f"{name}{SEED}{seed}" if seed else name: replace(plain, scheduler=name, seed=seed)
        for seed in options.seeds
        for name in options.schedulers
    }


def tuned(options: Live, name: str) -> dict[str, Any]:
    """Return the summary of the tuned network; one that had its minutes is not tuned again."""
    folder, path = options.folder / name, options.folder / MODEL
    summary = folder / "tuned.json"
    known = json.loads(summary.read_text()) if summary.exists() else {}
    if known.get("config", {}).get("minutes", 0) < options.minutes:
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx_network(), str(path))
        go_rl.tune_programs(path, folder, configs(options)[name], report=print)
        known = json.loads(summary.read_text())
    return known


def compared(options: Live) -> dict[str, float]:
    """Return seconds of the tuned networks and their rivals, visited in turn by one worker.

    Raises:
        TuningError: one of them cannot be timed.
    """
    timing = TimingConfig(visits=24, seconds=0.03, pace_seconds=5.0)
    config = CollectConfig(target="live", core=options.core, timeout=TIMEOUT, timing=timing)
    image = jax.ShapeDtypeStruct(SHAPE, np.float32)
    network = read_model(options.folder / MODEL)
    other = jax_network("squeezenet", jax_function(), (image,), None)
    measurer = LocalMeasurer(config, options.folder)
    with scratch_folder("rivals") as place, closing(measurer):
        common = Measuring(TuneProgramsConfig().memory, measurer.full_pace())
        asked = network.inputs, common, timing
        requests: dict[str, Any] = {
            name: NetworkRequest(str((options.folder / name / "module.so").absolute()), *asked)
            for name in configs(options)
        }
        for each in (network, other):
            requests |= {rival.name: RivalRequest(rival, *asked) for rival in each.rivals(place)[0]}
        outcomes = measurer.in_turn([*requests.values()], config)
    found: dict[str, float] = {}
    for name, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, str):
            raise TuningError(f"{name}: {outcome}")
        found[name] = outcome["seconds"]
    return found


def _order(options: Live) -> str:
    """Latency while tuning."""
    curves = {name: read_curve(options.folder / name / "curve.csv") for name in configs(options)}

    def told(latency: Callable[[np.ndarray], float]) -> Callable[[Sequence[str]], str]:
        return lambda runs: spread([1e3 * latency(curves[each]) for each in runs])

    columns = {
        f"after {share:.0%}, ms": told(lambda curve, s=share: at(curve, options.minutes * s))
        for share in MOMENTS
    }
    columns["mean, ms"] = told(lambda curve: mean_latency(curve, options.minutes))
    return (
        "\n## Order of the schedulers\n\nLatency as measured while tuning (sum of the best times), "
        "after shares of the minutes, and its mean over them.\n\n"
        f"{grid_table('scheduler', grouped(curves), columns)}"
    )


def read_curve(path: Path) -> np.ndarray:
    """Return [B, 2] minutes and seconds of the network from then on."""
    lines = path.read_text().splitlines()[1:]
    return np.array([[float(word) for word in line.split(",")[:2]] for line in lines])


def at(curve: np.ndarray, minutes: float) -> float:
    """Return the network's seconds after so many minutes."""
    return float(curve[curve[:, 0] <= minutes][-1, 1])


def mean_latency(curve: np.ndarray, minutes: float) -> float:
    """Return the network's mean seconds over the first minutes."""
    known = curve[curve[:, 0] < minutes]
    lasts = np.diff(np.append(known[:, 0], minutes))
    return float(lasts @ known[:, 1] / minutes)


def grouped(runs: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return names of runs by scheduler, seeds together."""
    return rows_by(runs, lambda name: name.partition(SEED)[0])


def spread(values: Sequence[float]) -> str:
    """Return the median of values and, of several, their range."""
    told = f"{float(np.median(values)):.2f}"
    return told if len(values) == 1 else with_range(values, middle=np.median, to="–")


def _row(
    name: str,
    summaries: Sequence[dict[str, Any]],
    ours: Sequence[float],
    times: Mapping[str, float],
) -> tuple[str, ...]:
    rivals = times["XLA"], times["ONNX Runtime"]
    middle = {key: float(np.median([summary[key] for summary in summaries]))
              for key in ("minutes", "trials", "untuned_ms")}  # fmt: skip
    return (
        name, f"{len(summaries)}", f"{middle['minutes']:.2f}", f"{middle['trials']:.0f}",
        f"{middle['untuned_ms']:.3g}", spread([1e3 * seconds for seconds in ours]),
        *(f"{1e3 * seconds:.3g}" for seconds in rivals),
        *(spread([rival / seconds for seconds in ours]) for rival in rivals),
        f"{max(summary['max_relative_error'] for summary in summaries):.1e}",
    )  # fmt: skip
