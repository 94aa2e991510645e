"""Whether exported stages compute what the whole model computes, on many networks.

Run: ``python -m experiments plans.stages_equal``. Small networks are planned in two settings in
turn, large ones in one; each plan is exported, run, and every output compared. Exporters are no
dependencies: ``pip install torch torchvision transformers onnxscript skl2onnx onnxmltools pandas
sympy``.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import go_rl
from experiments.experiment import Experiment
from experiments.page_text import markdown_table
from experiments.plans.stage_networks import Made, large_networks, small_networks
from experiments.readers.foreign_models import read_as_advised
from experiments.rows import grouped
from go_rl.core import FREE, GoRLError, NodeId, OpGraph
from go_rl.graphs.cutting.colocation import with_colocation
from go_rl.plans.pipeline.config import PipelineConfig


@dataclass(frozen=True)
class Setting:
    """How a network is planned: by a method that needs no time, whose cuts are of many kinds."""

    objective: str
    hardware: str
    method: str
    rules: str = "default"

    def __str__(self) -> str:
        return self.objective if self.rules == "default" else f"{self.objective}, {self.rules}"


SETTINGS = (
    Setting("ring", "ring4-900mb", "random", "strict"),
    Setting("ring", "ring4-900mb", "random", "replicate"),
    Setting("max-load", "p100x4", "greedy"),
    Setting("ring", "ring2-900mb", "linear-dp", "relay"),
    Setting("makespan", "p100x2", "default"),
)
APART = 15
"""For makespan, each operator so far from the next one is pinned to the other device: small
networks would have all on one."""
TOLERANCE = 1e-4
NAN = float("nan")
HEAD = """# Stages compute what the whole model computes

