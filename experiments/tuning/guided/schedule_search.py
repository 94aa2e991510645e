"""Candidate search by predictor (CDMPP, figure 14b): equal rounds, 10 candidates measured in each.

Run: ``python -m experiments.tuning.guided.schedule_search POOLS --predicted cdmpp=SCORES.npz`` with
recorded pools of BERT-tiny (``experiments.tuning.record_pools --networks bert-tiny``) and scores of
their candidates by a predictor that learned from other operators:
``experiments.tuning.guided.cdmpp_scores`` writes such files. The same evolutionary search is guided
by boosted trees fitted to what it measured (XGBoost), by the predictor alone, and by the predictor
with trees that correct it; random draws, and the search guided by random scores, are the controls.
CDMPP's authors report 1.5 to 2 times the time of XGBoost for 2,000 rounds, and a faster network.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from jaxtyping import Float64, UInt64

from experiments.experiment import Experiment
from experiments.rows import run_name
from experiments.tuning.inner_tuners import COLUMNS, table
from experiments.tuning.tuner_curves import CurveRow, figure, run_curves, tune_operator
from go_rl.core import ReadError
from go_rl.core.files.whole_file import whole_file
from go_rl.report.file_tables import markdown_table
from go_rl.tuning.loop.nouns import Candidate, MakeInnerTuner
from go_rl.tuning.pools.candidate_pool import PoolSet, load_pools
from go_rl.tuning.pools.replay import ReplayBackend
from go_rl.tuning.tuners import inner_tuner
from go_rl.tuning.tuners.evolutionary_search import evolutionary_search
from go_rl.tuning.tuners.scored_pool import CandidateScorer

NAME = "schedule_search"
MEASURED = 10
"""Candidates of a round, as published."""
TREES, CHANCE, BLIND = "XGBoost", "random", "random scores"


@dataclass(frozen=True)
class ScheduleSearch(Experiment):
    """Options of this experiment."""

    pools: Annotated[str, tyro.conf.Positional]
    """File of recorded pools of one network, or the name of a network whose pools ship."""
    predicted: tuple[str, ...] = ()
    """NAME=FILE: predictors, and scores of the pool's candidates by each."""
    rounds: int = 20
    """Of each operator."""
    seeds: int = 5

    def run(self) -> None:
        """Make the rows that are missing; write the page and its figure."""
        pools = load_pools(self.pools)
        known = dict(named_scores(each) for each in self.predicted)
        arms = arms_of({name: table_scorer(each.scores) for name, each in known.items()})
        scores = (np.array([*each.scores.values()]) for each in known.values())
        run = run_name(f"{pools.digest} {self.rounds}", *scores)
        rows = run_curves(
            self.kept_rows(CurveRow), run, [pools],
            {name: (lambda _pool, _k, make=make: make) for name, make in arms.items()},
            range(self.seeds), self.rounds * MEASURED, MEASURED,
        )  # fmt: skip
        self.save_figure(figure(rows, tuple(arms), MEASURED))
        counts = {name: scored_a_trial(pools, each, self) for name, each in known.items()}
        costs = {name: 1e3 * known[name].seconds * count for name, count in counts.items()}
        self.write_page(page(rows, pools, self, costs))


@dataclass(frozen=True)
class KnownScores:
    """A predictor's scores of recorded candidates."""

    scores: Mapping[str, float]
    """By key; the smallest is the fastest."""
    seconds: float
    """CPU seconds of one score."""


def scored_a_trial(pools: PoolSet, known: KnownScores, options: ScheduleSearch) -> float:
    """Return how many candidates the search guided by a predictor alone scores for each trial."""
    scored, trials, backend = 0, 0, ReplayBackend(pools)
    table = table_scorer(known.scores)

    def counting(candidates: Sequence[Candidate], features: np.ndarray) -> np.ndarray:
        nonlocal scored
        scored += len(candidates)
        return table(candidates, features)

    make = _evolution(counting, False)
    for k in range(len(pools.pools)):
        tuner = make(backend.space(k), 0)
        best, _ = tune_operator(backend, k, tuner, options.rounds * MEASURED, MEASURED)
        trials += len(best)
    return scored / trials


def arms_of(predictors: Mapping[str, CandidateScorer]) -> dict[str, MakeInnerTuner]:
    """Return the searches: chance, random scores, trees, and each predictor alone and corrected by
    trees."""
    found = {
        CHANCE: inner_tuner("random"), BLIND: _evolution(random_scores, False),
        TREES: _evolution(None, True),
    }  # fmt: skip
    for name, scorer in predictors.items():
        found[name] = _evolution(scorer, False)
        found[f"{name}, corrected"] = _evolution(scorer, True)
    return found


