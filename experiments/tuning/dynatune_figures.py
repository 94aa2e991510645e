"""DynaTune's figures 2, 4, 13 and 19 on recorded pools: gain against cost and FLOP by operator,
curves of best performance, their segments, and traces of the Markov chains.

Run: ``python -m experiments.tuning.dynatune_figures --folder DIR`` with the folder of
``schedulers_replayed``, whose paths it shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.tuning.replayed.replayed_runs import ReplayOptions, curves_of
from go_rl.report.figures import new_figure
from go_rl.report.file_tables import markdown_table
from go_rl.tuning.loop.belief.curve_belief import CurveBelief
from go_rl.tuning.loop.belief.curve_families import FAMILIES
from go_rl.tuning.loop.belief.segments import segment_starts
from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.pools.candidate_pool import PoolSet

CHAIN_AT, HORIZON = 100, 50
"""Trials behind which the chains are shown, and how far they predict."""
HEAD = """# Operators, curves and chains of recorded tuning

DynaTune's figures on the pools of {network} (inner tuner `{tuner}`, seed {seed}).

- Gain, cost and FLOP by operator (their figure 2): rank correlation of FLOP with the gain
  {flop:.2f}, of the cost with the gain {cost:.2f}. ![gain and cost]({name}_gains.svg)
- The transformation space of one convolution (figure 3): [its page](transformation_space.md).
- Best performance after each trial, over the peak (figure 4). ![curves]({name}_curves.svg)
- Segments at rises of more than 20 % (figure 13). ![segments]({name}_segments.svg)
- Chains of the `log-power` belief behind {at} trials of the slowest operator (figure 19): mean
  acceptance {acceptance:.2f} (published 0.54). ![chains]({name}_chains.svg)
"""


@dataclass(frozen=True)
class DynatuneFigures(ReplayOptions, Experiment):
    """Options of the script."""

    network: str = "resnet18"
    tuner: str = "annealing"
    seed: int = 0

    def run(self) -> None:
        """Draw the figures and write the page."""
        (pools,) = self.sets([self.network])
        paths = self.store(self.tuner).paths(pools, self.seed)
        curves = curves_of(pools, paths)
        gain, cost, flops = _shares(pools, paths)
        self.save_figure(_gains(gain, cost, flops), "_gains")
        self.save_figure(_curves(pools, curves), "_curves")
        self.save_figure(_segments(curves), "_segments")
        slowest = int(np.argmax(gain))
        chains, acceptance = _chains(curves[slowest], pools.peak_flops, self.seed)
        self.save_figure(chains, "_chains")
        head = HEAD.format(
            network=self.network, tuner=self.tuner, seed=self.seed,
            at=min(CHAIN_AT, len(curves[slowest])),
            flop=_rank_correlation(flops, gain), cost=_rank_correlation(cost, gain),
            acceptance=acceptance, name=self.stem.name,
        )  # fmt: skip
        shares = np.stack([gain, cost, flops], axis=1) * 100
        cells = [
            [pool.operator.name, *(f"{share:.1f}" for share in row), str(_segment_count(curve))]
            for pool, row, curve in zip(pools.pools, shares, curves, strict=True)
        ]
        heads = ["operator", "gain, %", "cost, %", "FLOP, %", "segments"]
        self.write_page(head + "\n" + markdown_table(heads, cells))


def _segment_count(curve: np.ndarray) -> int:
    return len(segment_starts(curve.tolist()))


def _shares(
    pools: PoolSet, paths: Sequence[Sequence[Trial]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the share of each operator in latency reduction, tuning time and FLOP."""
    found = []
    for pool, path in zip(pools.pools, paths, strict=True):
        seconds = [trial.seconds for trial in path if trial.seconds is not None]
        each = pool.operator
        gain = each.repeats * (seconds[0] - min(seconds))
        found.append((gain, sum(trial.spent for trial in path), each.repeats * each.flops))
    shares = np.array(found) / np.sum(found, axis=0)
    return shares[:, 0], shares[:, 1], shares[:, 2]


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1])


def _gains(gain: np.ndarray, cost: np.ndarray, flops: np.ndarray) -> Figure:
    figure = new_figure(7, 3)
    axis = figure.subplots()
    places = np.arange(len(gain))
    for shift, (name, share) in enumerate((("gain", gain), ("cost", cost), ("FLOP", flops))):
        axis.bar(places + 0.27 * (shift - 1), 100 * share, 0.27, label=name)
    axis.set(xlabel="operator", ylabel="share, %", xticks=places)
    axis.legend()
    return figure


def _curves(pools: PoolSet, curves: Sequence[np.ndarray]) -> Figure:
    figure = new_figure(10, 8)
    axes = figure.subplots(4, 4)
    for axis, curve, pool in zip(axes.flat, curves, pools.pools, strict=False):
        axis.plot(100 * curve)
        axis.set_title(pool.operator.name, fontsize=6)
    for axis in axes.flat[len(curves) :]:
        axis.axis("off")
    figure.supxlabel("trials")
    figure.supylabel("best performance, % of peak")
    return figure


def _segments(curves: Sequence[np.ndarray]) -> Figure:
    figure = new_figure(6, 3)
    axis = figure.subplots()
    curve = max(curves, key=_segment_count)
    starts = segment_starts(curve.tolist())
    for start, end in zip(starts, [*starts[1:], len(curve)], strict=True):
        axis.plot(np.arange(start, end) + 1, 100 * curve[start:end], marker=".")
    axis.set(xlabel="trials", ylabel="best performance, % of peak", xscale="log")
    return figure


def _chains(curve: np.ndarray, peak: float, seed: int) -> tuple[Figure, float]:
    """The positions of all walkers, and their mean acceptance."""
    belief = CurveBelief()
    values = (curve[:CHAIN_AT].astype(float) * peak).tolist()
    _, chain, acceptance = belief.sample(values, HORIZON, peak, (seed, 0))
    names = (*FAMILIES[belief.family].parameters, "ln noise")
    figure = new_figure(6, 6)
    axes = figure.subplots(len(names), 1, sharex=True)
    for axis, name, number in zip(axes, names, range(len(names)), strict=True):
        axis.plot(chain[:, :, number], color="black", alpha=0.3, linewidth=0.6)
        axis.axvline(belief.burn_in, linestyle=":")
        axis.set_ylabel(name)
    axes[-1].set_xlabel("step")
    return figure, acceptance


if __name__ == "__main__":
    DynatuneFigures.main()
