"""Networks compiled by TVM for this machine's processor: predicted against measured.

Run: ``python -m experiments programs.end_to_end_programs FOLDER --weights NAME=FILE ...`` with a
folder of ``go-rl tune programs zoo:NAME --out FOLDER/NAME`` for each network. Both kinds of
schedules are visited in turn in one process; what counts is the time of the processor at its
reference speed. Needs the extra tvm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from experiments.experiment import Experiment, timed
from experiments.page_text import table_lines
from go_rl.core import ReadError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.core.files.strict_json import read_json
from go_rl.core.hardware.processor import processor_name
from go_rl.costs.programs.learn.code_trees import MachineTrees
from go_rl.costs.programs.learn.program_weights import predictor_of_seconds
from go_rl.costs.programs.network_latency import PricesPrograms, network_latency
from go_rl.costs.timing.core_speed import fixed_work, read_pace
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.loop.result_folder import SUMMARY
from go_rl.tuning.tvm.codegen import code_target
from go_rl.tuning.tvm.compiled import export_network
from go_rl.tuning.tvm.lowering import LoweredNetwork, lower
from go_rl.tuning.tvm.models.read_model import read_model
from go_rl.tuning.tvm.network_programs import network_programs
from go_rl.tuning.tvm.tuned_network import CANDIDATES, read_candidates

SCHEDULES = ("default", "tuned")
VISITS, LONG_VISITS = 7, 3
"""Visits of a network; of one whose run takes over `LONG` seconds."""
LONG, VISIT = 1.0, 0.2
"""Seconds: of a long run; of the runs of a visit, about."""
WORKS = 4000
"""Times that the fixed work is done around a visit, some 20 ms."""
PUBLISHED = 12.4
TIMED = "the operators' times"


@dataclass(frozen=True)
class EndToEndPrograms(Experiment):
    """Options of this experiment."""

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """Of the tuned networks."""
    weights: tuple[str, ...] = ()
    """NAME=FILE: predictors, with their names on the page."""
    afterwards: tuple[str, ...] = ()
    """Networks that were tuned after predictors and data had been chosen; their errors are told
    apart, too."""
    beside: str = ""
    """What ran on the core meanwhile, for the page."""
    learned: str = ""
    """What the predictors learned, for the page."""
    page_name: Annotated[str, tyro.conf.arg(name="name")] = field(default="", kw_only=True)
    """Name of the page, one for each processor."""

    def run(self) -> None:
        """Make the rows that are missing; write the page."""
        arms = {name: predictor_of_seconds(path) for name, path in map(_named, self.weights)}
        names = sorted(path.parent.name for path in self.folder.glob(f"*/{CANDIDATES}"))
        measured, predicted = (
            self.kept_rows(MeasuredRow, "_measured.csv"),
            self.kept_rows(PricedRow),
        )
        for name in names:
            missing = {arm: arms[arm] for arm in arms if not predicted.has(name, arm)}
            if measured.has(name) and not missing:
                continue
            network = compiled_network(self.folder / name, name)
            for row in () if measured.has(name) else measured_rows(network):
                measured.add(row)
            for row in priced_rows(network, missing):
                predicted.add(row)
        self.write_page(page(self, measured.rows, predicted.rows))


@dataclass(frozen=True)
class MeasuredRow:
    """A network under one kind of schedules."""

    network: str
    schedules: str
    ms: float
    """Milliseconds of the processor at its reference speed: the median of the visits."""
    spread: float
    """Half of the range of the visits, relative to the median."""
    operators_ms: float
    """Sum of the operators' own times, as tuning measured them; uses counted."""
    slowed: float
    """How many times as long as at the reference speed everything took meanwhile, the median."""


@dataclass(frozen=True)
class PricedRow:
    """A prediction of a network under one kind of schedules."""

    network: str
    arm: str
    schedules: str
    ms: float
    low_ms: float
    high_ms: float
    unlike: int
    """Calls that are unlike what was learned."""
    calls: int
    unpriced: int
    """Functions without a price."""


@dataclass(frozen=True, eq=False)
class CompiledNetwork:
    """A network as TVM lowers it, and the candidates that tuning found."""

    name: str
    folder: Path
    """Of its tuning."""
    lowered: LoweredNetwork
    documents: Mapping[str, Any]
    """Traces of TVM by workload."""


def compiled_network(folder: Path, name: str) -> CompiledNetwork:
    """Return a network of the zoo, lowered once."""
    level, documents = read_candidates(folder)
    return CompiledNetwork(
        name, folder, lower(read_model(f"zoo:{name}"), code_target(level)), documents
    )


