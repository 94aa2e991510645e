"""Measure operators and whole networks on the GPU at hand, with PyTorch alone.

Run there: ``python3 experiments/programs/on_gpu/measure.py OUT [--seconds 330] [--parts NAME]``.
OUT gets, part by part, each ended when its share of the seconds is spent:

- ``host.json``: milliseconds of an addition of one element, which is a launch;
- ``operators/KIND.csv.gz``: operators of the kinds of NeuSight's tables in float32, their sizes
  drawn anew, as ``go-rl train operators`` reads them;
- ``networks.json``: milliseconds of each network, eager and replayed as one CUDA graph, by type;
- ``typed/TYPE/KIND.csv.gz``: other operators, each in all types;
- ``half/TYPE/KIND.csv.gz``: those of networks in 16-bit types: of aligned sizes, of few rows;
- ``more/TYPE/KIND.csv.gz``: kinds that NeuSight's tables do not have, fused attention among them.

What is measured is alone on the machine. ``--tiny`` tries all parts on a processor.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

sys.path.insert(0, str(Path(__file__).parent))
from network_times import Row, networks
from networks import FUSED
from new_kinds import new_kinds
from operator_cases import Case, cases
from timing import DEVICE, HAS_GPU, TYPES, alone_and_in_graph, set_type, synchronize

TINY = 1e-5
"""Share of the largest sizes on a processor."""
MULTIPLES, ALIGNED = (1, 8, 64), (1, 8, 64, 64)
"""Multiples of which sizes are in other types: tensor cores read aligned rows only."""
PRODUCTS = ("bmm", "linear", "conv")
FLUSH = 15.0
"""Seconds after which tables are written again."""
Typed = tuple[Case, tuple[str, ...]]
"""An operator, and the element types in which it is timed."""


class Tables:
    """Rows of measured operators by kind, a packed CSV file for each, as ``go-rl train operators``
    reads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, list[Row]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.rows.values()))

    def add(self, kind: str, row: Row) -> None:
        """Add a row."""
        self.rows.setdefault(kind, []).append(row)

    def write(self) -> None:
        """Write all rows, in place of the files that are there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for kind, rows in self.rows.items():
            with gzip.open(self.folder / f"{kind}.csv.gz", "wt", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


class Options(NamedTuple):
    """Options of the script."""

    out: Path
    facts: dict[str, Any]
    limit: float
    """Share of the largest sizes."""
    names: list[str]
    """Networks; all where none is named."""
    seed: int
    """Seed of the sizes of ``half`` and ``more``."""


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=330.0)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--networks", nargs="*", default=[])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seed", type=int, default=0, help="of the sizes of half and more")
    given = parser.parse_args()
    if not (HAS_GPU or given.tiny):
        parser.error("PyTorch sees no GPU here; --tiny tries the script on a processor")
    given.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = False
    limit = TINY if given.tiny else 1.0
    options = Options(given.out, _facts(), limit, given.networks, given.seed)
    print(options.facts, flush=True)
    began, whole = time.time(), sum(PARTS[each][0] for each in given.parts)
    until = began
    for name in given.parts:
        share, part = PARTS[name]
        until += given.seconds * share / whole
        try:
            part(options, until)
        except Exception as error:  # the other parts do not need this one
            print(name, "failed:", type(error).__name__, str(error)[:500], flush=True)
        print(name, "done after", round(time.time() - began), "s", flush=True)


def _facts() -> dict[str, Any]:
    facts = {"gpu": DEVICE, "torch": torch.__version__, "cuda": torch.version.cuda,
             "cudnn": torch.backends.cudnn.version()}  # fmt: skip
    if HAS_GPU:
        properties = torch.cuda.get_device_properties(0)
        facts["gpu"] = properties.name
        for name in ("multi_processor_count", "L2_cache_size", "total_memory", "clock_rate",
                     "memory_clock_rate"):  # fmt: skip
            facts[name] = getattr(properties, name, None)
    return facts


def host(options: Options, until: float) -> None:
    """What tells the host's launch: an addition of one element."""
    set_type("float32")
    one = torch.ones(1, device=DEVICE)
    with torch.no_grad():
        alone, within = alone_and_in_graph(lambda: one + one)
    found = {"add of one element": {"latency_ms": alone, "graph_ms": within}}
    _write(options, "host.json", {"operators": found})


def _half(options: Options) -> Iterator[Typed]:
    """Operators of networks in bfloat16, products in TF32 too, every fourth in float16."""
    rng, sizes = (random.Random(first + 10 * options.seed) for first in (4, 3))
    for case in cases(sizes, options.limit, ALIGNED, few_rows=True):
        tf32 = ("tf32",) * (case.kind in PRODUCTS)
        yield case, ("bfloat16", *tf32, *("float16",) * (rng.random() < 0.25))


def _in(types: tuple[str, ...], drawn: Iterator[Case]) -> Iterator[Typed]:
    return ((case, types) for case in drawn)


DRAWN: dict[str, Callable[[Options], Iterator[Typed]]] = {
    "operators": lambda asked: _in(("float32",), cases(random.Random(0), asked.limit)),
    "typed/{type}": lambda asked: _in(TYPES, cases(random.Random(1), asked.limit, MULTIPLES)),
    "half/{type}": _half,
    "more/{type}": lambda asked: _in(
        ("float32", "bfloat16"), new_kinds(random.Random(5 + 10 * asked.seed), asked.limit)
    ),
}
"""Operators without end by the folder of their tables."""


def _time_all(folder: str, options: Options, until: float) -> None:
    """Time operators in their types and write a table for each type and kind."""
    tables = {each: Tables(options.out / folder.format(type=each)) for each in TYPES}
    device, written = options.facts["gpu"], time.time()
    for case, types in DRAWN[folder](options):
        if time.time() > until:
            break
        for each in types:
            try:
                alone, within = alone_and_in_graph(case.build(set_type(each)))
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                continue
            times = {"latency_ms": f"{alone:.6g}", "graph_ms": f"{within:.6g}", "device": device}
            tables[each].add(case.kind, times | case.sizes)
        if time.time() > written + FLUSH:
            _write_tables(tables)
            written = time.time()
    synchronize()
    _write_tables(tables)
    print({each: len(table) for each, table in tables.items()}, "operators", flush=True)


def _write_tables(tables: dict[str, Tables]) -> None:
    for each in tables.values():
        each.write()


def _networks(file: str, names: Sequence[str], options: Options, until: float) -> None:
    """Time networks, those of the options where none is named; see `network_times`."""
    networks(names or options.names, lambda rows: _write(options, file, {"rows": rows}), until)


def _write(options: Options, name: str, document: dict[str, Any]) -> None:
    (options.out / name).write_text(json.dumps({**options.facts, **document}, indent=1))


PARTS: dict[str, tuple[float, Callable[[Options, float], None]]] = {
    "host": (2, host),
    "operators": (90, partial(_time_all, "operators")),
    "networks": (90, partial(_networks, "networks.json", ())),
    "typed": (80, partial(_time_all, "typed/{type}")),
    "half": (205, partial(_time_all, "half/{type}")),
    "more": (215, partial(_time_all, "more/{type}")),
    "fused": (45, partial(_networks, "fused_networks.json", tuple(FUSED))),
}
"""Parts in the order in which they run: share of the seconds, and what measures. *fused* has the
networks with fused attention, and some that decode."""


if __name__ == "__main__":
    main()
