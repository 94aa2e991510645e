"""How many ring plans a second `RingPricer` prices, against its plain-Python twin in the same run.

Run: ``python -m experiments.simulate.pricing_speed [--data DIR]``, where DIR is a folder with
``throughput`` of github.com/msr-fiddle/dnn-partitioning (MIT licence): then the graph is
bert_L-12_training without its colour classes, else the BERT-base of the zoo. 36 chips, relay rules,
every plan another split of the topological order. Compilation is not counted; the twin of the tests
follows the definition and is not tuned. Writes ``pricing_speed.csv`` and ``.md`` under ``--out``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.experiment import ROOT, Experiment
from experiments.page_text import rounded
from experiments.rows import rows_table
from go_rl.core import Problem, load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers import load
from go_rl.objectives.ring.simulate.pricing import RingPricer

sys.path.insert(0, str(ROOT / "tests"))
from reference.ring import price as price_plainly  # pyright: ignore

GRAPH = Path("throughput/operators/bert_L-12_training.json")
BERT = "go_rl.graphs.zoo.bert:bert_base"
CHIPS = 36


@dataclass(frozen=True)
class PricingSpeed(Experiment):
    """Options of this experiment."""

    data: Path | None = None
    """Folder with the graphs."""
    seconds: float = 5.0
    """Time to price for, compiled and plain each."""
    batch: int = 256
    """Plans priced in one call."""
    seed: int = 0
    """Of the plans."""

    def run(self) -> None:
        """Measure and write the tables."""
        problem = _problem(self.data)
        pricer = RingPricer(problem)
        plans = _splits(problem, self.batch, self.seed)
        values, _ = pricer.price(plans)
        kept = [pricer.place(plan) for plan in plans[:8]]
        homes = [(home.tolist(), [_chips(word) for word in present]) for home, present in kept]
        for value, (home, present) in zip(values, homes, strict=False):
            theirs = price_plainly(problem, home, present).seconds
            if value != theirs and not abs(value - theirs) <= 1e-9 * theirs:
                raise SystemExit(f"the pricers disagree: {value} and {theirs}")
        plain = _rate(lambda i: price_plainly(problem, *homes[i % len(homes)]), 1, self.seconds)
        one = _rate(lambda i: pricer.price(plans[i % len(plans)][None]), 1, self.seconds)
        many = _rate(lambda i: pricer.price(plans), len(plans), self.seconds)
        threads = min(os.cpu_count() or 1, len(plans) // 4)
        rows = [
            _row(problem, "plain Python", 1, plain, plain),
            _row(problem, "RingPricer, one plan a call", 1, one, plain),
            _row(problem, f"RingPricer, {len(plans)} plans a call", threads, many, plain),
        ]
        self.write_rows(rows)
        self.write_page(
            "# Ring plans priced a second\n\nTraffic, compute and peak memory of every chip; "
            f"compilation not counted.\n\n{rows_table(rows)}"
        )


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    graph: str
    nodes: int
    edges: int
    chips: int
    pricer: str
    threads: int
    plans: int
    plans_a_second: float
    ratio: float
    """Speed relative to plain Python."""


def _problem(data: Path | None) -> Problem:
    if data is None:
        graph = load(BERT)
    else:
        places = [data / GRAPH, data / "dnn-partitioning" / GRAPH]
        found = [path for path in places if path.is_file()]
        if not found:
            raise SystemExit(f"{places[0]} is absent; --data names a folder with throughput/")
        graph = load(found[0])
    options = ProblemOptions(rules=rule_set("relay"), colocation="none", allow_training=True)
    return make_problem(graph, load_hardware(f"ring{CHIPS}"), options)


def _splits(problem: Problem, plans: int, seed: int) -> np.ndarray:
    """[plans, N] random cuts of the topological order, every chip used."""
    rng = np.random.default_rng(seed)
    nodes = problem.graph.num_nodes
    cuts = [np.sort(rng.choice(nodes - 1, CHIPS - 1, replace=False)) for _ in range(plans)]
    return np.stack([np.searchsorted(c, np.arange(nodes)) for c in cuts]).astype(np.int16)


def _chips(word: int) -> frozenset[int]:
    return frozenset(c for c in range(64) if (int(word) >> c) & 1)


def _rate(call: Callable[[int], object], plans: int, seconds: float) -> tuple[int, float]:
    """(plans priced, plans a second)."""
    calls, started = 0, time.perf_counter()
    while calls == 0 or time.perf_counter() - started < seconds:
        call(calls)
        calls += 1
    return calls * plans, calls * plans / (time.perf_counter() - started)


def _row(
    problem: Problem, name: str, threads: int, rate: tuple[int, float], plain: tuple[int, float]
) -> Row:
    graph = problem.graph
    speeds = rounded(rate[1], 4), rounded(rate[1] / plain[1], 4)
    return Row(graph.name, graph.num_nodes, graph.num_edges, CHIPS, name, threads, rate[0], *speeds)


if __name__ == "__main__":
    PricingSpeed.main()