def measured_rows(compiled: CompiledNetwork) -> list[MeasuredRow]:
    """Compile a network with both kinds of schedules, and visit them in turn."""
    name, network, folder = compiled.name, compiled.lowered, compiled.folder
    tuned = {
        i: Candidate("", compiled.documents[each.operator.workload])
        for i, each in enumerate(network.functions)
        if each.operator.workload in compiled.documents
    }
    with scratch_folder("networks") as scratch:
        runs = []
        for kind, chosen in zip(SCHEDULES, ({}, tuned), strict=True):
            path = scratch / f"{kind}-{name}.so"
            export_network(network, chosen, path)
            runs.append(_runner(path, network))
        own, fastest = _full_paces(folder)
        seconds, slowed = in_turn(runs, fastest)
    sums = [fastest / own * total for total in _operator_sums(folder)]
    rows = []
    for kind, visits, total in zip(SCHEDULES, seconds, sums, strict=True):
        middle = float(np.median(visits))
        spread = (max(visits) - min(visits)) / 2 / middle
        rows.append(MeasuredRow(name, kind, 1e3 * middle, spread, total, slowed))
    return rows


def in_turn(runs: Sequence[Callable[[], object]], full: float) -> tuple[list[list[float]], float]:
    """Return seconds of the processor of one run at its reference speed, of each visit of each, and
    how many times as long everything took, the median; ``full``: the fixed work's seconds at that
    speed."""
    first = [timed(run, time.process_time)[1] for run in runs]  # loads, and is not counted
    counts = [max(1, round(VISIT / each)) for each in first]
    found: list[list[float]] = [[] for _ in runs]
    slow = [_slowness(full)]
    for visit in range(VISITS):
        for run, count, own, once in zip(runs, counts, found, first, strict=True):
            if once > LONG and visit >= LONG_VISITS:
                continue
            _, spent = timed(lambda run=run, count=count: [run() for _ in range(count)],
                             time.process_time)  # fmt: skip
            slow.append(_slowness(full))
            own.append(spent / count / float(np.mean(slow[-2:])))
    return found, float(np.median(slow))


def _slowness(full: float) -> float:
    """How many times as long as at the reference speed the fixed work takes just now."""
    _, spent = timed(lambda: [fixed_work() for _ in range(WORKS)], time.process_time)
    return spent / WORKS / full


def _runner(path: Path, network: LoweredNetwork) -> Callable[[], object]:
    tvm, rng = import_tvm(), np.random.default_rng(0)
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    operands = [tvm.runtime.tensor(each.random(rng), tvm.cpu()) for each in network.inputs]
    return lambda: machine["main"](*operands)


def _full_paces(folder: Path) -> tuple[float, float]:
    """Seconds of the fixed work at the reference speed that this network's tuning found, and at the
    fastest that any did: a core that was busy all the time is taken for a slow one."""
    (own,) = (read_pace(path).full_pace for path in folder.glob("pace-*.json"))
    every = (read_pace(path).full_pace for path in folder.parent.glob("*/pace-*.json"))
    return own, min(every)


def _operator_sums(folder: Path) -> tuple[float, float]:
    """Milliseconds of all operators without and with the candidates found, as tuning timed them."""
    told: Any = read_json(folder / SUMMARY)
    left = sum(each["uses"] * each["ms"] for each in told["left_untuned"])
    untuned, best = (
        sum(each["uses"] * each[key] for each in told["operators"])
        for key in ("untuned_ms", "best_ms")
    )
    return untuned + left, best + left


def priced_rows(
    compiled: CompiledNetwork, arms: Mapping[str, PricesPrograms]
) -> Iterator[PricedRow]:
    """Yield predictions of a network under both kinds of schedules, as `go_rl.predict_programs`
    makes them, by each predictor."""
    reads_code = any(isinstance(each, MachineTrees) for each in arms.values())
    for kind, documents in zip(SCHEDULES, ({}, compiled.documents), strict=True):
        programs = network_programs(compiled.lowered, documents, compiled=reads_code)
        for arm, predictor in arms.items():
            found = network_latency(programs, predictor)
            priced = np.array([not reason for reason in found.reasons])[programs.called]
            ms, low, high = (1e3 * each for each in found.total)
            yield PricedRow(
                compiled.name, arm, kind, ms, low, high, int(found.unlike[programs.called].sum()),
                int(priced.sum()), sum(map(bool, found.reasons)),
            )  # fmt: skip


