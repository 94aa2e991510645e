"""Teachers of sequential dispatch: the best weights of the heads known of the training problems,
and better ones as the learner finds them (expert iteration; Anthony, Tian, Barber 2017).

A search starts from what the learner draws and goes on by the cross-entropy method. The finds of a
run stay in its folder, one file a problem, and only improve; so does what a round of imitation has
learned. A run that is cut off goes on with the round it was in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import CheckpointError, Objective
from go_rl.core.files.whole_file import whole_file
from go_rl.policy.agent import Agent
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.rollout import HeadWeights
from go_rl.policy.learn.config import DispatchTrainConfig, ImitationConfig
from go_rl.policy.learn.imitation import DispatchLesson, imitate
from go_rl.policy.learn.problems.curriculum import short_name
from go_rl.policy.learn.problems.makespan import MakespanProblems, ProblemKey, makespan_plans
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.runtime.array_file import UNREADABLE, read_arrays

FINDS = "teachers"
"""Folder of the best decisions, in that of the run."""
BATCH = 32
"""Rollouts priced at a time."""
KEPT = 12
"""Decisions that are kept of each problem."""
ELITES = 8
"""Decisions around which a search draws."""
MEAN_RATE, SPREAD_RATE = 0.7, 0.5
"""Share by which a batch moves the mean and the deviation of a search."""
NARROWEST = 0.15
"""Least deviation of a search over that of the learner."""
Report = Callable[[str], None]
Count = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Teacher:
    """The best weights of the heads known of one problem."""

    weights: HeadWeights
    """[K], the best first."""
    seconds: Float64[np.ndarray, "K"]
    """[K] what their plans take."""

    def save(self, path: Path) -> None:
        """Write as npz; a reader never sees a half-written file."""
        with whole_file(path) as file:
            np.savez_compressed(file, seconds=self.seconds, **self.weights._asdict())

    @staticmethod
    def load(path: Path) -> Teacher:
        """Read what `save` wrote.

        Raises:
            CheckpointError: the file is damaged.
        """
        try:
            found = read_arrays(path)
            return Teacher(HeadWeights(found["select"], found["place"]), found["seconds"])
        except (*UNREADABLE, KeyError) as error:
            raise CheckpointError(f"{path}: is no file of weights ({error}); delete it") from error

    def best(self, kept: int) -> Teacher:
        """Return the best; the earlier of equals."""
        order = np.argsort(self.seconds, kind="stable")[:kept]
        return Teacher(HeadWeights(*(rows[order] for rows in self.weights)), self.seconds[order])

    def with_(self, other: Teacher) -> Teacher:
        """Return the decisions of both."""
        rows = (np.concatenate(pair) for pair in zip(self.weights, other.weights, strict=True))
        return Teacher(HeadWeights(*rows), np.concatenate([self.seconds, other.seconds]))


def imitating_agent(
    agent: Agent, problems: MakespanProblems, whole: DispatchTrainConfig, folder: Path,
    report: Report, count: Count,
) -> Agent:  # fmt: skip
    """Return the agent after all rounds of imitation; without any, as it is.

    Args:
        agent: untrained dispatch policy.
        problems: those of the run.
        whole: configuration of the run.
        folder: of the run.
        report: called with a sentence now and then.
        count: called with numbers of plans priced.

    Raises:
        CheckpointError: a kept file is damaged.
        TrainingError: no problem has a plan, or a loss is not finite.
    """
    config = whole.imitation
    if not config.teaches:
        return agent
    kept = folder / FINDS
    kept.mkdir(parents=True, exist_ok=True)
    keys = [key for key in _some(problems, config) if _fits(key, whole)]
    for turn in range(config.rounds):
        path = folder / f"imitated-{turn}.npz"
        if path.exists():
            agent = load_weights(path, Objective.MAKESPAN).agent
            continue
        lessons = _lessons(agent, keys, whole, kept, turn, report, count)
        seed = problems.config.seed + turn
        agent, _ = imitate(
            agent, lessons, config, seed,
            lambda sentence, turn=turn: report(f"round {turn + 1}/{config.rounds}, {sentence}"),
        )  # fmt: skip
        save_weights(Weights(agent, f"imitated-{turn}", {"problems": len(lessons)}), path)
    return agent


def _some(problems: MakespanProblems, config: ImitationConfig) -> list[ProblemKey]:
    """At most `ImitationConfig.each` problems of each graph, the same for a seed."""
    by_graph: dict[str, list[ProblemKey]] = {}
    for key in problems.taught():
        by_graph.setdefault(key[0], []).append(key)
    rng, most = np.random.default_rng(problems.config.seed), config.each
    return [
        keys[i]
        for keys in by_graph.values()
        for i in sorted(rng.permutation(len(keys))[:most].tolist())
    ]


def dispatch_plans(key: ProblemKey, config: DispatchTrainConfig) -> DispatchPlans:
    """Return a training problem of a dispatch policy."""
    found = makespan_plans(config.kind, *key, config.cost)
    assert isinstance(found, DispatchPlans)
    return found


def _fits(key: ProblemKey, config: DispatchTrainConfig) -> bool:
    units = dispatch_plans(key, config).units.num_units
    return 1 < units <= config.imitation.max_units


def _lessons(
    agent: Agent, keys: list[ProblemKey], config: DispatchTrainConfig, folder: Path, turn: int,
    report: Report, count: Count,
) -> list[DispatchLesson]:  # fmt: skip
    """The best decisions of every problem, after the agent's search of this turn."""
    lessons, better = [], 0
    for i, key in enumerate(keys):
        name = "--".join((short_name(key[0]), key[1], "+".join(key[2])))
        path, decoder = folder / f"{name}.{turn}.npz", dispatch_plans(key, config)
        before = folder / f"{name}.{turn - 1}.npz"
        if path.exists():
            teacher = Teacher.load(path)
        else:
            known = Teacher.load(before) if turn else None
            teacher = explored(
                agent, decoder, known, config.imitation, config.seed + 1009 * turn + i
            )
            teacher.save(path)
            count(config.imitation.rollouts)
            better += known is None or teacher.seconds[0] < known.seconds[0] * (1 - 1e-9)
            if known is None:
                report(f"{i + 1}/{len(keys)} {name}: {teacher.seconds[0] * 1e3:.4g} ms")
        finite = np.isfinite(teacher.seconds)
        if finite.any():
            lessons.append(
                DispatchLesson(
                    name, decoder, HeadWeights(*(rows[finite] for rows in teacher.weights))
                )
            )
    report(f"round {turn + 1}: {better} of {len(keys)} problems have a better plan")
    return lessons


