"""Choosing tilings and compiler flags of kernels: what a choice by each method loses.

Run: ``python -m experiments kernels.kernel_ranks [--kernels FILE|NAME] [--tiles FILE|NAME]``; it
goes on where it stopped. Five folds at random, and five by network. *default*: the compiler's
flags, or the tiling that one would write unmeasured; *best setting*: best on average on the
training split; *analytical*: the hand-written estimate; *trees* learned the log of the seconds,
*trees, relative* of those over their geometric mean; *mse*, *logistic*, *hinge*: ranking networks
with this loss; *weighted*: pairs counted by how far apart they are. Published ("A Learnt
Performance Model for TPUs", tile sizes, random split, APE): learned 3.7, analytical 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int

from experiments.experiment import Experiment, timed
from experiments.kernels.kernel_cost_model import HELD_OUT, by_model_split, error_table
from experiments.rows import grouped, kept_of_run, run_name
from go_rl.core import ReadError, TrainingError
from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.kernels.measure.data import KernelData, load_kernel_data
from go_rl.costs.learning.losses import RankLoss
from go_rl.costs.learning.metrics import ape, by_model, groups_of, random_ape
from go_rl.costs.tiles import TiledProgram, default_tiles, estimate_tiles
from go_rl.costs.tiles.measure.data import TileData, load_tile_data
from go_rl.costs.tiles.ranks.data import (
    CONFIDENT,
    CandidateKind,
    RankGroups,
    flag_groups,
    tile_groups,
)
from go_rl.costs.tiles.ranks.predictor import RankPredictor
from go_rl.costs.tiles.ranks.training import RankTrainConfig
from go_rl.costs.trees.boosted import BoostedTrees, SummedKernels, summed_features
from go_rl.graphs.cutting.opcode_names import vocabulary_of
from go_rl.graphs.zoo import zoo_entry

HELD_OUT_TILES = (
    "gnmt", "lstm-medium", "lstm-small", "resnet18", "resnet50", "resnext50", "transformer-base",
    "transformer-big", "yolo-tiny",
)  # fmt: skip
"""Networks of tiled programs of a kind that the published table has."""
TITLES = {"flags": "Flags", "tiles": "Tilings"}
HEAD = """# Ranking configurations of kernels

APE: what the configurations chosen lose, in percent of the best measured ones; kernels that were \
not learned from, in five folds (seed {seed}). *mse* to *weighted*: {members} networks of \
{updates} updates.
"""
TOTALS = {"all kernels": 1, "Kendall's tau": 2, "seconds": 1}
"""Numbers of all groups together with their decimals: time lost, Kendall's tau (NaN for what does
not rank), seconds of learning and choosing, both kinds of candidates and all folds."""
LEARNED: Mapping[str, tuple[RankLoss, float | None]] = {
    "mse": ("mse", None),
    "logistic": ("logistic", None),
    "hinge": ("hinge", None),
    "weighted": ("hinge", 1.0),
}
"""Networks: their loss, and the maximum weight of a pair."""
FOLDS = 5


@dataclass(frozen=True)
class KernelRanks(Experiment):
    """Options of this experiment."""

    kernels: str = "kernels-cpu-1"
    """Kernels measured under settings of flags: a data set that ships, or a file."""
    tiles: str = "tiles-cpu-1"
    """Programs measured under tilings: a data set that ships, or a file."""
    updates: int = 1000
    """Updates of each network."""
    members: int = 3
    """Networks of an ensemble."""
    seed: int = 0
    """Of the folds."""

    def run(self) -> None:
        """Compare on both splits what is missing; write the page and its table."""
        known = load(self)
        run = run_of(known, self)
        table = kept_of_run(Row, self.path(".csv"), run)
        text = HEAD.format(seed=self.seed, members=self.members, updates=self.updates)
        for name, split in splits(known, self.seed).items():
            for method in (*METHODS, *LEARNED):
                if not any(table.has(run, kind, name, method) for kind in split):
                    for kind, judged in compare(method, known, split, self).items():
                        for measure, value in judged.items():
                            table.add(Row(run, kind, name, method, measure, value))
            for kind, folds in split.items():
                rows = [row for row in table.rows if (row.kind, row.split) == (kind, name)]
                text += section(rows, folds, known[kind].held_out)
        text += "".join(f"\n{each.again}" for each in known.values() if each.again)
        self.write_page(text)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Groups of one kind of candidates, and what is known of them beside the times."""

    groups: RankGroups
    labels: tuple[str, ...]
    """[G] the row of the table that each group counts in."""
    held_out: tuple[str, ...]
    """Labels that are held out whole, and the rows of the table where any is tested."""
    default: np.ndarray
    """[R] whether a candidate is the default."""
    estimate: np.ndarray | None
    """[R] seconds by the analytical model, if there is one."""
    again: str = ""
    """Time lost by choosing the best of an earlier round, if any was measured again."""

    @cached_property
    def setting(self) -> np.ndarray:
        """[R] of flags, the number of the setting."""
        return self.groups.candidates.argmax(axis=1)

    def rows(self, which: np.ndarray) -> np.ndarray:
        """Return the candidates of some groups, in the order that they have."""
        return np.flatnonzero(np.isin(self.groups.group, which))