def page(
    options: EndToEndPrograms, measured: Sequence[MeasuredRow], priced: Sequence[PricedRow]
) -> str:
    """Return the page."""
    arms = list(dict.fromkeys(row.arm for row in priced))
    lines = [
        "# Whole networks compiled by TVM", "",
        f"Milliseconds of one core of {processor_name()}, of networks of the zoo that",
        "`go-rl tune programs` tuned for some minutes: time of the processor at its reference",
        f"speed, the median of {VISITS} visits in turn ({LONG_VISITS} of runs over {LONG:g} s); ±",
        "is half their range; *slowed*: how many times as long everything took meanwhile.",
        *([f"Meanwhile: {options.beside}."] if options.beside else []),
        "Predicted by `go-rl predict --by programs`: each function once, replayed on one core.",
        f"*{TIMED.capitalize()}*: the same sum with what tuning measured of each operator, by the",
        "wall; functions without a price are in no prediction.",
        *([f"Learned: {options.learned}."] if options.learned else []),
        f"Published, networks known from others: at most {PUBLISHED} % on its devices.",
    ]  # fmt: skip
    for kind in SCHEDULES:
        own = [row for row in measured if row.schedules == kind]
        lines += ["", f"## Schedules: {kind}", "", *_table(own, priced, arms), ""]
        lines += _errors(own, priced, arms, options.afterwards)
    return "\n".join([*lines, ""])


def _table(
    measured: Sequence[MeasuredRow], priced: Sequence[PricedRow], arms: Sequence[str]
) -> list[str]:
    rows = []
    for row in measured:
        found = _of(row, priced)
        cells = [
            f"{found[arm].ms:.3g} ({found[arm].low_ms:.3g} to {found[arm].high_ms:.3g})"
            if arm in found else "–"
            for arm in arms
        ]  # fmt: skip
        some = next(iter(found.values()), None)
        counts = ["–", "–"] if some is None else [str(some.calls), str(some.unpriced)]
        rows.append([row.network, f"{row.ms:.3g} ± {row.spread:.0%}", f"{row.slowed:.2f}",
                     f"{row.operators_ms:.3g}", *cells, *counts])  # fmt: skip
    heads = ["network", "measured", "slowed", TIMED, *arms, "calls priced",
             "functions without a price"]  # fmt: skip
    return table_lines(heads, rows)


def _errors(
    measured: Sequence[MeasuredRow],
    priced: Sequence[PricedRow],
    arms: Sequence[str],
    afterwards: Collection[str],
) -> list[str]:
    groups = {"": measured}
    if afterwards:
        groups[", before"] = [row for row in measured if row.network not in afterwards]
        groups[", afterwards"] = [row for row in measured if row.network in afterwards]
    rows = []
    for said, some in groups.items():
        rows.append(_error_row(TIMED + said, [(row.operators_ms, row, None) for row in some]))
        for arm in arms:
            pairs = [(found[arm].ms, row, found[arm]) for row in some
                     if arm in (found := _of(row, priced))]  # fmt: skip
            if pairs:
                rows.append(_error_row(arm + said, pairs))
    heads = ["predicted by", "mean error %", "median error %", "least to largest, predicted over "
             "measured", "inside the interval", "networks"]  # fmt: skip
    return table_lines(heads, rows)


def _error_row(arm: str, pairs: Sequence[tuple[float, MeasuredRow, PricedRow | None]]) -> list[str]:
    ratios = np.array([ms / row.ms for ms, row, _ in pairs])
    errors = 100 * np.abs(ratios - 1)
    inside = [p.low_ms <= row.ms <= p.high_ms for _, row, p in pairs if p is not None]
    return [
        arm, f"{errors.mean():.0f}", f"{np.median(errors):.0f}",
        f"{ratios.min():.2f} to {ratios.max():.2f}",
        f"{sum(inside)} of {len(inside)}" if inside else "–", str(len(pairs)),
    ]  # fmt: skip


def _of(row: MeasuredRow, priced: Sequence[PricedRow]) -> Mapping[str, PricedRow]:
    key = (row.network, row.schedules)
    return {each.arm: each for each in priced if (each.network, each.schedules) == key}


def _named(argument: str) -> tuple[str, str]:
    name, _, path = argument.partition("=")
    if not name or not path:
        raise ReadError(f"--weights: must be NAME=FILE, not {argument!r}")
    return name, path
