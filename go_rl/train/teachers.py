"""Teachers of sequential dispatch: the best plans known of the training problems, and better ones
as the learner finds them (expert iteration; Anthony, Tian, Barber 2017).

The plans of a run stay in its folder, one file a problem, and only improve; so does what a round of
imitation has learned. A run that is cut off goes on with the round it was in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core import Budget, CheckpointError, Objective
from go_rl.core.decisions import Decisions
from go_rl.core.files.whole_file import whole_file
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import PolicyConfig
from go_rl.policy.dispatch.rollout import Dispatched
from go_rl.policy.plan_decoders.dispatch_decisions import dispatch_decisions, dispatched
from go_rl.policy.plan_decoders.makespan_decoder import MakespanDecoder
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.runtime.array_file import UNREADABLE, read_arrays
from go_rl.search.makespan.composed import Composed
from go_rl.train.config import ImitationConfig, MakespanTrainConfig
from go_rl.train.imitation import DispatchLesson, imitate
from go_rl.train.problems.makespan import MakespanProblems, ProblemKey, makespan_decoder

PLANS = "teachers"
"""Folder of the best plans, in that of the run."""
BATCH = 32
"""Rollouts priced at a time."""
TEMPERATURES = (0.0, 1.0, 0.5, 1.0)
"""Of successive rollouts that look for better plans."""
Report = Callable[[str], None]
Count = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Teacher:
    """The best plan known of one problem, as a dispatcher makes it."""

    plan: Dispatched
    """[1, U]."""
    seconds: float

    def save(self, path: Path) -> None:
        """Write as npz; a reader never sees a half-written file."""
        with whole_file(path) as file:
            np.savez_compressed(
                file, seconds=self.seconds, device=self.plan.device, order=self.plan.order
            )

    @staticmethod
    def load(path: Path) -> Teacher:
        """Read what `save` wrote.

        Raises:
            CheckpointError: the file is damaged.
        """
        try:
            found = read_arrays(path)
            return Teacher(Dispatched(found["device"], found["order"]), float(found["seconds"]))
        except (*UNREADABLE, KeyError) as error:
            raise CheckpointError(f"{path}: is no file of a plan ({error}); delete it") from error


def imitating_agent(
    agent: Agent, problems: MakespanProblems, folder: Path, report: Report, count: Count
) -> Agent:
    """Return the agent after all rounds of imitation; without any, as it is.

    Args:
        agent: untrained, of the form ``dispatch``.
        problems: those of the run.
        folder: of the run.
        report: called with a sentence now and then.
        count: called with numbers of plans priced.

    Raises:
        CheckpointError: a kept file is damaged.
        TrainingError: no problem has a plan, or a loss is not finite.
    """
    config = problems.config.imitation
    if not config.rounds or not config.updates:
        return agent
    kept = folder / PLANS
    kept.mkdir(parents=True, exist_ok=True)
    keys = [key for key in problems.taught() if _fits(key, problems.config)]
    for turn in range(config.rounds):
        path = folder / f"imitated-{turn}.npz"
        if path.exists():
            agent = load_weights(path, Objective.MAKESPAN).agent
            continue
        lessons = _lessons(agent, keys, problems.config, kept, turn, report, count)
        seed = problems.config.seed + turn
        agent, _ = imitate(
            agent, lessons, config, seed,
            lambda sentence, turn=turn: report(f"round {turn + 1}/{config.rounds}, {sentence}"),
        )  # fmt: skip
        save_weights(Weights(agent, f"imitated-{turn}", {"problems": len(lessons)}), path)
    return agent


def _fits(key: ProblemKey, config: MakespanTrainConfig) -> bool:
    units = makespan_decoder(*key, config.cost).units.num_units
    return 1 < units <= config.imitation.max_units


def _lessons(
    agent: Agent, keys: list[ProblemKey], config: MakespanTrainConfig, folder: Path, turn: int,
    report: Report, count: Count,
) -> list[DispatchLesson]:  # fmt: skip
    """The best plan of every problem, after the agent's own rollouts of this turn."""
    lessons, better = [], 0
    for i, key in enumerate(keys):
        name = "--".join((key[0], key[1], "+".join(key[2])))
        path, decoder = folder / f"{name}.npz", makespan_decoder(*key, config.cost)
        if path.exists():
            teacher = Teacher.load(path)
        else:
            teacher = first_teacher(decoder, config.imitation, config.seed + i)
            teacher.save(path)
            count(config.imitation.samples)
            report(f"{i + 1}/{len(keys)} {name}: {teacher.seconds * 1e3:.4g} ms")
        found = explored(agent, decoder, config.imitation.rollouts, config.seed + 1000 * turn + i)
        count(config.imitation.rollouts)
        if found is not None and found.seconds < teacher.seconds * (1 - 1e-9):
            teacher, better = found, better + 1
            teacher.save(path)
        if np.isfinite(teacher.seconds):
            lessons.append(DispatchLesson(name, decoder, teacher.plan))
    report(f"round {turn + 1}: {better} of {len(keys)} problems have a better plan")
    return lessons


def first_teacher(decoder: MakespanDecoder, config: ImitationConfig, seed: int) -> Teacher:
    """Return the best of compositions of classical passes and of what an untrained list scheduler
    draws."""
    problem = decoder.workspace.problem
    plan = Composed().optimize(problem, Budget(samples=config.samples), seed)
    group, priority = plan.fusion_group, plan.priority
    best = _projected(
        decoder,
        Decisions(
            plan.device[None],
            None if priority is None else priority[None],
            None if group is None else group[None],
        ),
    )
    lister = new_agent(PolicyConfig(form="orders"), seed, Objective.MAKESPAN)
    for part in range(-(-config.samples // BATCH)):
        _, drawn = decoder.sample(lister, "plan", np.ones(BATCH, np.float32), seed + part)
        row = int(np.argmin(drawn.priced.seconds))
        found = _projected(decoder, drawn.priced.decisions.row(row))
        best = min(best, found, key=lambda teacher: teacher.seconds)
    return best


def explored(agent: Agent, decoder: MakespanDecoder, rollouts: int, seed: int) -> Teacher | None:
    """Return the best of the agent's own plans; None where nothing was drawn."""
    best = None
    for part in range(-(-rollouts // BATCH)):
        noise = np.resize(np.array(TEMPERATURES, np.float32), BATCH)
        _, drawn = decoder.sample(agent, "plan", noise, seed * 1_009 + part)
        row, plans = int(np.argmin(drawn.priced.seconds)), drawn.dispatched
        assert plans is not None
        if best is None or drawn.priced.seconds[row] < best.seconds:
            rows = slice(row, row + 1)
            plan = Dispatched(plans.device[rows].copy(), plans.order[rows].copy())
            best = Teacher(plan, float(drawn.priced.seconds[row]))
    return best


def _projected(decoder: MakespanDecoder, plan: Decisions) -> Teacher:
    """One plan as a dispatcher would make it, and what that one takes."""
    workspace, units = decoder.workspace, decoder.units
    found = dispatched(workspace, units, plan)
    priced = workspace.evaluate(dispatch_decisions(workspace, units, found))
    return Teacher(found, float(priced.seconds[0]))
