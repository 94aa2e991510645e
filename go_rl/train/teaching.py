"""Teaching: searches on the training problems, then a policy that imitates them; resumable.

The searches of a run stay in its folder, one file a problem, and are not made again; nor is the
imitation once it is done.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from go_rl.core import CheckpointError
from go_rl.core.plan import write_text
from go_rl.policy.step_agent import StepAgent
from go_rl.policy.step_decisions import StepDecoder
from go_rl.policy.step_weights import StepWeights, load_step_weights, save_step_weights
from go_rl.train.config import EliteConfig, StepTrainConfig
from go_rl.train.elites import Elites, find_elites
from go_rl.train.imitation import Imitator, imitate, lesson, transformation
from go_rl.train.step_ppo import StepBatch
from go_rl.train.step_problems import ProblemKey, StepProblems, step_problem_decoder

ELITES = "elites"
"""Folder of the searches."""
CONFIG_FILE = "config.json"
"""What the searches were made for."""
TAUGHT_FILE = "taught.npz"
"""The policy after imitation."""
MOST_UNITS = 2300
"""Larger problems are not taught: their epochs cost too much."""
Report = Callable[[str], None]


def taught_agent(
    agent: StepAgent, problems: StepProblems, folder: Path, report: Report
) -> StepAgent:
    """Return the agent after it imitated searches on all problems.

    Args:
        agent: where imitation starts, and what the searches draw from.
        problems: what is taught, and how (`EliteConfig`).
        folder: of the run; searches and the policy are kept there.
        report: is told a sentence at every problem and epoch.

    Raises:
        CheckpointError: a kept file is damaged, or the folder holds searches of another
            configuration.
    """
    config = problems.config.elites
    _claim(folder / ELITES / CONFIG_FILE, problems.config)
    path = folder / TAUGHT_FILE
    if path.exists():
        return load_step_weights(path).agent
    lessons = searched(agent, problems.taught(), config, folder / ELITES, report)
    agent = imitated(agent, [lesson for _, lesson in lessons], config, report)
    save_step_weights(StepWeights(agent, "taught", {"searches": len(lessons)}), path)
    return agent


def searched(
    agent: StepAgent, keys: list[ProblemKey], config: EliteConfig, folder: Path, report: Report
) -> list[tuple[ProblemKey, StepBatch]]:
    """Return the lesson of every problem that has something to decide and is not too large.

    Searches are kept in ``folder`` and not made again; the rest as in `taught_agent`.
    """
    found = []
    for i, key in enumerate(keys):
        decoder = step_problem_decoder(*key)
        if not 0 < decoder.units.num_units <= MOST_UNITS:
            continue
        path = folder / f"{key[0]}--{key[1]}--{'+'.join(key[2])}.npz"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            find_elites(agent, decoder, config, i).save(path)
            report(f"{i + 1}/{len(keys)} searched {path.stem}")
        found.append((path.name, key, lesson(decoder.padded, _fitting(path, key, decoder))))
    return [(key, batch) for _, key, batch in sorted(found, key=lambda each: each[0])]


def imitated(
    agent: StepAgent, lessons: list[StepBatch], config: EliteConfig, report: Report
) -> StepAgent:
    """Return the agent after `EliteConfig.epochs` of imitation."""
    steps = config.epochs * len(lessons)
    imitator = Imitator(agent.params, transformation(config, steps).init(agent.params))
    for epoch in range(config.epochs):
        losses = []
        for i in np.random.default_rng(epoch).permutation(len(lessons)):
            imitator, loss = imitate(agent.policy, config, steps, imitator, lessons[i])
            losses.append(float(loss))
        report(f"imitation {epoch + 1}/{config.epochs}: loss {np.mean(losses):.4f}")
    return StepAgent(agent.config, imitator.params)


def _claim(path: Path, config: StepTrainConfig) -> None:
    """Leave a copy of the configuration, or compare with the one that is there."""
    text = config.to_json()
    if not path.exists():
        write_text(path, text)
    elif path.read_text(encoding="utf-8") != text:
        raise CheckpointError(
            f"{path.parent.parent}: holds searches of another configuration ({path}); continue "
            "with that one, or use another folder"
        )


def _fitting(path: Path, key: ProblemKey, decoder: StepDecoder) -> Elites:
    """Elites of a file, which must be of this very problem."""
    elites = Elites.load(path)
    units, expected = elites.actions[key[2][0]].scores.shape[-1], decoder.padded.real.shape[0]
    if units != expected:
        raise CheckpointError(
            f"{path}: holds scores of {units} units, the problem has {expected}; it is of another "
            "version: delete it"
        )
    return elites
