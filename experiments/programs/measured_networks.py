"""Whole networks, predicted and measured: the part of `measured_gpu` that reads networks.

The networks are those of ``on_gpu/networks.py``, exported by ``on_gpu/export.py`` and read once
into graphs; one that is no file there, or is not read, has the reason in its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.page_text import FOUR, markdown_table, shown
from go_rl import load, retyped
from go_rl.core import GoRLError, OpGraph
from go_rl.costs.devices import DataSheet, with_launch
from go_rl.costs.operators.launches import Launches, eager_launches, fused_launches
from go_rl.costs.operators.launches.launch_prices import (
    PredictsOperators,
    launch_prices,
    total_bounds,
)
from go_rl.costs.operators.launches.launch_replay import issued_ahead
from go_rl.costs.operators.predictor import OperatorPredictor

NAN = float("nan")
FLOAT32, TF32 = "float32", "tf32"
TEXT = """## Whole networks in float32, inference

Measured eager (a host issues launches one by one) and as one CUDA graph (no host). Predicted by
`predict --fusion none`: with the usual host, which is the command's answer, with the host told
(`--launch-us {launch:.1f}`), and the GPU's part alone (kernels 1.7 µs apart, no host), which
is compared with the CUDA graph; `chains` is the default, fused answer. Networks are
torchvision's and transformers' with random weights, as `torch.export` gives them."""


@dataclass(frozen=True)
class NetworkRow:
    """One network; milliseconds."""

    network: str
    launches: int
    eager_ms: float
    graph_ms: float
    """Measured as one CUDA graph."""
    predicted_ms: float = NAN
    low_ms: float = NAN
    high_ms: float = NAN
    """90 % interval of ``predicted_ms``."""
    told_ms: float = NAN
    """Prediction where the host is told."""
    gpu_ms: float = NAN
    """The GPU's part of the prediction, no host between launches."""
    chains_ms: float = NAN
    """Prediction with fused chains."""
    problem: str = ""
    """Reason why there is no prediction; empty: there is one."""


def network_rows(
    folder: Path, measured: Sequence[Mapping[str, Any]], learned: OperatorPredictor,
    device: DataSheet, launch: float,
) -> Iterator[NetworkRow]:  # fmt: skip
    """Yield one row for each network that was measured on a device, with attention in pieces;
    ``launch``: microseconds of a launch on the host of the measurements."""
    for row in measured:
        if row.get("type") == FLOAT32 and "eager" in row and not is_fused(row["network"]):
            times = (row["eager"]["ms"], row.get("graph", {}).get("ms", NAN))
            yield _row(folder, row["network"], times, learned, device, launch)


def _row(
    folder: Path, name: str, times: tuple[float, float], learned: OperatorPredictor,
    sheet: DataSheet, launch: float,
) -> NetworkRow:  # fmt: skip
    try:
        launches = eager_launches(measured_graph(folder, name))
    except (GoRLError, OSError) as error:
        return NetworkRow(name, 0, *times, problem=str(error).splitlines()[0])
    total, low, high, gpu = priced(launches, sheet, learned)
    told = priced(launches, with_launch(sheet, launch), learned)[0]
    chains = priced(fused_launches(launches), sheet, learned)[0]
    return NetworkRow(name, len(launches), *times, total, low, high, told, gpu, chains)


def is_fused(network: str) -> bool:
    """Whether attention is one kernel of a network that was measured."""
    return network.endswith("-fused") or "decoding" in network


def measured_graph(folder: Path, name: str, element_type: str = FLOAT32) -> OpGraph:
    """Return the graph of a network that was measured, as PyTorch exported it in an element type:
    one in TF32 is that of float32, one in float16 has the operators of bfloat16."""
    own = FLOAT32 if element_type in (FLOAT32, TF32) else "bfloat16"
    graph = load(folder / f"{name}.{own}.npz")
    return retyped(graph, TF32) if element_type == TF32 else graph


def priced(
    launches: Launches, sheet: DataSheet, learned: PredictsOperators
) -> tuple[float, float, float, float]:
    """Return milliseconds with the host, the interval's bounds, and those of the GPU alone."""
    prices = launch_prices(launches, sheet, learned)
    total = issued_ahead(prices.host, prices.start, prices.busy, launches.before).seconds
    low, high = total_bounds(launches, prices, total)
    none = np.zeros(len(launches))
    alone = issued_ahead(none, none, prices.busy, launches.before).seconds
    return 1e3 * total, 1e3 * low, 1e3 * high, 1e3 * alone


def networks_text(rows: Sequence[NetworkRow], launch: float) -> str:
    """Return the section on networks."""
    heads = ("network", "launches", "eager, ms", "predicted (90 %)", "error", "host told", "error",
             "CUDA graph, ms", "GPU's part", "error", "chains")  # fmt: skip
    priced_rows = [row for row in rows if not row.problem]
    lines = [_cells(row) for row in priced_rows]
    means = [
        np.mean([abs(_error(predicted, true)) for predicted, true in pairs])
        for pairs in (
            [(row.predicted_ms, row.eager_ms) for row in priced_rows],
            [(row.told_ms, row.eager_ms) for row in priced_rows],
            [(row.gpu_ms, row.graph_ms) for row in priced_rows],
        )
    ]
    first, second, third = (shown(float(mean), ".0%") for mean in means)
    lines.append(["mean error", "", "", "", first, "", second, "", "", third, ""])
    problems = [f"- `{row.network}` is not predicted: {row.problem}" for row in rows if row.problem]
    inside = sum(row.low_ms <= row.eager_ms <= row.high_ms for row in priced_rows)
    said = f"Eager latencies within the 90 % interval: {inside} of {len(priced_rows)}."
    text = TEXT.format(launch=launch)
    table = markdown_table(heads, lines).rstrip()
    return "\n\n".join([text, table, "\n".join([said, *problems])])


def _error(predicted: float, true: float) -> float:
    return predicted / true - 1


def _cells(row: NetworkRow) -> list[str]:
    predicted = f"{row.predicted_ms:.4g} ({row.low_ms:.4g} to {row.high_ms:.4g})"
    return [
        row.network, str(row.launches), shown(row.eager_ms, FOUR), predicted,
        shown(_error(row.predicted_ms, row.eager_ms), "+.0%"), shown(row.told_ms, FOUR),
        shown(_error(row.told_ms, row.eager_ms), "+.0%"), shown(row.graph_ms, FOUR),
        shown(row.gpu_ms, FOUR), shown(_error(row.gpu_ms, row.graph_ms), "+.0%"),
        shown(row.chains_ms, FOUR),
    ]  # fmt: skip
