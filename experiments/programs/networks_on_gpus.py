"""Four language models on GPUs of the table: latency, what it is made of, what is unlike.

Run: ``python -m experiments.programs.networks_on_gpus [--batch 8] [--sequence 512]``. Nothing here
is measured: prices are those of `go_rl.predict` with the weights that ship, eager and with fused
chains. The launches of a network are found once and priced on every device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import rounded
from experiments.rows import rows_table
from go_rl.api.predict import GPU_WEIGHTS
from go_rl.costs.devices import find_device
from go_rl.costs.operators.examples import ERROR_GROUPS, error_groups
from go_rl.costs.operators.launches import Launches, eager_launches, fused_launches
from go_rl.costs.operators.launches.launch_prices import launch_prices, total_bounds
from go_rl.costs.operators.launches.launch_replay import issued_ahead
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.tables import PRODUCTS
from go_rl.graphs.zoo.load_model import SIZED_NAMES, sized_graph

DEVICES = ("t4", "l4", "v100", "a100-40gb", "h100")
HEAD = """# Language models on GPUs that are not here

Predicted ({weights}), not measured, float32 without TF32: `latency_ms` with a host that
issues launches ahead of the GPU, `alone_ms` the sum of all launches run alone. `low_ms` to
`high_ms` is the 90 % interval (docs/predict.md says how it is made); shares are of the sum,
by kind of operator; `peak` is the FLOP of all products over latency and the device's peak;
`unlike` the share of the sum in launches unlike what was measured: all of the L4's and the
H100's, whose peaks lie outside. Training is forward with dropout and backward, without an
optimiser's step."""


@dataclass(frozen=True)
class NetworksOnGpus(Experiment):
    """Options of the script."""

    batch: int = 8
    """Sequences at once."""
    sequence: int = 512
    """Tokens of each."""
    training: bool = True
    """Training steps too."""

    def run(self) -> None:
        """Price all networks and write the page."""
        learned = OperatorPredictor.load(GPU_WEIGHTS)
        rows: list[Row] = []
        for name in SIZED_NAMES:
            if name.endswith("-training") and not self.training:
                continue
            found = list(_rows(name, self, learned))
            rows += found
            said = [f"{row.device} {row.fusion} {row.latency_ms:.4g}" for row in found]
            print(name, said, flush=True)
        self.write_rows(rows)
        sizes = f"Batch {self.batch}, {self.sequence} tokens."
        page = f"{HEAD.format(weights=GPU_WEIGHTS)}\n\n{sizes}\n\n{rows_table(rows)}\n"
        self.write_page(page)


@dataclass(frozen=True)
class Row:
    """One network on one device."""

    network: str
    fusion: str
    device: str
    launches: int
    tflop: float
    latency_ms: float
    alone_ms: float
    low_ms: float
    high_ms: float
    peak: float
    bmm: float
    linear: float
    elementwise: float
    softmax: float
    ln: float
    unlike: float


def _rows(name: str, options: NetworksOnGpus, learned: OperatorPredictor) -> Iterator[Row]:
    graph = sized_graph(name, {"batch": options.batch, "sequence": options.sequence})
    eager = eager_launches(graph)
    for fusion, launches in (("none", eager), ("chains", fused_launches(eager))):
        for device in DEVICES:
            yield _row(name, fusion, device, launches, learned)


def _row(
    name: str, fusion: str, device: str, launches: Launches, learned: OperatorPredictor
) -> Row:
    sheet = find_device(device)
    prices = launch_prices(launches, sheet, learned)
    alone = float(prices.seconds.sum())
    parts = (prices.host, prices.start, prices.busy)
    total = issued_ahead(*parts, launches.before).seconds
    low, high = total_bounds(launches, prices, total)
    rows = launches.rows
    kinds = np.bincount(error_groups(rows), prices.seconds, len(ERROR_GROUPS)) / alone
    share = dict(zip(ERROR_GROUPS, kinds.tolist(), strict=True))
    flops = float(rows.flops()[rows.is_any(PRODUCTS)].sum())
    return Row(
        network=name, fusion=fusion, device=device, launches=len(launches),
        tflop=rounded(flops / 1e12, 4),
        latency_ms=rounded(1e3 * total, 4), alone_ms=rounded(1e3 * alone, 4),
        low_ms=rounded(1e3 * low, 4),
        high_ms=rounded(1e3 * high, 4), peak=rounded(flops / total / sheet.matrix_flops, 3),
        bmm=rounded(share["bmm"], 3), linear=rounded(share["linear"], 3),
        elementwise=rounded(share["element-wise"], 3), softmax=rounded(share["softmax"], 3),
        ln=rounded(share["ln"], 3),
        unlike=rounded(float(prices.seconds[prices.unlike].sum()) / alone, 3),
    )  # fmt: skip


if __name__ == "__main__":
    NetworksOnGpus.main()
