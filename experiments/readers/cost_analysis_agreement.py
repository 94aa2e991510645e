"""How near our FLOP and bytes are to XLA's cost analysis of the unoptimised program.

Run: ``python -m experiments.readers.cost_analysis_agreement``. XLA counts the body of a loop once,
so for networks with loops it is given the same network with every loop written out. Writes
``experiments/results/cost_analysis_agreement.csv`` and ``.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax

from experiments.csv_rows import csv_text
from experiments.pages import RESULTS, write_page
from experiments.readers.cost_analysis_networks import MODELS, Network
from go_rl.core.files.whole_file import write_text
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax


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

    @property
    def worst(self) -> float:
        """The larger relative error of FLOP and bytes."""
        return max(abs(self.flops_ratio - 1), abs(self.bytes_ratio - 1))


def compare(model: Network, options: JaxOptions | None = None) -> Agreement:
    """Read a network, price it with XLA too, and return both."""
    function, args, weights = model.build(False)
    graph = trace_jax(function, *args, weights=weights, options=options)
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
    )


def xla_analysis(function: Any, args: Any) -> dict[str, float]:
    """Return XLA's own counts for the program before any optimisation."""
    lowered = jax.jit(function).trace(*args).lower(lowering_platforms=("cpu",))
    analysis = lowered.cost_analysis()
    if not analysis:
        raise RuntimeError("this JAX build has no cost analysis")
    return dict(analysis)


def page(rows: list[Agreement]) -> str:
    """Return the table."""
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
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare every network and write the tables."""
    rows = []
    for model in MODELS:
        rows.append(compare(model))
        row = rows[-1]
        print(
            f"{row.model:22s} {row.nodes:6d} nodes  FLOP ×{row.flops_ratio:.4f}  "
            f"bytes ×{row.bytes_ratio:.4f}",
            flush=True,
        )
    write_text(RESULTS / "cost_analysis_agreement.csv", csv_text(Agreement, rows))
    write_page(RESULTS / "cost_analysis_agreement", page(rows), __file__)


if __name__ == "__main__":
    main()
