"""Figures of CDMPP, on the data set that ships: skew of the data, errors by network and target,
latents before and after the central moment discrepancy, and the discrepancy against the error.

Run: ``python -m experiments.programs.cdmpp.figures``. t-SNE needs scikit-learn:
``pip install 'go_rl[figures]'``. One network learns networks that are not held out, then is
fine-tuned with the inputs of one that is, as in `experiments.programs.cdmpp.cross_model`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde, rankdata

from experiments.experiment import RESULTS, Experiment
from experiments.programs.cdmpp.code import WideRuns
from experiments.programs.cdmpp.runs import TableOptions, trained, tuned, tuning_steps
from go_rl.core.files.strict_json import parse_json
from go_rl.costs.learning.metrics import mape
from go_rl.costs.learning.splits import HELD_OUT
from go_rl.costs.programs.learn.central_moments import central_moment_discrepancy
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.label_transform import LabelTransform
from go_rl.costs.programs.learn.prepared import prepare
from go_rl.report.figures import new_figure
from go_rl.runtime.array_file import read_parameters, write_parameters

NAME = "cdmpp_figures"
TARGET_NETWORK = "bert-tiny"
"""That of the paper's figure 8."""
SAMPLED = 400
"""Programs of a subset, and of each side of a t-SNE."""
PREDICTIONS = {
    "before": "CDMPP", "after": "CDMPP, CMD to bert-tiny", "trees": "CodeTrees",
}  # fmt: skip
TRANSFORMS = {"none": "latency", "box-cox": "Box-Cox", "yeo-johnson": "Yeo-Johnson",
              "quantile": "quantile"}  # fmt: skip


Save = Callable[[Figure, str], None]
"""Writes a figure, by the ending of its name."""


@dataclass(frozen=True)
class CdmppFigures(TableOptions, Experiment):
    """Options of the figures."""

    page_name: ClassVar[str] = NAME

    runs: str = "build/cdmpp_figures"
    """Folder of what was computed."""
    subsets: int = 120
    """Random subsets of which discrepancy and error are compared."""

    def run(self) -> None:
        """Draw the figures; write the page."""
        runs, save = WideRuns(self), self.save_figure
        outputs = _outputs(runs)
        nodes, leaves = _tree_sizes(runs, save)
        skew = _transforms(runs, save)
        save(_errors(runs, outputs), "_errors")
        moved = _latents(runs, outputs, save)
        rank = _discrepancy(runs, outputs, self.subsets, save)
        save(_sampling(), "_sampling")
        self.write_page(_page(nodes, leaves, skew, moved, rank))


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a network makes of all programs."""

    seconds: dict[str, np.ndarray]
    """[P] by `PREDICTIONS`."""
    latents: dict[str, np.ndarray]
    """[P, E] before and after fine-tuning."""


def _outputs(runs: WideRuns) -> Outputs:
    """Computed once and kept in the folder."""
    path = (
        Path(runs.options.runs) / f"outputs-{runs.options.steps}-{len(runs.examples.seconds)}.npz"
    )
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parameters(path, _computed(runs), {})
    _, arrays = read_parameters(path)
    return Outputs(
        {name: arrays[f"{name}_seconds"] for name in PREDICTIONS},
        {name: arrays[f"{name}_latents"] for name in ("before", "after")},
    )


def _computed(runs: WideRuns) -> dict[str, np.ndarray]:
    inputs, split = runs.examples.inputs, runs.split(0)
    train = runs.examples.take(split.train)
    trees = CodeTrees.fit(runs.wide.take(split.train))
    found = {"trees_seconds": trees.predict(runs.wide.inputs)}
    learned = trained(train, runs.run_config(0))
    others = inputs.take(split.held_out[_has(runs, TARGET_NETWORK)[split.held_out]])
    steps = tuning_steps(runs.options.steps)
    for name, network in (
        ("before", learned),
        ("after", tuned(learned, train, others, steps)),
    ):
        config = network.config
        ready = prepare(inputs, network.scale, config.network.leaf_counts, config.positional)
        found[f"{name}_seconds"] = network.seconds(inputs)
        found[f"{name}_latents"] = network.network.outputs(ready)[1]
    return found


def _has(runs: WideRuns, network: str) -> np.ndarray:
    """[P] whether a program's task is of a network."""
    inputs = runs.examples.inputs
    return np.array([network in some for some in inputs.networks])[inputs.task]


