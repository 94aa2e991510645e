"""`choose_programs`: which of the programs that were drawn to measure.

By tasks, with k-means of all programs' features (CDMPP, algorithm 1), or of every task those on
which the members of an ensemble that learned from others disagree most (query by committee: Seung,
Opper and Sompolinsky, COLT 1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, Int64
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.examples import ProgramInputs, target_numbers
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.measure.features_file import nest_features
from go_rl.costs.programs.measure.measure import DrawnNest
from go_rl.costs.programs.workloads.drawn_programs import Drawing
from go_rl.costs.timing.config import CHOSEN_TASKS, ProgramsConfig

Drawn = Mapping[Drawing, Sequence[DrawnNest]]
Key = tuple[str, str]
"""Workload and setting of a program."""


def choose_programs(drawn: Drawn, config: ProgramsConfig, folder: Path | None = None) -> set[Key]:
    """Return the programs to be measured, as `ChoiceConfig` says.

    Args:
        drawn: programs by drawing.
        config: the choice, and the seed of k-means.
        folder: where features of loop nests are kept; None: nowhere.

    Raises:
        CheckpointError: there are no such weights.
        TrainingError: there are fewer tasks, or none of the programs is one that the predictor
            knows.
    """
    keys, inputs = _inputs(drawn, config.measure.target, folder)
    choice = config.choice
    tasks = choice.tasks or CHOSEN_TASKS
    if choice.choose == "kmeans":
        seed = config.measure.sampling.seed
        chosen = select_tasks(program_features(inputs), inputs.task, tasks, seed)
        rows = np.flatnonzero(np.isin(inputs.task, chosen))
    else:
        predictor = ProgramPredictor.load(choice.weights)
        rows = _where_members_disagree(inputs, predictor, tasks * config.candidates)
    return {keys[row] for row in rows.tolist()}


def programs_in_turn(task: np.ndarray, order: np.ndarray) -> Iterator[np.ndarray]:
    """Yield one program of each task, then another of each, and so on.

    Args:
        task: [P] of each program.
        order: [P] numbers of the programs, which those of a task are taken in.
    """
    shuffled = task[order]
    by_task = np.argsort(shuffled, kind="stable")
    _, first, counts = np.unique(shuffled[by_task], return_index=True, return_counts=True)
    turn = np.empty(len(task), np.int64)
    turn[by_task] = np.arange(len(task)) - np.repeat(first, counts)
    for number in range(int(counts.max(initial=0))):
        yield order[turn == number]


def _where_members_disagree(
    inputs: ProgramInputs, predictor: ProgramPredictor, count: int
) -> Int64[np.ndarray, "J"]:
    """Return rows: of each task the program of the widest spread, then of each the second, and so
    on; programs with as many leaves as none that was learned are left out."""
    known = np.flatnonzero(np.isin(inputs.leaves, predictor.config.network.leaf_counts))
    if not len(known):
        raise TrainingError("the predictor learned no program with as many leaves as these have")
    spread = predictor.interval(inputs.take(known)).spread
    turns = programs_in_turn(inputs.task[known], np.argsort(-spread, kind="stable"))
    return known[np.concatenate(list(turns))[:count]]


def _inputs(drawn: Drawn, device: str, folder: Path | None) -> tuple[list[Key], ProgramInputs]:
    """Return the keys of the distinct programs, and what is known of these."""
    rows = list(_distinct(drawn))
    tasks = {task: i for i, task in enumerate(dict.fromkeys(each.task for each in drawn))}
    levels = {level: i for i, level in enumerate(sorted({each.codegen for each in drawn}))}
    targets = tuple(ProgramTarget(device, level) for level in levels)
    nests = {text: i for i, text in enumerate(dict.fromkeys(nest for _, _, nest in rows))}
    nest = np.array([nests[text] for _, _, text in rows], np.int64)
    inputs = ProgramInputs(
        asts=nest_features(tuple(nests), folder).take(nest),
        task=np.array([tasks[drawing.task] for drawing, _, _ in rows], np.int64),
        target=np.array([levels[drawing.codegen] for drawing, _, _ in rows], np.int64),
        tasks=tuple(tasks), networks=((),) * len(tasks), targets=targets,
        devices=np.array([target_numbers(each) for each in targets]),
        nest=nest, trace=np.zeros(len(rows), np.int64), nests=tuple(nests),
    )  # fmt: skip
    return [(drawing.task.workload, drawing.setting(draw)) for drawing, draw, _ in rows], inputs


def _distinct(drawn: Drawn) -> Iterator[tuple[Drawing, int, str]]:
    """Yield drawing, number and loop nest of each program that its task and level have once."""
    seen: set[tuple[str, str, str]] = set()
    for drawing, nests in drawn.items():
        for draw, each in enumerate(nests):
            key = drawing.task.workload, drawing.codegen, each.nest
            if not each.reason and key not in seen:
                seen.add(key)
                yield drawing, draw, each.nest


LEAST_SPREAD = 1e-3


def select_tasks(
    features: Float[np.ndarray, "P F"], task: Int[np.ndarray, "P"], count: int, seed: int = 0
) -> Int64[np.ndarray, "K"]:
    """Return ``K`` numbers of tasks, the one of the largest cluster first.

    Args:
        features: [P, F] of all programs, on one scale: latents, or `program_features`.
        task: [P] number of each program's task.
        count: ``K``, tasks to be chosen.
        seed: of the clusters.

    Raises:
        TrainingError: there are fewer tasks.
    """
    known = np.unique(task)
    if not 1 <= count <= len(known):
        raise TrainingError(f"{count} tasks cannot be chosen of {len(known)}")
    features = np.asarray(features, np.float64)
    centres, size = _clusters(features, count, seed)
    apart = cdist(centres, features)  # [C, P]
    mean = np.stack([apart[:, task == number].mean(axis=1) for number in known], axis=1)  # [C, T]
    chosen: list[int] = []
    for cluster in np.argsort(-size, kind="stable"):
        chosen.append(int(np.argmin(mean[cluster])))
        mean[:, chosen[-1]] = np.inf
    return known[np.array(chosen)]


def program_features(inputs: ProgramInputs) -> Float[np.ndarray, "P F"]:
    """Return [P, F] standardised sums of leaf vectors, those that are not constant."""
    sums = inputs.asts.sums().astype(np.float64)
    spread = sums.std(axis=0)
    varied = spread > LEAST_SPREAD
    return (sums[:, varied] - sums[:, varied].mean(axis=0)) / spread[varied]


def _clusters(
    features: Float[np.ndarray, "P F"], count: int, seed: int
) -> tuple[Float[np.ndarray, "C F"], Int64[np.ndarray, "C"]]:
    """Centres and sizes of clusters, by k-means from k-means++ seeds; some may be empty."""
    rng = np.random.default_rng(seed)
    centres, label = kmeans2(features, count, iter=25, minit="++", rng=rng, missing="warn")
    return centres, np.bincount(label, minlength=count)