Each network planned, its stages exported, run as processes on this machine's cores by onnxruntime,
and every output compared with the whole model's, run by one process with all cores: the largest
relative difference, of numbers of at least a thousandth of the output's largest. Parts of one
operator of the file stay together (`--colocate operators`). Where a difference is beyond 0.0001
the same is run with operators as the files have them (`--as-written`): onnxruntime then joins none,
which it does differently in a part and in the whole. In half precision (`half`) onnxruntime
computes wider on a processor and rounds where it has to, at every cut, by more than 0.0001;
`go-rl run --check` allows 0.02 there, of numbers of at least a tenth of the largest.
"""


@dataclass(frozen=True)
class EqualRow:
    """One network in one setting."""

    network: str
    setting: str = ""
    method: str = ""
    hardware: str = ""
    operators: int = 0
    stages: int = 0
    copies: int = 0
    """Of operators, in the plan."""
    export_seconds: float = 0.0
    """Of the processor."""
    max_relative: float = NAN
    as_written: float = NAN
    """The same where onnxruntime joins no operators, in stages and in the whole; nan: not run, for
    the other is within `TOLERANCE`."""
    problem: str = ""
    """Reason why nothing was compared; empty: something was."""

    @property
    def equal(self) -> bool:
        """Whether the outputs agree, operators joined or not."""
        return self.max_relative <= TOLERANCE or self.as_written <= TOLERANCE


@dataclass(frozen=True)
class StagesEqual(Experiment):
    """Options of the script."""

    models: Path | None = None
    """Folder in which models are kept; None: each is made anew."""
    only: str = ""
    """Only networks with this in their name."""

    def run(self) -> None:
        """Plan, export, run, compare."""
        kept = self.kept_rows(EqualRow)
        several = [(name, make, 2) for name, make in small_networks()]
        single = [(name, make, 1) for name, make in large_networks()]
        for number, (name, make, count) in enumerate((*several, *single)):
            settings = [SETTINGS[(number + i) % len(SETTINGS)] for i in range(count)]
            left = [each for each in settings if not kept.has(name, str(each))]
            if left and self.only in name and not kept.has(name, ""):
                for row in self._rows(name, make, left):
                    kept.add(row)
        self.write_page(_page(kept.rows))

    def _rows(self, name: str, make: Made, settings: list[Setting]) -> Iterator[EqualRow]:
        with TemporaryDirectory() if self.models is None else nullcontext(self.models) as folder:
            model = Path(folder) / f"{name}.onnx"
            try:
                if not model.exists():
                    make(model)
                reading = read_as_advised(model)
                if reading.graph is None:
                    raise GoRLError(reading.refusals[-1])
            except Exception as error:  # exporters fail in as many ways as there are
                said = _said(error).replace(f"{folder}/", "")
                yield EqualRow(name, problem=said)
                return
            for setting in settings:
                yield _row(name, model, reading.graph, setting)


def _said(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _row(name: str, model: Path, graph: OpGraph, setting: Setting) -> EqualRow:
    nothing = EqualRow(name, str(setting), setting.method, setting.hardware)
    with TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        stages = Path(folder) / "stages"
        try:
            plan = go_rl.optimize(
                graph, hardware=setting.hardware, objective=setting.objective, samples=1,
                method=setting.method, rules=setting.rules, colocate="operators",
                fixed=_pinned(graph) if setting.objective == "makespan" else None,
                decide="placement" if setting.objective == "makespan" else None,
            ).best  # fmt: skip
            begun = time.process_time()
            manifest = go_rl.export_stages(plan, model, stages, graph)
            took = time.process_time() - begun
            config, same = PipelineConfig(samples=2, warm_up=0), NAN
            worst = go_rl.run_stages(stages, check=True, config=config).max_relative_error
            assert worst is not None
            if worst > TOLERANCE:
                config = replace(config, as_written=True)
                same = go_rl.run_stages(stages, check=True, config=config).max_relative_error
                assert same is not None
        except (GoRLError, ValueError, RuntimeError) as error:
            return replace(nothing, problem=_said(error).replace(f"{model.parent}/", ""))
    if math.isnan(worst):
        return replace(nothing, problem="its outputs are not finite with random weights")
    return replace(
        nothing, operators=max(len(plan.nodes), *(each.nodes for each in manifest.stages)),
        stages=len(manifest.stages), copies=sum(map(len, plan.replicas.values())),
        export_seconds=took, max_relative=worst, as_written=same,
    )  # fmt: skip


def _pinned(graph: OpGraph) -> dict[NodeId, int]:
    """Devices of single operators by name."""
    free = (with_colocation(graph, "operators").colocation == FREE) & ~graph.is_fed
    return {str(graph.names[n]): i % 2 for i, n in enumerate(np.flatnonzero(free)[::APART])}


def _page(rows: list[EqualRow]) -> Iterator[str]:
    yield HEAD
    ran = grouped((row for row in rows if not row.problem), lambda row: row.network)
    good = sum(all(r.max_relative <= TOLERANCE for r in each) for each in ran.values())
    equal = sum(all(r.equal for r in each) for each in ran.values())
    compared = list(chain(*ran.values()))
    copied = {row.network for row in compared if row.copies}
    yield (
        f"{len(ran)} networks, {len(compared)} plans: all plans of {good} networks are within "
        f"{TOLERANCE:g}, those of {equal - good} more as written, of {len(ran) - equal} neither. "
        f"{sum(row.stages > 1 for row in compared)} plans have several stages; those of "
        f"{len(copied)} networks have copies. The slowest export took "
        f"{max(row.export_seconds for row in compared):.1f} s of the processor.\n"
    )
    heads = ("network", "plans", "operators", "stages", "copies", "export, s", "difference",
             "as written")  # fmt: skip
    yield markdown_table(heads, [_line(name, each) for name, each in ran.items()])
    yield "\nBy setting:\n"
    yield markdown_table(("setting", "method", "plans", "within", "as written", "neither"), [
        _sum(setting, compared) for setting in SETTINGS
    ])  # fmt: skip
    left = [row for row in rows if row.problem]
    if left:
        yield "\nNot compared:\n"
        yield from (f"- `{row.network}`{row.setting and ', '}{row.setting}: {row.problem}"
                    for row in left)  # fmt: skip


def _line(name: str, rows: list[EqualRow]) -> list[str]:
    stages = [row.stages for row in rows]
    again = [row.as_written for row in rows if not math.isnan(row.as_written)]
    return [
        name, str(len(rows)), f"{max(row.operators for row in rows):,}",
        str(min(stages)) if len(set(stages)) == 1 else f"{min(stages)}–{max(stages)}",
        str(max(row.copies for row in rows)), f"{max(row.export_seconds for row in rows):.2f}",
        f"{max(row.max_relative for row in rows):.2g}", f"{max(again):.2g}" if again else "",
    ]  # fmt: skip


def _sum(setting: Setting, rows: list[EqualRow]) -> list[str]:
    of = [row for row in rows if (row.setting, row.method) == (str(setting), setting.method)]
    near = [row for row in of if row.max_relative <= TOLERANCE]
    equal = [row for row in of if row.equal]
    counts = len(of), len(near), len(equal) - len(near), len(of) - len(equal)
    return [str(setting), setting.method, *map(str, counts)]
