"""Speed of predictors: training samples a second, pricing 400 programs and 10,000 operators.

Run: ``python -m experiments programs.cdmpp.speed``. Updates are timed behind the first of each
shape, which compile; prices behind a first pricing. Seconds are of a processor (all threads), the
least of the repeats, as other work runs here too; the clock's are beside them. Training throughput
of CDMPP and of the recursive LSTM is measured in turn.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from experiments.experiment import Experiment, timed
from experiments.page_text import NOTHING, cell, table_lines
from experiments.programs.cdmpp.runs import (
    Metrics,
    Runs,
    TableOptions,
    parameter_count,
    trained,
)
from experiments.programs.rivals.boosted_programs import TREE_RIVALS, XGBOOST, tree_rival
from experiments.programs.rivals.recursive_lstm import RecursiveLstm, RecursiveNetwork
from go_rl.api.predict import predict
from go_rl.costs.programs.learn.code_inputs import summed_program_features
from go_rl.costs.programs.learn.network import SMALL
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.training import NAMED_RUNS, ProgramTrainConfig

PROGRAMS = 400
TREES = 600
SHIPPED, WEIGHTS = "the weights that ship", "programs-5-cdmpp"
TRAINING, OPERATORS = "training", "operators"
"""Sections of their own."""
LSTM_UNITS = 96
"""Of the recursive LSTM whose training speed is compared: about CDMPP's number of parameters."""
PRICED, DEVICE = 10_000, "tesla-t4"
"""Operators that are priced, and on what."""


@dataclass(frozen=True)
class CdmppSpeed(TableOptions, Experiment):
    """Options of this table."""

    page_name: ClassVar[str] = "cdmpp_speed"

    runs: str = "build/cdmpp_speed"
    """Folder of finished rows."""
    configs: tuple[str, ...] = ("small",)
    """Of the network: small, paper."""
    updates: int = 200
    """Timed; of the paper's configuration a twentieth."""
    repeats: int = 20
    """Of pricing; of the paper's configuration a fifth."""

    def run(self) -> None:
        """Make the rows that are missing; write the page."""
        runs = Runs(self)
        makers: dict[str, Callable[[], Metrics]] = {
            **{f"CDMPP, {n}": lambda n=n: _of_network(runs, n, self) for n in self.configs},
            f"CDMPP, {SHIPPED}": lambda: _of_shipped(runs, self),
            **{n: lambda n=n: _of_trees(runs, self, n) for n in TREE_RIVALS},
            TRAINING: lambda: _against_lstm(runs, self),
            OPERATORS: _of_operators,
        }
        found: dict[str, Metrics] = {}
        for name, make in makers.items():
            for each in runs.tried(f"speed-{name.replace(' ', '-').replace(',', '')}", make):
                found[name] = each
        print(*runs.not_run(), sep="\n")
        self.write_page(_page(runs, self, found))


def _page(runs: Runs, options: CdmppSpeed, found: dict[str, Metrics]) -> str:
    rival = found.get(XGBOOST, {}).get("cpu_ms", np.nan)
    training, operators = (found.pop(name, {}) for name in (TRAINING, OPERATORS))
    lines = [
        "# Speed of CDMPP",
        "",
        f"Training: updates on {len(runs.examples.seconds):,} programs, compilation left out (of",
        "trees, a sample is a row of a tree).",
        f"Pricing: {PROGRAMS} programs drawn of all, features known; the least of",
        f"{options.repeats} repeats ({options.repeats // 5} of the paper's sizes), on",
        f"{len(os.sched_getaffinity(0))} cores; load: of the last minute, this process included.",
        "Asked: 50 ms on 2 cores.",
        "",
    ]
    rows = []
    for name, row in found.items():
        counts = (row.get("parameters"), row.get("samples"))
        rows.append([
            name, *(f"{count:,.0f}" if count else NOTHING for count in counts),
            cell(row["cpu_ms"], 1), cell(row["wall_ms"], 1), f"{row['cpu_ms'] / rival:.1f}×",
            cell(row["load"], 1),
        ])  # fmt: skip
    heads = ["", "parameters", "training samples/s", "ms of a processor for 400", "on the clock",
             "of XGBoost's", "load"]  # fmt: skip
    lines += table_lines(heads, rows)
    lines += training_lines(training) if training else []
    lines += operator_lines(operators) if operators else []
    return "\n".join([*lines, ""])


def training_lines(found: Metrics) -> list[str]:
    """Return the section on training throughput."""
    names = {"cdmpp": "CDMPP", "lstm": "recursive LSTM (Tiramisu)"}
    batches = {"cdmpp": 128.0, "lstm": found["lstm_batch"]}
    rows = [
        [name, f"{found[f'{key}_parameters']:,.0f}", f"{batches[key]:.0f}", f"{found[key]:,.0f}"]
        for key, name in names.items()
    ]
    return [
        "", "## Training throughput", "",
        "Distinct programs a second of a processor, the best of three runs in turn, compilation",
        "apart; batches of up to 128 programs, which of the recursive LSTM must have one tree.",
        f"Ratio {found['cdmpp'] / found['lstm']:.1f} (published on a V100: 14,241 against 1,870, "
        "7.6).", "", *table_lines(["", "parameters", "programs a batch", "programs/s"], rows),
    ]  # fmt: skip