def random_scores(candidates: Sequence[Candidate], _: np.ndarray) -> np.ndarray:
    """Return a number of each candidate that says nothing of it: its key's hash, in [0, 1)."""
    return np.array([
        zlib.crc32(each.key.encode()) / 2**32 for each in candidates
    ])  # fmt: skip


def table_scorer(scores: Mapping[str, float]) -> CandidateScorer:
    """Return a predictor whose answers are known: by the key of a candidate; the smallest is the
    fastest."""

    def score(candidates: Sequence[Candidate], _: np.ndarray) -> np.ndarray:
        missing = [each.key for each in candidates if each.key not in scores]
        if missing:
            raise ReadError(f"the predictor's file has no score of candidate {missing[0]}")
        return np.array([scores[each.key] for each in candidates])

    return score


def save_scores(
    path: Path, keys: UInt64[np.ndarray, "S"], scores: Float64[np.ndarray, "S"], seconds: float
) -> None:
    """Write a predictor's scores of the candidates of pools, by their keys (`trace_key`), and the
    CPU seconds that one takes, its features being known."""
    with whole_file(path) as file:
        np.savez_compressed(file, keys=keys, scores=scores, seconds=seconds)


def named_scores(argument: str) -> tuple[str, KnownScores]:
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
            seconds = float(file["seconds"])
    except (OSError, KeyError, ValueError, EOFError) as error:
        raise ReadError(f"{path}: holds no scores of candidates ({error})") from error
    found = {f"{key:016x}": score for key, score in zip(keys, scores, strict=True)}
    return name, KnownScores(found, seconds)


def page(
    rows: Sequence[CurveRow], pools: PoolSet, options: ScheduleSearch, costs: Mapping[str, float]
) -> str:
    """Return the page.

    Args:
        rows: of all searches.
        pools: that they walked.
        options: of the script.
        costs: CPU milliseconds a trial that each predictor's scores take.
    """
    head, lines = table(rows, MEASURED)
    sizes = [len(each.seconds) for each in pools.pools]
    seeds = len({row.seed for row in rows})
    return (
        f"# Candidate search by predictor: {pools.network}\n\n{len(sizes)} operators, {min(sizes)} "
        f"to {max(sizes)} measured candidates each; {options.rounds} rounds of {MEASURED} measured "
        f"candidates, {seeds} seeds. {COLUMNS}\n\n{markdown_table(head, lines)}\n"
        f"## Time\n\nMilliseconds a trial: *scores* of the predictor, one after another as the "
        "search asks for them; *measuring*: building and timing as recorded, mean over the pool. "
        f"*Ratio*: time of a search over that of {TREES}, equal rounds (published: 1.5 to 2 over "
        f"2,000 rounds).\n\n{_times(rows, pools, costs)}\n"
        f"![Speed against trials]({options.stem.name}.svg)\n"
    )


def _times(rows: Sequence[CurveRow], pools: PoolSet, costs: Mapping[str, float]) -> str:
    measuring = 1e3 * float(np.mean(np.concatenate([pool.spent for pool in pools.pools])))
    names = list(dict.fromkeys(row.tuner for row in rows))
    scores = {name: costs.get(name.partition(", ")[0], 0.0) for name in names}
    own = {name: choosing(rows, name) + scores[name] for name in names}
    cells = [
        [
            name, f"{choosing(rows, name):.1f}", f"{scores[name]:.1f}", f"{measuring:.0f}",
            f"{own[name] / own[TREES]:.2f}",
            f"{(measuring + own[name]) / (measuring + own[TREES]):.2f}",
        ]
        for name in names
    ]  # fmt: skip
    heads = ["search", "fits, choosing", "scores", "measuring", "ratio without measuring",
             "ratio of all"]  # fmt: skip
    return markdown_table(heads, cells)


def choosing(rows: Sequence[CurveRow], tuner: str) -> float:
    """Return CPU milliseconds a trial of choosing."""
    return float(np.mean([row.propose_ms for row in rows if row.tuner == tuner]))


def _evolution(prior: CandidateScorer | None, learn: bool) -> MakeInnerTuner:
    return lambda space, seed: evolutionary_search(space, seed, None, prior, learn)


if __name__ == "__main__":
    ScheduleSearch.main()
