"""How near our FLOP and bytes are to XLA's cost analysis of the unoptimised program.

Run: ``python -m experiments.readers.cost_analysis_agreement``. XLA counts the body of a loop once,
so for networks with loops it is given the same network with every loop written out. Writes
``experiments/results/cost_analysis_agreement.csv`` and ``.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import jax

from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.readers.cost_analysis_networks import MODELS, Network
from experiments.rows import rows_table
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax


@dataclass(frozen=True)
class Agreement:
    """One row of the table."""

    model: Annotated[str, Column("network")]
    nodes: int
    flops: Annotated[float, Column("FLOP")]
    xla_flops: Annotated[float, Column("XLA's FLOP")]
    flops_ratio: Annotated[float, Column("ratio", ".4f")]
    bytes_accessed: Annotated[float, Column("bytes")]
    xla_bytes: Annotated[float, Column("XLA's bytes")]
    bytes_ratio: Annotated[float, Column("ratio", ".4f")]

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


@dataclass(frozen=True)
class CostAnalysisAgreement(Experiment):
    """Options of this experiment."""

    def run(self) -> None:
        """Compare every network and write the tables."""
        rows: list[Agreement] = []
        for model in MODELS:
            rows.append(compare(model))
            print(rows[-1], flush=True)
        worst = max(row.worst for row in rows)
        within = sum(row.worst <= 0.05 for row in rows)
        self.write_rows(rows)
        self.write_page(
            "# FLOP and bytes against XLA's cost analysis of the unoptimised program\n\n"
            f"{within} of {len(rows)} networks within 5 % on both; the worst error is {worst:.2%}. "
            f"JAX {jax.__version__}.\n\n{rows_table(rows)}"
        )


if __name__ == "__main__":
    CostAnalysisAgreement.main()
