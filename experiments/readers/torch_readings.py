"""Twelve networks of PyTorch read through three doors.

Run: ``python -m experiments readers.torch_readings FOLDER [--only unet lstm]``. Each network is
exported unless it is there: as a ``.pt2`` archive, as one decomposed to core ATen, and as ONNX (not
optimised); all are bounded on the 36-chip ring. The generators are no dependencies of go_rl; see
`INSTALL`.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from experiments.experiment import Experiment
from experiments.page_text import Column
from experiments.readers.torch_networks import NETWORKS
from experiments.rows import rows_table
from go_rl.core import OpGraph, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers import load
from go_rl.objectives.ring.workspace import ring_workspace

INSTALL = "pip install torch==2.13.0 transformers==4.57.6 onnx==1.23.2 onnxscript==0.7.2"
"""Programs that write the files."""
DOORS = {"pt2": ".pt2", "core ATen": ".core.pt2", "ONNX": ".onnx"}
"""Readings by the ending of their files."""


@dataclass(frozen=True)
class TorchReadings(Experiment):
    """Options of this experiment."""

    folder: tyro.conf.Positional[Path]
    """Where the models are kept."""
    only: tuple[str, ...] = ()
    """Only these networks; the table is then shown, not written."""

    def run(self) -> None:
        """Make what is missing, read everything, write the table."""
        self.folder.mkdir(parents=True, exist_ok=True)
        rows = (row for name in self.only or NETWORKS for row in readings(name, self.folder))
        if self.only:
            print(rows_table([*rows]))
        else:
            self.write_page(page(self.write_rows(rows)))


@dataclass(frozen=True)
class Row:
    """One reading of one network."""

    network: str
    door: str
    operators: Annotated[int, Column("operators", ",")]
    mflop: Annotated[float, Column("MFLOP", ",.2f")]
    weight_bytes: Annotated[int, Column("weights, bytes", ",")]
    """Each array once."""
    bound_us: Annotated[float, Column("bound, µs", ".4g")]
    """Proven bound of the slowest stage on ring36, in microseconds."""
    flop_ratio: Annotated[float, Column("FLOP / .pt2", ".4f")]
    """FLOP over those of the ``.pt2`` archive."""
    bound_ratio: Annotated[float, Column("bound / .pt2", ".4f")]
    """Bound over that of the ``.pt2`` archive."""


def readings(name: str, folder: Path) -> Iterator[Row]:
    """Yield a row for each door; files that are missing are written."""
    if missing := [door for door in DOORS if not (folder / f"{name}{DOORS[door]}").exists()]:
        export(name, folder, missing)
    first: Row | None = None
    for door, ending in DOORS.items():
        graph = load(folder / f"{name}{ending}")
        mflop, bound = graph.flops.sum() / 1e6, 1e6 * ring_bound(graph)
        row = Row(
            network=name, door=door, operators=graph.num_nodes, mflop=float(mflop),
            weight_bytes=int(weights_once(graph)), bound_us=bound,
            flop_ratio=float(mflop / first.mflop) if first else 1.0,
            bound_ratio=bound / first.bound_us if first else 1.0,
        )  # fmt: skip
        first = first or row
        yield row


def weights_once(graph: OpGraph) -> float:
    """Bytes of all weights, each array once."""
    tied = graph.tied_bytes[graph.tied_array].sum()
    return float(graph.weight_bytes.sum() - tied + graph.tied_bytes.sum())


def ring_bound(graph: OpGraph) -> float:
    """Proven bound on the 36-chip ring, memory left aside."""
    options = ProblemOptions(memory=False)
    return float(ring_workspace(make_problem(graph, load_hardware("ring36"), options)).bound)


def export(name: str, folder: Path, doors: list[str]) -> None:
    """Write the files of a network that are missing."""
    import torch

    model, arguments = NETWORKS[name].make()
    warnings.simplefilter("ignore")
    path = {door: str(folder / f"{name}{ending}") for door, ending in DOORS.items()}
    program: Any = torch.export.export(model, arguments)
    if "pt2" in doors:
        torch.export.save(program, path["pt2"])
    if "core ATen" in doors:
        torch.export.save(program.run_decompositions(), path["core ATen"])
    if "ONNX" in doors:
        optimise = NETWORKS[name].optimise
        torch.onnx.export(model, arguments, path["ONNX"], dynamo=True, optimize=optimise)


def page(rows: list[Row]) -> str:
    """Return the page."""
    others = [row for row in rows if row.door != "pt2"]
    by_name = {row.network: row for row in rows if row.door == "pt2"}
    flops = [abs(row.flop_ratio - 1) for row in others]
    near = Counter(row.door for row in others if abs(row.bound_ratio - 1) < 0.02)
    extra = [abs(r.weight_bytes - by_name[r.network].weight_bytes) for r in others]
    counts = ", ".join(f"{near[door]} of {len(by_name)} of {door}" for door in (*DOORS,)[1:])
    return f"""# Twelve networks of PyTorch through three doors

A `.pt2` archive as `torch.export.save` writes it, the same decomposed to core ATen, and the ONNX
that PyTorch's exporter writes (not optimised, but for the LSTM). FLOP differ by
{100 * max(flops):.2f} % at most. Weights differ by {max(extra):,} bytes at most: constants, which
ONNX has for axes and shapes, and buffers of which the exporter keeps the part that is read;
parameters agree to the byte.

The proven bound of the slowest stage on `ring36` agrees within 2 % with that of the `.pt2` archive
in {counts}.

{rows_table(rows)}
"""
