"""Teachers of ring policies: the best cuts known of the training problems, and better ones as the
learner finds them (expert iteration; Anthony, Tian, Barber 2017).

A teacher's plan is the cuts of one order, for that is what both decoders make. Orders come from
linear DP's candidates, from an untrained policy, and from plans without that limit: those of
annealing over units, and the best known of the zoo. What was found stays in the folder of the run,
one file a problem, and only improves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float64, Int16

from go_rl.core import Budget, CheckpointError, Objective
from go_rl.core.files.whole_file import whole_file
from go_rl.objectives.ring.methods.linear_dp import MAX_ORDERS
from go_rl.objectives.ring.methods.unit_annealing import UnitAnnealing
from go_rl.objectives.ring.orders import candidate_orders, positions
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import ImitationConfig
from go_rl.policy.learn.problems.ring import RingProblems, TaughtRing
from go_rl.policy.learn.ring_imitation.lesson import RingLesson, imitate
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.runtime.array_file import UNREADABLE, read_arrays

PLANS = "teachers"
"""Folder of the best plans, in that of the run."""
BATCH = 16
"""Orders drawn and cut at a time."""
KEPT_MIXES = 4
"""Graph-level decisions of one problem that are imitated."""
LEVEL = 1e-3
"""Relative differences of seconds below this count as none."""
MOVES = 100_000
"""Moves of the annealing whose plan gives one of the first orders."""
Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class RingTeacher:
    """The best known of one problem."""

    seconds: float
    """Seconds of the plan."""
    chip: Int16[np.ndarray, "U"]
    """[U] chip of each unit."""
    mixes: Float[np.ndarray, "M G"]
    """[M, G] the best graph-level decisions, and what their orders take."""
    mix_seconds: Float64[np.ndarray, "M"]
    worst: float
    """Median seconds of the decisions that were drawn last."""

    def save(self, path: Path) -> None:
        """Write as npz; a reader never sees a half-written file."""
        with whole_file(path) as file:
            np.savez_compressed(file, **self.__dict__)

    @staticmethod
    def load(path: Path) -> RingTeacher:
        """Read what `save` wrote.

        Raises:
            CheckpointError: the file is damaged.
        """
        try:
            found = read_arrays(path)
            return RingTeacher(
                float(found["seconds"]), found["chip"], found["mixes"], found["mix_seconds"],
                float(found["worst"]),
            )  # fmt: skip
        except (*UNREADABLE, KeyError) as error:
            raise CheckpointError(f"{path}: is no file of a plan ({error}); delete it") from error

    def lesson(self, name: str, decoder: RingPlans) -> RingLesson | None:
        """Return what is imitated; None where no plan is known."""
        if not np.isfinite(self.seconds):
            return None
        best = np.argsort(self.mix_seconds, kind="stable")[:KEPT_MIXES]
        gained = self.mix_seconds[best[0]] < self.worst * (1 - LEVEL)
        return RingLesson(name, decoder, self.chip, self.mixes[best], bool(gained))


def imitating_ring_agent(
    agent: Agent,
    problems: RingProblems,
    folder: Path,
    report: Report,
    count: Callable[[int], None],
) -> Agent:
    """Return the agent after all rounds of imitation; without any, as it is.

    Args:
        agent: untrained.
        problems: those of the run.
        folder: of the run.
        report: called with a sentence now and then.
        count: called with numbers of plans priced.

    Raises:
        CheckpointError: a kept file is damaged.
        TrainingError: no problem has a plan, or a loss is not finite.
    """
    config = problems.config.imitation
    if not config.teaches:
        return agent
    kept = folder / PLANS
    kept.mkdir(parents=True, exist_ok=True)
    for turn in range(config.rounds):
        path = folder / f"imitated-{turn}.npz"
        if path.exists():
            agent = load_weights(path, Objective.RING).agent
            continue
        lessons, better = [], 0
        for i, taught in enumerate(problems.taught()):
            found = _taught(agent, taught, config, kept, (turn, i), report, count)
            better += found[1]
            if found[0] is not None:
                lessons.append(found[0])
        report(f"round {turn + 1}: {better} of {len(lessons)} problems have a better plan")
        agent, _ = imitate(
            agent, lessons, config, problems.config.seed + turn,
            lambda sentence, turn=turn: report(f"round {turn + 1}/{config.rounds}, {sentence}"),
        )  # fmt: skip
        save_weights(Weights(agent, f"imitated-{turn}", {"problems": len(lessons)}), path)
    return agent


def _taught(
    agent: Agent, taught: TaughtRing, config: ImitationConfig, folder: Path, turn: tuple[int, int],
    report: Report, count: Callable[[int], None],
) -> tuple[RingLesson | None, bool]:  # fmt: skip
    """The lesson of one problem after this turn, and whether its plan got better."""
    decoder, path, seed = taught.decoder, folder / f"{taught.name}.npz", turn[1]
    if not decoder.decides or not 1 < decoder.padded.num_units <= config.max_units:
        return None, False
    known = RingTeacher.load(path) if path.exists() else None
    if known is not None and not config.rollouts:
        return known.lesson(taught.name, decoder), False
    first = known is None
    if known is None:
        known = first_ring_teacher(decoder, taught.known, seed)
        count(MAX_ORDERS)
    rollouts = config.samples if first else config.rollouts
    found = explored(agent, decoder, known, rollouts, seed + 1000 * turn[0])
    count(rollouts)
    found.save(path)
    if first:
        report(f"{taught.name}: {found.seconds * 1e3:.4g} ms")
    return found.lesson(taught.name, decoder), found.seconds < known.seconds * (1 - LEVEL)


def first_ring_teacher(
    decoder: RingPlans, known: Int16[np.ndarray, "N"] | None, seed: int
) -> RingTeacher:
    """Return the best cuts of linear DP's orders, and of the orders of plans without that limit."""
    workspace = decoder.workspace
    orders = islice(candidate_orders(workspace.units, seed), MAX_ORDERS)
    scores = np.stack([positions(order) for order in orders])
    annealed = UnitAnnealing().optimize(workspace.problem, Budget(samples=MOVES), seed)
    plans = [annealed.device] if known is None else [annealed.device, known]
    chips = decoder.unit_chips(np.stack(plans))
    scores = np.concatenate([scores, chips + scores[0]])
    found = decoder.orders(scores, seed)
    row = int(np.argmin(found.priced.seconds))
    assert found.chip is not None
    none = np.zeros((0, 0), np.float32)
    return RingTeacher(
        float(found.priced.seconds[row]), found.chip[row].copy(), none, np.zeros(0), np.inf
    )


def explored(
    agent: Agent, decoder: RingPlans, known: RingTeacher, rollouts: int, seed: int
) -> RingTeacher:
    """Return the teacher after the agent's own orders, half of them drawn widely."""
    seconds, chip = known.seconds, known.chip
    mixes, taken = [known.mixes] if known.mixes.size else [], [known.mix_seconds]
    noise = np.resize(np.array([1.0, 2.0], np.float32), BATCH)
    for part in range(-(-rollouts // BATCH)):
        actions, drawn = decoder.sample(agent, "order", noise, seed * 1_009 + part)
        row = int(np.argmin(drawn.priced.seconds))
        mixes.append(np.asarray(actions["order"].mix))
        taken.append(drawn.priced.seconds)
        if drawn.priced.seconds[row] < seconds:
            assert drawn.chip is not None
            seconds, chip = float(drawn.priced.seconds[row]), drawn.chip[row].copy()
    last = np.concatenate(taken[1:])
    every, mix = np.concatenate(taken), np.concatenate(mixes)
    best = np.argsort(every, kind="stable")[:KEPT_MIXES]
    return RingTeacher(seconds, chip, mix[best], every[best], float(np.median(last)))
