"""Pretraining of a step policy across the zoo; resumable, bit for bit on a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import jax
import numpy as np

from go_rl.core import Objective, TrainingError, package
from go_rl.cost import ProblemOptions, make_problem
from go_rl.envs.step_rewards import step_rewards
from go_rl.policy.step_agent import StepAgent, new_step_agent
from go_rl.policy.step_decisions import StepDecoder
from go_rl.policy.step_search import draw_steps
from go_rl.policy.step_weights import StepWeights, save_step_weights
from go_rl.search.step_workspace import StepWorkspace
from go_rl.train.baseline import RunningBaseline
from go_rl.train.checkpoints import Checkpoints, TrainState
from go_rl.train.config import StepTrainConfig
from go_rl.train.ppo import new_learner
from go_rl.train.run_log import RunLog
from go_rl.train.step_learning import collect_steps
from go_rl.train.step_ppo import update_step
from go_rl.zoo import ZOO_VERSION, zoo_entry, zoo_graph, zoo_names

WEIGHTS_FILE = "weights.npz"
"""The best weights so far, in the folder of the run."""
VALIDATION_SEED = 1_000_000_007
VALIDATION_SAMPLES = 16
KEPT = 256
"""Problems whose units stay in memory."""


class StepProblems:
    """All problems of a run; units are built when a problem is first drawn."""

    def __init__(self, config: StepTrainConfig) -> None:
        self.config = config
        self.train = _small(config.split, config.max_nodes)
        self.validation = list(config.further)
        if config.validation is not None:
            self.validation = _small(config.validation, config.max_nodes)
        if not self.train or not self.validation:
            raise TrainingError(
                f"train: no graph of split {config.split!r} or for validation has at most "
                f"max_nodes={config.max_nodes} nodes; raise max_nodes"
            )
        self._decoder = lru_cache(KEPT)(_decoder)

    def draw(self, step: int) -> list[StepDecoder]:
        """Return the problems of one update; the same step gives the same problems."""
        config, rng = self.config, np.random.default_rng((self.config.seed, step))

        def one() -> StepDecoder:
            further = bool(config.further) and rng.random() < config.further_share
            names = config.further if further else self.train
            name = names[int(rng.integers(len(names)))]
            hardware = config.packages[int(rng.integers(len(config.packages)))]
            tasks = config.tasks[int(rng.integers(len(config.tasks)))]
            return self._decoder(name, hardware, tasks)

        return [one() for _ in range(config.graphs)]

    def validate(self, agent: StepAgent) -> float:
        """Return the mean over the validation problems of the best reward of a batch."""
        scores = []
        for name in self.validation:
            for hardware in self.config.validation_packages:
                for tasks in dict.fromkeys(self.config.tasks):
                    decoder = self._decoder(name, hardware, tasks)
                    noise = np.ones(VALIDATION_SAMPLES, np.float32)
                    priced = draw_steps(agent, decoder, noise, VALIDATION_SEED)
                    reward = step_rewards(decoder.workspace, priced)
                    scores.append(reward.max())
        return float(np.mean(scores))


def _small(split: str, max_nodes: int) -> list[str]:
    return [name for name in zoo_names(split) if zoo_entry(name).nodes <= max_nodes]


def _decoder(name: str, hardware: str, tasks: tuple[str, ...]) -> StepDecoder:
    options = ProblemOptions(objective=Objective.MAKESPAN, tasks=tasks)
    problem = make_problem(zoo_graph(name), package(hardware), options)
    return StepDecoder(StepWorkspace(problem))


def pretrain_step(
    config: StepTrainConfig,
    folder: str | Path,
    report: Callable[[int, str], None] | None = None,
    stop_after: int | None = None,
) -> StepWeights:
    """Train a step policy on the zoo; return the weights of the best validation.

    Args:
        config: what to do.
        folder: where checkpoints, logs and weights go; a run found there is resumed.
        report: is told the updates done and a sentence, after every update.
        stop_after: stop after this many updates of this call; None: go on to the end.

    Raises:
        TrainingError: a reward or gradient is not finite.
        CheckpointError: the folder holds a run of another configuration, or a damaged one.
    """
    folder = Path(folder)
    problems, checkpoints = StepProblems(config), Checkpoints(folder / "checkpoints")
    agent = new_step_agent(config.policy, config.seed)
    learner = new_learner(agent.params, config.ppo)
    state = TrainState(0, learner, RunningBaseline(), agent.params, -np.inf, [])
    if checkpoints.latest is not None:
        state = checkpoints.restore(state, config)
    log = RunLog(folder, state.step)
    last = config.updates if stop_after is None else min(config.updates, state.step + stop_after)
    try:
        while state.step < last:
            sentence = _advance(state, problems, log)
            if state.step % config.checkpoint_every == 0 or state.step == last:
                checkpoints.save(state, config)
                save_step_weights(_weights(config, state), folder / WEIGHTS_FILE)
            if report is not None:
                report(state.step, sentence)
    finally:
        log.close()
        checkpoints.close()
    return _weights(config, state)


def _advance(state: TrainState, problems: StepProblems, log: RunLog) -> str:
    """Make one update in place, validate when it is time; return a sentence about it."""
    config, started = problems.config, time.perf_counter()
    agent = StepAgent(config.policy, state.learner.params)
    batches, gains = [], []
    for i, decoder in enumerate(problems.draw(state.step)):
        seed = int(np.random.SeedSequence((config.seed, state.step, i)).generate_state(1)[0])
        batch, priced = collect_steps(agent, decoder, config.samples, seed, config.top)
        batches.append(batch)
        gains.append(step_rewards(decoder.workspace, priced).mean())
    state.learner, metrics = update_step(agent.policy, config.ppo, state.learner, batches)
    state.step += 1
    values = {name: float(value) for name, value in metrics._asdict().items()}
    values["reward"] = float(np.mean(gains))
    if state.step % config.validate_every == 0:
        score = problems.validate(StepAgent(config.policy, state.learner.params))
        values["validation"] = score
        state.curve.append((state.step, score))
        if score > state.best_score:
            state.best, state.best_score = state.learner.params, score
    log.write(state.step, values)
    spent = time.perf_counter() - started
    shown = f"  validation {values['validation']:+.4f}" if "validation" in values else ""
    return f"reward {values['reward']:+.3f}{shown}  {spent:.1f} s"


def _weights(config: StepTrainConfig, state: TrainState) -> StepWeights:
    params = state.best if state.curve else state.learner.params
    card = {
        "zoo": ZOO_VERSION,
        "training": asdict(config),
        "updates": state.step,
        "validation": [list(point) for point in state.curve],
        "best_validation": state.best_score if state.curve else None,
        "jax": jax.__version__,
    }
    agent = StepAgent(config.policy, jax.tree.map(np.asarray, params))
    return StepWeights(agent, config.name, card)