def operator_lines(found: Metrics) -> list[str]:
    """Return the section on a table of operators."""
    return [
        "",
        "## Operators of a table",
        "",
        f"{PRICED:,} distinct operators of a CSV file, linear layers and products, priced on "
        f"{DEVICE} by",
        "`go_rl.predict`, the file's reading and the intervals included: "
        f"{found['wall_ms'] / 1e3:.2f} s on the clock,",
        f"{found['cpu_ms'] / 1e3:.2f} s of a processor, load {found['load']:.1f} "
        f"(asked for: 5 s); the first call in a process, imports apart, {found['first']:.2f} s.",
    ]


def _of_network(runs: Runs, name: str, options: CdmppSpeed) -> Metrics:
    large = NAMED_RUNS[name].network is not SMALL
    updates, repeats = (options.updates // 20, options.repeats // 5) if large else (
        options.updates, options.repeats
    )  # fmt: skip
    counts = runs.run_config(0).network.leaf_counts
    config = ProgramTrainConfig(
        replace(NAMED_RUNS[name].network, leaf_counts=counts), updates=updates
    )
    trained(runs.examples, config)  # compiles: the same seed draws the same shapes
    learned, taken = timed(lambda: trained(runs.examples, config), time.process_time)
    inputs = runs.examples.inputs.take(_some(runs))
    return {
        "parameters": float(parameter_count(learned.networks[0].params)),
        "samples": updates * config.batch / taken,
        **_least(lambda: learned.predict(inputs), repeats),
    }  # fmt: skip


def _of_shipped(runs: Runs, options: CdmppSpeed) -> Metrics:
    """An ensemble, with interval and flags."""
    weights = ProgramPredictor.load(WEIGHTS)
    inputs = runs.examples.inputs.take(_some(runs))
    parameters = sum(parameter_count(each.params) for each in weights.networks)
    return {
        "parameters": float(parameters),
        **_least(lambda: weights.interval(inputs), options.repeats),
    }


def _of_trees(runs: Runs, options: CdmppSpeed, name: str) -> Metrics:
    fit = tree_rival(name, TREES)
    learned, taken = timed(lambda: fit(runs.examples), time.process_time)
    features = summed_program_features(runs.examples.inputs.take(_some(runs)))
    return {
        "samples": len(runs.examples.seconds) * TREES / taken,
        **_least(lambda: learned.seconds_of(features), options.repeats),
    }


def _against_lstm(runs: Runs, options: CdmppSpeed) -> Metrics:
    """Programs a second of a processor while training, the best of three in turn."""
    config = replace(runs.run_config(0), updates=options.updates)
    lstm = replace(RecursiveLstm.run_defaults, updates=options.updates)
    large = RecursiveNetwork((LSTM_UNITS,), LSTM_UNITS, (LSTM_UNITS, LSTM_UNITS))
    found: Metrics = {"cdmpp": 0.0, "lstm": 0.0}
    for repeat in range(4):
        learned, taken = timed(lambda: trained(runs.examples, config), time.process_time)
        rival, other = timed(
            lambda: RecursiveLstm.fit(runs.examples, lstm, large), time.process_time
        )
        if repeat:  # the first one compiles
            found["cdmpp"] = max(found["cdmpp"], options.updates * config.batch / taken)
            found["lstm"] = max(found["lstm"], rival.drawn / other)
            found["lstm_batch"] = rival.drawn / options.updates
        found["cdmpp_parameters"] = float(parameter_count(learned.networks[0].params))
        found["lstm_parameters"] = float(parameter_count(rival.params))
    return found


def _of_operators() -> Metrics:
    """A table of operators, from its file to prices with intervals."""
    rng = np.random.default_rng(0)
    rows = ["op,B,M,N,K,H"]
    for number in range(PRICED):
        b, m, n, k = (int(size) for size in 2 ** rng.uniform([0, 4, 4, 4], [6, 12, 12, 12]))
        rows.append(f"{'linear' if number % 2 else 'bmm'},{b},{m},{n},{k},")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "operators.csv")
        table.write_text("\n".join(rows), encoding="utf-8")
        _, first = timed(lambda: predict(table, DEVICE))
        return {"first": first, **_least(lambda: predict(table, DEVICE), 5)}


def _some(runs: Runs) -> np.ndarray:
    known = len(runs.examples.seconds)
    return np.sort(np.random.default_rng(0).choice(known, min(PROGRAMS, known), replace=False))


def _least(work: Callable[[], object], repeats: int) -> Metrics:
    """Least milliseconds of a processor and of the clock."""
    work()
    cpu, wall = [], []
    for _ in range(repeats):
        (_, spent), taken = timed(lambda: timed(work, time.process_time))
        cpu.append(spent)
        wall.append(taken)
    return {"cpu_ms": 1e3 * min(cpu), "wall_ms": 1e3 * min(wall), "load": os.getloadavg()[0]}
