"""Schedule search by predictor (CDMPP, figure 14b): equal rounds, 10 schedules measured in each.

Run: ``python -m experiments.tuning.schedule_search POOLS --predicted cdmpp=SCORES.npz`` with
recorded pools of BERT-tiny (``experiments.tuning.record_pools --networks bert-tiny``) and scores of
their schedules by a predictor that learned from other operators: `save_scores` writes such a file.
The same evolutionary search is guided by boosted trees fitted to what it measured (XGBoost), by the
predictor alone, and by the predictor with trees that correct it; chance is the control. CDMPP's
authors report 1.5 to 2 times the time of XGBoost for 2,000 rounds, and a faster network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from jaxtyping import Float64, UInt64

from experiments.csv_rows import GrowingTable, run_name
from experiments.pages import RESULTS, run_script, write_page
from experiments.tuning.inner_tuners import COLUMNS, table
from experiments.tuning.tuner_curves import CurveRow, band, figure, run_curves, seed_means
from go_rl.core import ReadError
from go_rl.core.files.whole_file import whole_file
from go_rl.report.figures import save_figure
from go_rl.report.file_tables import markdown_table
from go_rl.tuning.backends.schedule_pool import PoolSet, load_pools
from go_rl.tuning.programs.nouns import MakeInnerTuner, Schedule
from go_rl.tuning.tuners import inner_tuner
from go_rl.tuning.tuners.evolutionary_search import EvolutionConfig, evolutionary_search
from go_rl.tuning.tuners.scored_pool import ScheduleScorer

NAME = "schedule_search"
MEASURED = 10
"""Schedules of a round, as published."""
TREES, CHANCE = "XGBoost", "random"


@dataclass(frozen=True)
class Options:
    """Command line of this experiment."""

    pools: Annotated[str, tyro.conf.Positional]
    """File of recorded pools of one network, or the name of a network whose pools ship."""
    predicted: tuple[str, ...] = ()
    """NAME=FILE: predictors, and scores of the pool's schedules by each."""
    rounds: int = 20
    """Of each operator."""
    seeds: int = 5
    results: Path = RESULTS
    """Folder that is written to."""


def main(options: Options) -> None:
    """Make the rows that are missing; write the page and its figure."""
    pools = load_pools(options.pools)
    scores = dict(named_scores(each) for each in options.predicted)
    arms = arms_of({name: table_scorer(known) for name, known in scores.items()})
    run = run_name(
        f"{pools.digest} {options.rounds}", *(np.array([*s.values()]) for s in scores.values())
    )
    rows = run_curves(
        GrowingTable(CurveRow, options.results / f"{NAME}.csv"), run, [pools],
        {name: (lambda _pool, _k, make=make: make) for name, make in arms.items()},
        range(options.seeds), options.rounds * MEASURED, MEASURED,
    )  # fmt: skip
    save_figure(figure(rows, tuple(arms), MEASURED), options.results / NAME)
    write_page(options.results / NAME, page(rows, pools, options), __file__)


def arms_of(predictors: Mapping[str, ScheduleScorer]) -> dict[str, MakeInnerTuner]:
    """Return the searches: chance, trees, and each predictor alone and corrected by trees."""
    found = {CHANCE: inner_tuner("random"), TREES: _evolution(None, True)}
    for name, scorer in predictors.items():
        found[name] = _evolution(scorer, False)
        found[f"{name}, corrected"] = _evolution(scorer, True)
    return found


def table_scorer(scores: Mapping[str, float]) -> ScheduleScorer:
    """Return a predictor whose answers are known: by the key of a schedule; the smallest is the
    fastest."""

    def score(schedules: Sequence[Schedule], _: np.ndarray) -> np.ndarray:
        missing = [each.key for each in schedules if each.key not in scores]
        if missing:
            raise ReadError(f"the predictor's file has no score of schedule {missing[0]}")
        return np.array([scores[each.key] for each in schedules])

    return score


def pool_key(trace: str) -> int:
    """Return the key of a schedule in a pool, by its trace."""
    return int.from_bytes(hashlib.sha256(trace.encode()).digest()[:8], "big")


def save_scores(
    path: Path, keys: UInt64[np.ndarray, "S"], scores: Float64[np.ndarray, "S"]
) -> None:
    """Write a predictor's scores of the schedules of pools, by their keys (`pool_key`)."""
    with whole_file(path) as file:
        np.savez_compressed(file, keys=keys, scores=scores)


def named_scores(argument: str) -> tuple[str, dict[str, float]]:
    """Read ``NAME=FILE``.

    Raises:
        ReadError: it has another form, or the file is not one of `save_scores`.
    """
    name, _, path = argument.partition("=")
    if not name or not path:
        raise ReadError(f"--predicted: must be NAME=FILE, not {argument!r}")
    try:
        with np.load(path, allow_pickle=False) as file:
            keys, scores = file["keys"].tolist(), file["scores"].tolist()
    except (OSError, KeyError, ValueError, EOFError) as error:
        raise ReadError(f"{path}: holds no scores of schedules ({error})") from error
    return name, {f"{key:016x}": score for key, score in zip(keys, scores, strict=True)}


def page(rows: Sequence[CurveRow], pools: PoolSet, options: Options) -> str:
    """Return the page."""
    head, lines = table(rows, MEASURED)
    sizes = [len(each.seconds) for each in pools.pools]
    trees = choosing(rows, TREES)
    ratios = [
        f"{name} {choosing(rows, name) / trees:.2f}"
        for name in dict.fromkeys(row.tuner for row in rows)
        if name not in (TREES, CHANCE)
    ]
    speeds = {name: float(band(seed_means(rows, name))[0][-1]) for name in (TREES, CHANCE)}
    return (
        f"# Schedule search by predictor: {pools.network}\n\n{len(sizes)} operators, {min(sizes)} "
        f"to {max(sizes)} measured schedules each; {options.rounds} rounds of {MEASURED} measured "
        f"schedules, {options.seeds} seeds. {COLUMNS}\n\n"
        f"{markdown_table(head, lines)}\n"
        f"{TREES} ends at {speeds[TREES]:.3f} of the pool's best speed, chance at "
        f"{speeds[CHANCE]:.3f}. "
        + (
            f"Time of choosing over that of {TREES}, predictions being known beforehand and not "
            f"counted: {'; '.join(ratios)}.\n"
            if ratios
            else "No predictor was given.\n"
        )
        + f"\n![Speed against trials]({NAME}.svg)\n"
    )


def choosing(rows: Sequence[CurveRow], tuner: str) -> float:
    """Return CPU milliseconds a trial of choosing."""
    return float(np.mean([row.propose_ms for row in rows if row.tuner == tuner]))


def _evolution(prior: ScheduleScorer | None, learn: bool) -> MakeInnerTuner:
    config = EvolutionConfig(learn=learn)
    return lambda space, seed: evolutionary_search(space, seed, config, prior)


if __name__ == "__main__":
    run_script(main, Options, __doc__)