Judgement = dict[str, float]
"""Time lost by the choices of one method (APE): by label, and `TOTALS`."""
Fold = tuple[np.ndarray, np.ndarray]
"""Groups to learn from, and those to test on."""
Split = Mapping[CandidateKind, Sequence[Fold]]
"""Folds, as many for each kind of candidates; each group is tested at most once."""
Scores = np.ndarray | None
"""[r] of the tested candidates, smaller for faster; None: a random choice."""


@dataclass(frozen=True)
class Row:
    """One number of the page."""

    run: str
    """Of the data, the split and the training: `run_of`."""
    kind: str
    """Kind of candidates: flags or tiles."""
    split: str
    method: str
    measure: str
    """A label, whose APE it is, or one of `TOTALS`."""
    value: float


def run_of(known: Mapping[CandidateKind, Ranked], options: KernelRanks) -> str:
    """Return the name of a run."""
    words = f"{sorted(known)} {options.updates} {options.members} {options.seed}"
    return run_name(words, *(each.groups.seconds for each in known.values()))


def load(options: KernelRanks) -> dict[CandidateKind, Ranked]:
    """Return the kinds of candidates with data; print those that are left out."""
    found: dict[CandidateKind, Ranked] = {}
    makers: dict[CandidateKind, Callable[[], Ranked]] = {
        "flags": lambda: ranked_flags(load_kernel_data(options.kernels)),
        "tiles": lambda: ranked_tiles(load_tile_data(options.tiles)),
    }
    for kind, make in makers.items():
        try:
            found[kind] = make()
        except (ReadError, TrainingError) as error:
            print(f"left out: {error}")
    return found


def ranked_flags(data: KernelData) -> Ranked:
    """Return candidates of flags; the label of a kernel is the family of its model."""
    groups = flag_groups(data)
    labels = tuple(zoo_entry(data.models[k]).family for k in groups.number.tolist())
    return Ranked(groups, labels, HELD_OUT, groups.candidates[:, 0] > 0, None)


def ranked_tiles(data: TileData) -> Ranked:
    """Return candidates of tiles; the label of a program is its network."""
    groups = tile_groups(data)
    programs = [data.programs[p] for p in data.program[groups.row].tolist()]
    cuts = [data.tiles[r] for r in groups.row.tolist()]
    pairs = list(zip(programs, cuts, strict=True))
    return Ranked(
        groups=groups,
        labels=tuple(data.models[p] for p in groups.number.tolist()),
        held_out=HELD_OUT_TILES,
        default=np.array([cut == default_tiles(program) for program, cut in pairs]),
        estimate=np.array([estimate_tiles(TiledProgram(*pair)).seconds for pair in pairs]),
        again=measured_again(data),
    )


def measured_again(data: TileData) -> str:
    """Return how far two rounds of measurements agree on the best tilings; "": there is one."""
    later, first = data.repeats()
    sure = np.maximum(data.spread[later], data.spread[first]) <= CONFIDENT
    if not sure.any():
        return ""
    later, first = later[sure], first[sure]
    before, after = data.seconds[first], data.seconds[later]
    program = data.program[later]
    lost = ape(before, after, program), ape(after, before, program)
    return (
        f"{len(later)} tilings measured again hours later: the best of one round loses "
        f"{lost[0]:.1f} and {lost[1]:.1f} % by the other; Kendall's tau between both is "
        f"{kendall(before, after, program):.2f}.\n"
    )


