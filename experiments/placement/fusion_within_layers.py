"""Cost of a fusion that may not cross the layers of a network.

Run: ``python -m experiments.placement.fusion_within_layers [--graphs NAME ...]``. Every graph of
the zoo, inference and training, on one P100-class device by the analytical cost model; memory is
not checked. Greedy fusion as XLA does it, results first, once anywhere and once within layers only;
the step is the replay of the kernels in topological order. The regression is the second step's time
over the first's, less one.

Two definitions of a layer. *Scopes* (`go_rl.graphs.cutting.layers`): the scope in a node's name,
which is a Keras layer or a flax module; what stands outside any scope belongs to the layer before
it, and a backward node to its forward layer. *Anchored* (`go_rl.objectives.makespan.units`): scopes
with a matrix product or convolution; glue between them (normalisation, activations, residuals) and
the updates of weights belong to the layers that they touch.

``--orders`` further visiting orders, equal for all three, show whether a search for better
priorities wins the loss back: forwards, largest results first, fewest readers first, then random.

Published (ML for ML compilers, on XLA's fusion and real hardware): over 150 models, 32 % on average
and up to 2.6 times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.rows import grouped
from experiments.statistics import geometric_mean
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import OpGraph
from go_rl.core.decisions import Decisions
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.layers import layers
from go_rl.graphs.zoo import zoo_entry, zoo_graph, zoo_names
from go_rl.objectives.makespan.units import makespan_units
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.report.figures import BLUE, GREY, ORANGE, new_figure
from go_rl.report.file_tables import markdown_table

DEVICE = "p100x1"
PUBLISHED_MEAN, PUBLISHED_MOST = 1.32, 2.6


@dataclass(frozen=True)
class FusionWithinLayers(Experiment):
    """Options of this experiment."""

    graphs: tuple[str, ...] = ()
    """Graphs of the zoo; none: all."""
    orders: int = 7
    """Orders of producers beside the greedy one."""
    seed: int = 0
    """Of random orders."""

    def run(self) -> None:
        """Measure all graphs and write tables and figure."""
        rows = []
        for name in self.graphs or zoo_names(training=True):
            rows.append(row_of(zoo_graph(name), self))
            print(f"{name}: {rows[-1].slowdown('scopes'):.3f} {rows[-1].slowdown('anchored'):.3f}")
        self.write_rows(rows)
        self.write_page(_page(rows, self))
        self.save_figure(_figure(rows))


@dataclass(frozen=True)
class Row:
    """One graph; milliseconds an iteration, and kernels where named so."""

    graph: str
    family: str
    training: bool
    nodes: int
    scopes: int
    """Layers by scope."""
    anchored: int
    """Anchored layers."""
    unfused_ms: float
    anywhere_ms: float
    scopes_ms: float
    anchored_ms: float
    anywhere_best_ms: float
    """Best of all orders."""
    scopes_best_ms: float
    anchored_best_ms: float
    anywhere_kernels: int
    scopes_kernels: int
    anchored_kernels: int

    def slowdown(self, within: str, best: bool = False) -> float:
        """Return the step within layers over the step with fusion anywhere."""
        end = "_best_ms" if best else "_ms"
        return getattr(self, within + end) / getattr(self, "anywhere" + end)


def row_of(graph: OpGraph, options: FusionWithinLayers) -> Row:
    """Fuse and replay one graph."""
    asked = OptimizeOptions("makespan", "fusion", hardware=DEVICE, memory=False, cost="analytical")
    workspace = MakespanWorkspace(problem_for(graph, asked))
    units = makespan_units(workspace)
    within = {
        "anywhere": np.zeros(graph.num_nodes, np.int64),
        "scopes": layers(graph),
        # Units do not cross anchored layers, so a node's is its unit's.
        "anchored": units.nodes_of(units.main_layer, -1),
    }
    priority = visiting_orders(workspace, options)
    device = np.zeros(priority.shape, np.int16)
    found: dict[str, float] = {}
    for name, layer in within.items():
        leader = Fuser(graph, within=layer).leaders(priority, device.astype(np.int64))
        seconds = workspace.evaluate(Decisions(device, None, leader)).seconds
        found[f"{name}_ms"] = 1e3 * float(seconds[0])
        found[f"{name}_best_ms"] = 1e3 * float(seconds.min())
        found[f"{name}_kernels"] = len(np.unique(leader[0][~graph.is_fed]))
    family = zoo_entry(graph.name).family
    return Row(
        graph=graph.name,
        family=family,
        training=bool(graph.is_backward.any()),
        nodes=graph.num_nodes,
        scopes=len(np.unique(within["scopes"])),
        anchored=len(np.unique(within["anchored"][~graph.is_fed])),
        unfused_ms=1e3 * workspace.reference_seconds,
        **found,  # pyright: ignore[reportArgumentType]
    )


def visiting_orders(
    workspace: MakespanWorkspace, options: FusionWithinLayers
) -> Int64[np.ndarray, "B N"]:
    """Return [B, N] fusion priorities, all above `NO_FUSION`; the first are equal: greedy."""
    graph, rng = workspace.problem.graph, np.random.default_rng(options.seed)
    count = graph.num_nodes
    readers = np.bincount(graph.senders, minlength=count)
    keys = [-np.arange(count), workspace.problem.output_bytes, -readers]
    keys = [*keys, *(rng.random(count) for _ in range(options.orders))][: options.orders]
    ranks = [1 + np.argsort(np.argsort(key, kind="stable")) for key in keys]
    return np.stack([np.ones(count), *ranks]).astype(np.int64)


WITHIN = ("scopes", "anchored")


def _page(rows: list[Row], options: FusionWithinLayers) -> str:
    groups = {
        "all": rows,
        "inference": [r for r in rows if not r.training],
        "training": [r for r in rows if r.training],
    }
    lines = []
    for label, chosen in groups.items():
        for within in WITHIN if chosen else ():
            slow = [r.slowdown(within) for r in chosen]
            best = geometric_mean(r.slowdown(within, best=True) for r in chosen)
            numbers = (geometric_mean(slow), np.mean(slow), np.median(slow), max(slow))
            worst = chosen[int(np.argmax(slow))].graph
            lines.append([f"{label} ({len(chosen)})", within, *(f"{x:.3f}" for x in numbers), worst,
                          f"{best:.3f}"])  # fmt: skip
    heads = ["graphs", "layers", "geometric mean, greedy", "mean", "median", "largest", "of graph",
             "geometric mean, best"]  # fmt: skip
    table = markdown_table(heads, lines, ("layers", "of graph"))
    unfused = geometric_mean(r.unfused_ms / r.anywhere_ms for r in rows)
    return (
        f"# Fusion limited to within layers\n\n{len(rows)} graphs of the zoo, one {DEVICE[:-2]} "
        "device by the analytical cost model, replayed in topological order. Step time with "
        "fusion within layers over fusion anywhere. Greedy: producers from the results backwards; "
        f"best: the best of that and {options.orders} other orders, the same for both. Published "
        f"(XLA, 150 models): {PUBLISHED_MEAN:.2f} on average, up to {PUBLISHED_MOST}.\n\n"
        "*Scopes*: a layer is the scope of a node's name (Keras layer, flax module). *Anchored*: "
        "a scope with a matrix product or convolution; other nodes belong to a layer that they "
        f"touch.\n\n{table}\nWithout any fusion a step takes {unfused:.3f} times as long as fused "
        f"anywhere.\n\n## By family\n\n{_families(rows)}"
    )


def _families(rows: list[Row]) -> str:
    families = grouped(rows, lambda row: (row.family, row.training))
    lines = []
    for (family, trains), chosen in sorted(
        families.items(), key=lambda item: -geometric_mean(r.slowdown("scopes") for r in item[1])
    ):
        cells = [f"{geometric_mean(r.unfused_ms / r.anywhere_ms for r in chosen):.3f}"]
        for within in WITHIN:
            slow = [r.slowdown(within) for r in chosen]
            cells += [f"{geometric_mean(slow):.3f}", f"{max(slow):.3f}"]
        cells.append(f"{np.mean([r.nodes / r.scopes for r in chosen]):.1f}")
        lines.append([f"{family}, training" if trains else family, str(len(chosen)), *cells])
    heads = ["family", "graphs", "unfused", "scopes", "largest", "anchored", "largest",
             "nodes a scope"]  # fmt: skip
    return markdown_table(heads, lines)


def _figure(rows: list[Row]) -> Figure:
    """Regression of every graph, a panel for each definition, largest first."""
    figure = new_figure(11.0, 4.2)
    panels = figure.subplots(1, len(WITHIN), sharey=True)
    for axes, within, words in zip(
        panels, WITHIN, ("layers by scope", "layers with a heavy operator"), strict=True
    ):
        ordered = sorted(rows, key=lambda row: -row.slowdown(within))
        slow = np.array([row.slowdown(within) for row in ordered])
        for trains, colour in ((False, BLUE), (True, ORANGE)):
            at = np.flatnonzero([row.training == trains for row in ordered])
            axes.bar(at, slow[at] - 1.0, 0.9, bottom=1.0, color=colour,
                     label="training step" if trains else "inference")  # fmt: skip
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        mean = geometric_mean(slow.tolist())
        axes.axhline(mean, color="#000000", linewidth=1, label=f"geometric mean {mean:.2f}")
        axes.axhline(PUBLISHED_MEAN, color=GREY, linewidth=1, linestyle=":",
                     label=f"published mean {PUBLISHED_MEAN}")  # fmt: skip
        axes.set_title(words, fontsize=10)
        axes.set_xlabel("graphs of the zoo, sorted")
        axes.legend(frameon=False, fontsize=9)
    panels[0].set_ylabel("step time, fusion within layers / anywhere")
    return figure


if __name__ == "__main__":
    FusionWithinLayers.main()
