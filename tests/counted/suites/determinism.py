"""Twelve commands, each in two processes with other hash seeds and threads: equal, clocks aside."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.suite import Suite

from ..killed_runs import RUNS, contents
from ..malformed.profiles import TEXT

ROOT = Path(__file__).resolve().parents[3]
CLOCKS = frozenset({"wall_seconds", "cold_seconds", "seconds", "time"})
"""Fields that say how long something took."""
SETTINGS: tuple[dict[str, str], ...] = (
    {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    {"PYTHONHASHSEED": "4711", "OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2"},
)
LONGEST = 300.0
"""Seconds of one process."""
FEW = ("--samples", "40", "--json")
Files = Callable[[Path], Any]


def printed(out: str) -> Any:
    """A command's JSON document without clocks."""
    return clockless(json.loads(out))


def clockless(document: Any) -> Any:
    """A document without what depends on the machine's speed; curves keep samples and values."""
    if isinstance(document, dict):
        return {
            key: [[point[0], point[-1]] for point in value] if key == "curve" else clockless(value)
            for key, value in document.items()
            if key not in CLOCKS
        }
    return [clockless(each) for each in document] if isinstance(document, list) else document


def runs(folder: Path) -> list[Any]:
    """The runs of a comparison."""
    lines = (folder / "compared" / "runs.jsonl").read_text().splitlines()
    return [clockless(json.loads(line)) for line in lines]


@dataclass(frozen=True)
class Pipeline:
    """A command, and what of its results must be equal."""

    arguments: tuple[str, ...]
    result: Files | None = None
    """Of its folder; None: what it prints."""
    files: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = field(default=lambda folder: None)


def _resumable(name: str) -> Pipeline:
    run = RUNS[name]
    return Pipeline(run.arguments, run.result, run.files, run.prepare)


PROFILE = {"model.json": TEXT}
PIPELINES: tuple[Pipeline, ...] = (
    Pipeline(("optimize", "zoo:vae-3-layers", "--hardware", "ring4", *FEW)),
    Pipeline(("optimize", "zoo:gcn-3-layers", "--hardware", "ring6", "--rules", "strict",
              "--method", "annealing", *FEW)),
    Pipeline(("optimize", "model.json", "--objective", "max-load", *FEW), files=PROFILE),
    Pipeline(("optimize", "zoo:ncf", "--objective", "latency", "--hardware", "p100x2", *FEW)),
    Pipeline(("optimize", "zoo:vae-3-layers", "--hardware", "p100x4", *FEW)),
    Pipeline(("optimize", "zoo:gcn-3-layers", "--hardware", "p100x2", "--method", "hdp", *FEW)),
    Pipeline(("graph", "zoo:vae-3-layers", "--save", "graph.npz"), contents("graph.npz")),
    _resumable("train-ring"),
    _resumable("train-makespan"),
    _resumable("finetune"),
    Pipeline(("train", "kernels", "kernels-cpu-1", "w.npz", "--updates", "2", "--members", "1"),
             contents("w.npz")),
    Pipeline(("evaluate", "zoo:vae-3-layers", "--hardware", "ring4", "--methods", "greedy",
              "random", "annealing", "--samples", "20", "--seeds", "2", "--out", "compared"), runs),
)  # fmt: skip


def trial(index: int) -> str | None:
    """Pipeline ``index`` under all settings."""
    pipeline = PIPELINES[index]
    results = [outcome(pipeline, setting) for setting in SETTINGS]
    if all(result == results[0] for result in results):
        return None
    return f"go-rl {' '.join(pipeline.arguments)}: {difference(*results[:2])}"


def outcome(pipeline: Pipeline, setting: dict[str, str]) -> Any:
    """What a process leaves behind or prints."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in pipeline.files.items():
            (folder / file).write_text(text)
        pipeline.prepare(folder)
        done = subprocess.run(
            [sys.executable, "-m", "go_rl", *pipeline.arguments],
            cwd=folder,
            env={**os.environ, **setting, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-300:]}")
        return pipeline.result(folder) if pipeline.result else printed(done.stdout)


def difference(one: Any, two: Any, where: str = "") -> str:
    """The first place where two documents differ."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        key = next(key for key in one if one[key] != two[key])
        return difference(one[key], two[key], f"{where}.{key}")
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        place = next(i for i in range(len(one)) if one[i] != two[i])
        return difference(one[place], two[place], f"{where}[{place}]")
    return f"{where or 'it'} is {str(one)[:80]} and {str(two)[:80]}"


SUITE = Suite(
    name="determinism",
    proves="twelve commands print and write the same in two processes with other hash seeds and "
    "numbers of threads, clocks left out",
    unit="pipelines",
    count=len(PIPELINES),
    trial=trial,
    limit_seconds=900.0,
)