def kendall(
    predicted: Float64[np.ndarray, "R"],
    seconds: Float64[np.ndarray, "R"],
    kernel: Int[np.ndarray, "R"],
) -> float:
    """Return Kendall's tau-b within a kernel, the mean over kernels where it is defined."""
    from scipy.stats import kendalltau  # imports for half a second

    taus = []
    for rows in groups_of(kernel):
        if len(rows) > 1:
            found: object = kendalltau(predicted[rows], seconds[rows])
            tau = float(found.statistic)  # pyright: ignore[reportAttributeAccessIssue]
            if np.isfinite(tau):
                taus.append(tau)
    return float(np.mean(taus)) if taus else float("nan")


def splits(known: Mapping[CandidateKind, Ranked], seed: int) -> dict[str, Split]:
    """Return both splits in folds: at random, and by label, `Ranked.held_out` being the first."""
    at_random: dict[CandidateKind, list[Fold]] = {}
    by_label: dict[CandidateKind, list[Fold]] = {}
    for kind, each in known.items():
        order = np.random.default_rng(seed).permutation(each.groups.count)
        parts = [np.sort(part) for part in np.array_split(order, FOLDS)]
        at_random[kind] = [(np.setdiff1d(order, part), part) for part in parts]
        by_label[kind] = [by_model_split(each.labels, labels) for labels in label_folds(each, seed)]
    return {"at random": at_random, "by model": by_label}


def label_folds(ranked: Ranked, seed: int) -> list[tuple[str, ...]]:
    """Return labels in folds: those held out, and the others at random; none is empty."""
    known = set(ranked.labels)
    others = sorted(known - set(ranked.held_out))
    drawn = np.random.default_rng(seed).permutation(len(others))
    parts = [[others[i] for i in part] for part in np.array_split(drawn, FOLDS - 1)]
    folds = [sorted(known & set(ranked.held_out)), *parts]
    return [tuple(fold) for fold in folds if fold]


def compare(
    method: str, known: Mapping[CandidateKind, Ranked], split: Split, options: KernelRanks
) -> dict[CandidateKind, Judgement]:
    """Return the time lost by the choices of a method, for the kinds that it applies to."""
    found: dict[CandidateKind, list[Scores]] = {kind: [] for kind in split}
    spent = 0.0
    for number in range(max(map(len, split.values()), default=0)):
        folds: dict[CandidateKind, Fold] = {kind: each[number] for kind, each in split.items()}
        made, took = timed(lambda folds=folds: fold_scores(method, known, folds, options))
        spent += took
        for kind, scores in made.items():
            if not isinstance(scores, str):
                found[kind].append(scores)
    return {
        kind: joint(known[kind], split[kind], each, spent) for kind, each in found.items() if each
    }


def fold_scores(
    method: str,
    known: Mapping[CandidateKind, Ranked],
    folds: Mapping[CandidateKind, Fold],
    options: KernelRanks,
) -> Mapping[CandidateKind, Scores | str]:
    """Return a method's scores of the tested candidates of a fold."""
    if method in LEARNED:
        return networks(method, known, folds, options)
    return {kind: METHODS[method](known[kind], *fold) for kind, fold in folds.items()}


def joint(
    ranked: Ranked, folds: Sequence[Fold], predicted: Sequence[Scores], spent: float
) -> Judgement:
    """Return what choices lose on all folds, by the scores of each."""
    judged = np.sort(np.concatenate([test for _, test in folds]))
    scores = np.full(len(ranked.groups.seconds), np.nan)
    for (_, test), each in zip(folds, predicted, strict=True):
        if each is None:
            return judge(ranked, judged, None, spent)
        scores[ranked.rows(test)] = each
    return judge(ranked, judged, scores[ranked.rows(judged)], spent)


