"""Teaching: searches on the training problems, and a critic that learns from them; resumable.

The searches of a run stay in its folder, one file a problem, and are not made again; nor does the
critic learn again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from go_rl.core import CheckpointError, Objective
from go_rl.core.files.whole_file import write_text
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import CONFIG_FILE, SEARCHES, MakespanTrainConfig, SearchConfig
from go_rl.policy.learn.critic.learning import Experience, experience, with_critic
from go_rl.policy.learn.critic.searches import Search, search
from go_rl.policy.learn.problems.curriculum import short_name
from go_rl.policy.learn.problems.makespan import MakespanProblems, ProblemKey, makespan_decoder
from go_rl.policy.learn.processes.group import ALONE, Group
from go_rl.policy.learn.run_state.effort import EffortLog
from go_rl.policy.network import known_of
from go_rl.policy.weights import Weights, load_weights, save_weights

TAUGHT_FILE = "taught.npz"
"""The policy with its critic."""
MOST_UNITS = 2300
"""Larger problems are not searched: they cost too much."""
Report = Callable[[str], None]
Lessons = list[tuple[ProblemKey, Experience]]
"""Problems with what their searches found."""


def taught_agent(
    agent: Agent,
    problems: MakespanProblems,
    folder: Path,
    report: Report,
    group: Group = ALONE,
) -> Agent:
    """Return the agent with a critic that learned from searches on all problems; without searches,
    as it is.

    Args:
        agent: draws in the searches.
        problems: what is searched, and how (`SearchConfig`, `CriticConfig`).
        folder: of the run; searches and the policy are kept there.
        report: called with a sentence after every search and after the critic.
        group: shares the searches out; process 0 keeps them and teaches the critic.

    Raises:
        CheckpointError: a kept file is damaged, or the folder holds searches of another
            configuration.
    """
    config = problems.config
    if not config.searches.samples:
        return agent
    group.on_first(lambda: _claim(folder / SEARCHES / CONFIG_FILE, config))
    path = folder / TAUGHT_FILE
    keys, kept = problems.taught(), folder / SEARCHES
    if group.count > 1 and not group.on_first(path.exists):
        search_together(agent, keys, config, kept, report, group)

    def learn() -> Agent:
        if path.exists():
            return load_weights(path, Objective.MAKESPAN).agent
        lessons = searched(agent, keys, config.searches, kept, report, config.cost)
        learned = taught(agent, lessons, config, report)
        card = {"searches": len(lessons), **EffortLog(folder, config).card()}
        save_weights(Weights(learned, "taught", card), path)
        return learned

    return group.on_first(learn)


def search_together(
    agent: Agent,
    keys: list[ProblemKey],
    config: MakespanTrainConfig,
    folder: Path,
    report: Report,
    group: Group,
) -> None:
    """Make the searches that process 0 lacks, one in each process at a time; it writes them."""
    missing = group.on_first(
        lambda: [i for i, key in enumerate(keys) if not search_path(folder, key).exists()]
    )
    for start in range(0, len(missing), group.count):
        numbers = missing[start : start + group.count]

        def one(numbers: list[int] = numbers) -> Search | None:
            if group.index >= len(numbers):
                return None
            number = numbers[group.index]
            return searched_one(agent, keys[number], config.searches, number, config.cost)

        found = group.gather(one)
        group.on_first(partial(_write, folder, [keys[i] for i in numbers], found))
        report(f"{numbers[-1] + 1}/{len(keys)} searched in {group.count} processes")


def _write(folder: Path, keys: list[ProblemKey], found: list[Search | None]) -> None:
    for key, one in zip(keys, found, strict=False):
        if one is not None:
            folder.mkdir(parents=True, exist_ok=True)
            one.save(search_path(folder, key))


def search_path(folder: Path, key: ProblemKey) -> Path:
    """Return the file that keeps a problem's search."""
    return folder / f"{short_name(key[0])}--{key[1]}--{'+'.join(key[2])}.npz"


def searched_one(
    agent: Agent, key: ProblemKey, config: SearchConfig, seed: int, cost: str
) -> Search | None:
    """Return the search on a problem; None: nothing is decided there, or it is too large."""
    decoder = makespan_decoder(*key, cost)
    if not 0 < decoder.units.num_units <= MOST_UNITS:
        return None
    return search(agent, decoder, config, seed)


def taught(agent: Agent, lessons: Lessons, config: MakespanTrainConfig, report: Report) -> Agent:
    """Return the agent with a critic that learned from these lessons; none: as it is."""
    if lessons:
        experiences = [one for _, one in lessons]
        agent, losses = with_critic(agent, experiences, config.critic, config.seed)
        error = losses[-50:].mean()
        report(
            f"critic: squared error {error:.3f} (of a constant score: 1) on {len(lessons)} problems"
        )
    return agent


def searched(
    agent: Agent,
    keys: list[ProblemKey],
    config: SearchConfig,
    folder: Path,
    report: Report,
    cost: str = "auto",
) -> Lessons:
    """Return the lesson of every problem that has something to decide and is not too large.

    Searches are kept in ``folder`` and not made again; the rest as in `taught_agent`.
    """
    found: dict[str, tuple[ProblemKey, Experience]] = {}
    for i, key in enumerate(keys):
        decoder = makespan_decoder(*key, cost)
        if not 0 < decoder.units.num_units <= MOST_UNITS:
            continue
        path = search_path(folder, key)
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            search(agent, decoder, config, i).save(path)
            report(f"{i + 1}/{len(keys)} searched {path.stem}")
        padded = decoder.padded
        known = np.asarray(known_of(*jax.tree.map(jnp.asarray, (padded.graph, padded.real))))
        lesson = experience(known, _fitting(path, key, agent))
        if lesson is not None:
            found[path.name] = key, lesson
    return [found[name] for name in sorted(found)]


def _claim(path: Path, config: MakespanTrainConfig) -> None:
    """Leave a copy of the configuration, or compare with the one that is there."""
    if not path.exists():
        write_text(path, config.to_json())
    elif differing := config.differing(path.read_text(encoding="utf-8")):
        raise CheckpointError(
            f"{path.parent.parent}: holds searches of another configuration ({path}): {differing}; "
            "continue with that one, or use another folder"
        )


def _fitting(path: Path, key: ProblemKey, agent: Agent) -> Search:
    """The search of a file, which must hold the problem's decisions as they are now."""
    found, widths = Search.load(path), agent.policy.decision_widths
    theirs = {name: mix.shape[1] for name, mix in found.mixes.items()}
    mine = {name: widths[name] for name in key[2]}
    if theirs != mine:
        raise CheckpointError(
            f"{path}: holds decisions of {theirs} numbers, this version takes {mine}: delete it"
        )
    return found
