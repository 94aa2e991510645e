"""Pretraining of a step policy across the zoo: a critic from searches, then PPO; resumable, bit for
bit on a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np

from go_rl.envs.rewards import ROOT
from go_rl.policy.makespan.agent import StepAgent, new_step_agent
from go_rl.policy.makespan.weights import StepWeights, save_step_weights
from go_rl.train.baseline import RunningBaseline
from go_rl.train.checkpoints import Checkpoints, TrainState
from go_rl.train.config import StepTrainConfig
from go_rl.train.makespan.learning import collect_steps
from go_rl.train.makespan.ppo import update_step
from go_rl.train.makespan.problems import StepProblems
from go_rl.train.makespan.teaching import taught_agent
from go_rl.train.ppo import new_learner
from go_rl.train.run_log import RunLog
from go_rl.zoo import ZOO_VERSION

WEIGHTS_FILE = "weights.npz"
"""The best weights so far, in the folder of the run."""


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
        report: is told the updates done and a sentence: after every search and of the
            critic, then after every update.
        stop_after: stop after this many updates of this call; None: go on to the end.

    Raises:
        TrainingError: a reward or gradient is not finite.
        CheckpointError: the folder holds a run of another configuration, or a damaged one.
    """
    folder = Path(folder)
    problems, checkpoints = StepProblems(config), Checkpoints(folder / "checkpoints")
    tell = report or (lambda step, sentence: None)
    agent = new_step_agent(config.policy, config.seed)
    if checkpoints.latest is None and config.searches.samples:
        agent = taught_agent(agent, problems, folder, lambda sentence: tell(0, sentence))
    learner = new_learner(agent.params, config.ppo)
    state = TrainState(0, learner, RunningBaseline(), agent.params, -np.inf, [])
    if checkpoints.latest is not None:
        state = checkpoints.restore(state, config)
    else:
        _validate(state, problems)
    log = RunLog(folder, state.step)
    last = config.updates if stop_after is None else min(config.updates, state.step + stop_after)
    try:
        while state.step < last:
            sentence = _advance(state, problems, log)
            if state.step % config.checkpoint_every == 0 or state.step == last:
                checkpoints.save(state, config)
                save_step_weights(_weights(config, state), folder / WEIGHTS_FILE)
            tell(state.step, sentence)
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
        gains.append(ROOT(priced.seconds, decoder.workspace.reference_seconds).mean())
    state.learner, metrics = update_step(agent.policy, config.ppo, state.learner, batches)
    state.step += 1
    values = {name: float(value) for name, value in metrics._asdict().items()}
    values["reward"] = float(np.mean(gains))
    if state.step % config.validate_every == 0:
        values["validation"] = _validate(state, problems)
    log.write(state.step, values)
    spent = time.perf_counter() - started
    shown = f"  validation {values['validation']:+.4f}" if "validation" in values else ""
    return f"reward {values['reward']:+.3f}{shown}  {spent:.1f} s"


def _validate(state: TrainState, problems: StepProblems) -> float:
    """Judge the learner and keep it if it is the best so far."""
    score = problems.validate(StepAgent(problems.config.policy, state.learner.params))
    state.curve.append((state.step, score))
    if score > state.best_score:
        state.best, state.best_score = state.learner.params, score
    return score


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