def networks(
    method: str,
    known: Mapping[CandidateKind, Ranked],
    folds: Mapping[CandidateKind, Fold],
    options: KernelRanks,
) -> dict[CandidateKind, Scores]:
    """Return the scores of ranking networks that learned both kinds of candidates together."""
    learned = [known[kind].groups.take(train) for kind, (train, _) in folds.items()]
    loss, most = LEARNED[method]
    config = RankTrainConfig(loss=loss, most=most, updates=options.updates)
    ranks = RankPredictor.fit(learned, config, options.members, print)
    return {
        kind: ranks.predict(known[kind].groups.take(test).inputs)
        for kind, (_, test) in folds.items()
    }


def judge(ranked: Ranked, test: np.ndarray, scores: Scores, spent: float) -> Judgement:
    """Return what choices by scores lose on the groups ``test``."""
    rows = ranked.rows(test)
    seconds, group = ranked.groups.seconds[rows], ranked.groups.group[rows]

    def lost(r: np.ndarray) -> float:
        if scores is None:
            return random_ape(seconds[r], group[r])
        return ape(scores[r], seconds[r], group[r])

    tau = float("nan") if scores is None else kendall(scores, seconds, group)
    labels = [ranked.labels[g] for g in group.tolist()]
    totals = (lost(np.arange(len(rows))), tau, spent)
    return {**by_model(labels, lost), **dict(zip(TOTALS, totals, strict=True))}


def _best_setting(ranked: Ranked, train: np.ndarray, test: np.ndarray) -> Scores | str:
    if ranked.groups.kind != "flags":
        return "tilings of different programs do not compare"
    rows = ranked.rows(train)
    total = np.bincount(ranked.setting[rows], relative_logs(ranked)[rows])
    mean = total / np.maximum(np.bincount(ranked.setting[rows]), 1)
    return mean[ranked.setting[ranked.rows(test)]]


def _grown(ranked: Ranked, logs: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    groups = ranked.groups
    vocabulary = vocabulary_of(groups.kernels.take(train).graph.op_type)
    summed = summed_features(kernel_features(groups.kernels, vocabulary), len(vocabulary))
    wide = np.concatenate([summed[groups.group], groups.candidates], axis=1)
    rows = ranked.rows(train)
    trees = BoostedTrees.fit(SummedKernels(wide[rows], np.exp(logs[rows])))
    return trees.predict(wide[ranked.rows(test)])


def relative_logs(ranked: Ranked) -> np.ndarray:
    """Return [R] logs of the seconds less their mean in the group."""
    logs, group = np.log(ranked.groups.seconds), ranked.groups.group
    return logs - (np.bincount(group, logs) / np.bincount(group))[group]


METHODS: dict[str, Callable[[Ranked, np.ndarray, np.ndarray], Scores | str]] = {
    "random": lambda ranked, train, test: None,
    "default": lambda ranked, train, test: 1.0 - ranked.default[ranked.rows(test)],
    "best setting": _best_setting,
    "analytical": lambda ranked, train, test: (
        "no estimate" if ranked.estimate is None else ranked.estimate[ranked.rows(test)]
    ),
    "trees": lambda ranked, *fold: _grown(ranked, np.log(ranked.groups.seconds), *fold),
    "trees, relative": lambda ranked, *fold: _grown(ranked, relative_logs(ranked), *fold),
}
"""All but the networks: from candidates of one kind, the groups to learn from and those to test on,
to scores; a text explains why a method does not apply."""


def section(rows: Sequence[Row], folds: Sequence[Fold], held_out: Sequence[str]) -> str:
    """Return the table of a kind of candidates and a split: APE, with a column a method; rows
    of labels that are held out, or of all where none is."""
    methods = grouped(rows, lambda row: row.method)
    columns = {name: {row.measure: row.value for row in own} for name, own in methods.items()}
    labels = [name for name in next(iter(columns.values())) if name not in TOTALS]
    shown = [label for label in labels if label in held_out] or labels
    judged = sum(len(test) for _, test in folds)
    return (
        f"\n## {TITLES[rows[0].kind]}, {rows[0].split}: {len(folds[0][0])} kernels learned from in "
        f"the first fold, {judged} judged in all\n\n{error_table(columns, shown, TOTALS)}"
    )