def explored(
    agent: Agent, decoder: DispatchPlans, known: Teacher | None, config: ImitationConfig,
    seed: int,
) -> Teacher:  # fmt: skip
    """Return the best decisions after a search by the cross-entropy method (Rubinstein 1999).

    The first batch is what the agent draws. Later ones come from a Gaussian with a deviation for
    each number, around the best decisions so far.

    Args:
        agent: dispatch policy.
        decoder: of the problem.
        known: the best decisions so far; None: there are none.
        config: how many rollouts.
        seed: of the draws.
    """
    rng, encoded = np.random.default_rng(seed), agent.encode(decoder.padded)
    noise = np.ones(BATCH, np.float32)
    noise[0] = 0.0
    drawn = decoder.proposals(
        decoder.draw(agent, encoded, "plan", noise, jax.random.key(seed % 2**32)), noise
    )
    first = HeadWeights(drawn["schedule"].weights, drawn["placement"].weights)
    mean = [rows.mean(axis=0) for rows in first]
    widest = [rows.std(axis=0) for rows in first]
    spread, found, weights = [rows.copy() for rows in widest], known, first
    for turn in range(-(-config.rollouts // BATCH)):
        if turn:
            weights = HeadWeights(*(_around(rng, *pair) for pair in zip(mean, spread, strict=True)))
        asked = {
            "schedule": drawn["schedule"]._replace(weights=weights.select),
            "placement": drawn["placement"]._replace(weights=weights.place),
        }
        new = Teacher(weights, decoder.price(asked, seed).priced.seconds)
        found = (new if found is None else found.with_(new)).best(KEPT)
        for i, rows in enumerate(found.weights):
            best = rows[:ELITES]
            mean[i] = (1 - MEAN_RATE) * mean[i] + MEAN_RATE * best.mean(axis=0)
            least = np.maximum(best.std(axis=0), NARROWEST * widest[i])
            spread[i] = (1 - SPREAD_RATE) * spread[i] + SPREAD_RATE * least
    assert found is not None
    return found


def _around(
    rng: np.random.Generator, mean: np.ndarray, spread: np.ndarray
) -> Float32[np.ndarray, "B F"]:
    return (mean + spread * rng.standard_normal((BATCH, len(mean)))).astype(np.float32)