def _tree_sizes(runs: WideRuns, save: Save) -> tuple[np.ndarray, np.ndarray]:
    """Figure 2: nodes and leaves of the trees of all programs."""
    inputs = runs.examples.inputs
    size = {n: len(parse_json(inputs.nests[n])["nodes"]) for n in np.unique(inputs.nest).tolist()}
    nodes = np.array([size[n] for n in inputs.nest.tolist()])
    figure = new_figure(8, 3)
    axes = figure.subplots(1, 2)
    for axis, count, what in zip(axes, (nodes, inputs.leaves), ("nodes", "leaves"), strict=True):
        axis.bar(*np.unique(count, return_counts=True))
        axis.set(xlabel=f"{what} of the tree", ylabel="programs")
    save(figure, "_trees")
    return nodes, inputs.leaves


def _transforms(runs: WideRuns, save: Save) -> dict[str, float]:
    """Figure 5: distribution of latency by transform, with a density estimate; their skewness."""
    figure = new_figure(11, 2.8)
    axes = figure.subplots(1, 4)
    found = {}
    for axis, (kind, title) in zip(axes, TRANSFORMS.items(), strict=True):
        labels = LabelTransform.fit(kind, runs.examples.seconds).labels(runs.examples.seconds)
        labels = (labels - labels.mean()) / labels.std()
        found[title] = float((labels**3).mean())
        axis.hist(labels, 60, density=True, color="lightgray")
        line = np.linspace(labels.min(), np.quantile(labels, 0.999), 200)
        axis.plot(line, gaussian_kde(labels)(line))
        axis.set(title=title, xlabel="deviations", xlim=(line[0], line[-1]))
    axes[0].set_ylabel("density")
    save(figure, "_transforms")
    return found


def _errors(runs: WideRuns, outputs: Outputs) -> Figure:
    """Figures 6 and 7: errors by network, on programs not learned from, and by target."""
    inputs, split = runs.examples.inputs, runs.split(0)
    unseen = np.zeros(inputs.num_programs, bool)
    unseen[np.concatenate([split.test, split.held_out])] = True
    names = sorted({name for some in inputs.networks for name in some})
    names = [*(n for n in names if n not in HELD_OUT), *HELD_OUT]
    parts = {name: unseen & _has(runs, name) for name in names}
    held = np.isin(np.arange(len(unseen)), split.held_out)
    parts |= {each.codegen: held & (inputs.target == g) for g, each in enumerate(inputs.targets)}
    parts = {name: rows for name, rows in parts.items() if rows.any()}
    figure = new_figure(11, 3.8)
    axis = figure.subplots()
    places = np.arange(len(parts))
    for shift, (name, title) in enumerate(PREDICTIONS.items()):
        found = outputs.seconds[name]
        errors = [mape(found[rows], runs.examples.seconds[rows]) for rows in parts.values()]
        axis.bar(places + 0.27 * (shift - 1), errors, 0.27, label=title)
    axis.set_xticks(places, list(parts), rotation=40, ha="right")
    axis.axvline(len(parts) - len(inputs.targets) - len(HELD_OUT) - 0.5, color="gray", ls=":")
    axis.axvline(len(parts) - len(inputs.targets) - 0.5, color="gray")
    axis.set_ylabel("MAPE, %")
    axis.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    return figure


def _latents(runs: WideRuns, outputs: Outputs, save: Save) -> dict[str, float]:
    """Figure 8: t-SNE of latents of networks learned from and of `TARGET_NETWORK`; CMD of both."""
    from sklearn.manifold import TSNE  # pyright: ignore[reportMissingImports]

    split, rng = runs.split(0), np.random.default_rng(0)
    own = split.held_out[_has(runs, TARGET_NETWORK)[split.held_out]]
    source = rng.choice(split.train, SAMPLED, replace=False)
    target = rng.choice(own, min(SAMPLED, len(own)), replace=False)
    figure = new_figure(8, 4)
    axes = figure.subplots(1, 2)
    found = {}
    for axis, name in zip(axes, ("before", "after"), strict=True):
        latents = outputs.latents[name]
        found[name] = _apart(latents[source], latents[target])
        both = np.concatenate([latents[source], latents[target]])
        spots = TSNE(perplexity=30, init="pca", random_state=0, max_iter=500).fit_transform(both)
        for part, title in ((slice(0, len(source)), "learned from"),
                            (slice(len(source), None), TARGET_NETWORK)):  # fmt: skip
            axis.scatter(*spots[part].T, s=5, label=title)
        axis.set(title=f"{name} fine-tuning, CMD {found[name]:.2f}", xticks=[], yticks=[])
    axes[0].legend(loc="upper left")
    save(figure, "_latents")
    return found


