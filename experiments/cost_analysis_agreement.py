"""How near our FLOP and bytes are to XLA's cost analysis of the unoptimised program.

Run: ``python experiments/cost_analysis_agreement.py``. XLA counts the body of a loop once, so for
networks with loops it is given the same network with every loop written out. Writes
``experiments/results/cost_analysis_agreement.csv`` and ``.md``.
"""

from __future__ import annotations

import csv
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import jax
from cost_analysis_networks import MODELS, Network

from go_rl.readers.jax.inline import JaxOptions
from go_rl.readers.jax.reader import trace_jax

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Agreement:
    """One row of the table."""

    model: str
    nodes: int
    flops: float
    xla_flops: float
    flops_ratio: float
    bytes_accessed: float
    xla_bytes: float
    bytes_ratio: float
    seconds_to_read: float

    @property
    def worst(self) -> float:
        """The larger relative error of FLOP and bytes."""
        return max(abs(self.flops_ratio - 1), abs(self.bytes_ratio - 1))


def compare(model: Network, options: JaxOptions | None = None) -> Agreement:
    """Read a network, price it with XLA too, and return both."""
    function, args, weights = model.build(False)
    start = time.perf_counter()
    graph = trace_jax(function, *args, weights=weights, options=options)
    seconds = time.perf_counter() - start
    reference, args, _ = model.build(True)
    xla = xla_analysis(reference, args)
    flops, moved = float(graph.flops.sum()), float(graph.bytes_accessed.sum())
    return Agreement(
        model=model.name,
        nodes=graph.num_nodes,
        flops=flops,
        xla_flops=xla["flops"],
        flops_ratio=flops / xla["flops"],
        bytes_accessed=moved,
        xla_bytes=xla["bytes accessed"],
        bytes_ratio=moved / xla["bytes accessed"],
        seconds_to_read=seconds,
    )


def xla_analysis(function: Any, args: Any) -> dict[str, float]:
    """Return XLA's own counts for the program before any optimisation."""
    lowered = jax.jit(function).trace(*args).lower(lowering_platforms=("cpu",))
    analysis = lowered.cost_analysis()
    if not analysis:
        raise RuntimeError("this JAX build has no cost analysis")
    return dict(analysis)


def write_csv(rows: list[Agreement], path: Path) -> None:
    """Write one line a network."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([f.name for f in fields(Agreement) if f.name != "seconds_to_read"])
        writer.writerows(astuple(row)[:-1] for row in rows)


def write_markdown(rows: list[Agreement], path: Path) -> None:
    """Write the table that the README quotes."""
    worst = max(row.worst for row in rows)
    within = sum(row.worst <= 0.05 for row in rows)
    lines = [
        "# FLOP and bytes against XLA's cost analysis of the unoptimised program",
        "",
        f"{within} of {len(rows)} networks within 5 % on both; the worst error is {worst:.2%}. "
        f"JAX {jax.__version__}.",
        "",
        "| network | nodes | FLOP | XLA's FLOP | ratio | bytes | XLA's bytes | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {r.model} | {r.nodes} | {r.flops:.6g} | {r.xla_flops:.6g} | {r.flops_ratio:.4f} "
        f"| {r.bytes_accessed:.6g} | {r.xla_bytes:.6g} | {r.bytes_ratio:.4f} |"
        for r in rows
    ]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Compare every network and write the tables."""
    rows = []
    for model in MODELS:
        rows.append(compare(model))
        row = rows[-1]
        print(
            f"{row.model:22s} {row.nodes:6d} nodes  FLOP ×{row.flops_ratio:.4f}  "
            f"bytes ×{row.bytes_ratio:.4f}  {row.seconds_to_read:.2f} s",
            flush=True,
        )
    RESULTS.mkdir(exist_ok=True)
    write_csv(rows, RESULTS / "cost_analysis_agreement.csv")
    write_markdown(rows, RESULTS / "cost_analysis_agreement.md")


if __name__ == "__main__":
    main()