def _discrepancy(runs: WideRuns, outputs: Outputs, subsets: int, save: Save) -> float:
    """Figure 18: discrepancy of subsets of what was learned from and of programs held out, against
    the error on the latter. Subsets are programs of a few tasks; the rank correlation."""
    split, inputs = runs.split(0), runs.examples.inputs
    rng, latents = np.random.default_rng(0), outputs.latents["before"]
    source = latents[rng.choice(split.train, SAMPLED, replace=False)]
    tasks, spots = np.unique(inputs.task[split.held_out]), []
    for _ in range(subsets):
        some = rng.choice(tasks, 4, replace=False)
        rows = split.held_out[np.isin(inputs.task[split.held_out], some)]
        found = mape(outputs.seconds["before"][rows], runs.examples.seconds[rows])
        spots.append((_apart(source, latents[rows]), found))
    apart, errors = np.array(spots).T
    figure = new_figure(4.5, 3.5)
    axis = figure.subplots()
    axis.scatter(apart, errors, s=8)
    axis.set(xlabel="CMD to programs learned from", ylabel="MAPE, %")
    save(figure, "_discrepancy")
    return float(np.corrcoef(rankdata(apart), rankdata(errors))[0, 1])


def _apart(source: np.ndarray, target: np.ndarray) -> float:
    return float(central_moment_discrepancy(jnp.asarray(source), jnp.asarray(target)))


def _sampling() -> Figure:
    """Figure 13, of the table of `cdmpp_sampling`."""
    line = re.compile(r"\| (\d+) \| ([\d.]+) \| ([\d.]+) \(([\d.]+) to ([\d.]+)\) \|")
    page = (RESULTS / "cdmpp_sampling.md").read_text()
    rows = np.array([[float(x) for x in found] for found in line.findall(page)])
    figure = new_figure(4.5, 3.2)
    axis = figure.subplots()
    axis.plot(rows[:, 0], rows[:, 1], marker="o", label="k-means")
    axis.plot(rows[:, 0], rows[:, 2], marker="s", label="random, mean of 10")
    axis.fill_between(rows[:, 0], rows[:, 3], rows[:, 4], alpha=0.2, color="C1", label="all 10")
    axis.set(xlabel="tasks measured", ylabel="MAPE, %", xscale="log")
    axis.set_xticks(rows[:, 0], [f"{n:.0f}" for n in rows[:, 0]])
    axis.minorticks_off()
    axis.legend()
    return figure


def _page(
    nodes: np.ndarray, leaves: np.ndarray, skew: dict[str, float], moved: dict[str, float],
    rank: float,
) -> str:  # fmt: skip
    shown = ", ".join(f"{name} {value:.2f}" for name, value in skew.items())
    return f"""# Figures of CDMPP

Programs of one processor; its two targets are levels of x86-64, no devices. Networks are those of
`cdmpp_cross_model`, of one run.

- Sizes of trees (their figure 2): {_range(nodes)} nodes, {_range(leaves)} leaves, which is why
  programs of one leaf count make a batch. ![trees]({NAME}_trees.svg)
- Latency under each transform (figure 5), and its density; skewness:
  {shown}. ![transforms]({NAME}_transforms.svg)
- Errors by network (figures 6 and 7), right of the dotted line those held out, right of the other
  line all held out by target. Fine-tuning for {TARGET_NETWORK} is to help that one alone.
  ![errors]({NAME}_errors.svg)
- t-SNE of latents, before and after fine-tuning with the inputs of {TARGET_NETWORK} (figure 8):
  CMD {moved["before"]:.2f} and {moved["after"]:.2f}. ![latents]({NAME}_latents.svg)
- Tasks measured for another target, chosen by k-means or at random (figure 13).
  ![sampling]({NAME}_sampling.svg)
- CMD between programs learned from and those of four tasks held out, against the error on these
  (figure 18): rank correlation {rank:+.2f}. ![discrepancy]({NAME}_discrepancy.svg)
"""


def _range(numbers: Sequence[int] | np.ndarray) -> str:
    return f"{min(numbers)} to {max(numbers)}"


if __name__ == "__main__":
    CdmppFigures.main()
