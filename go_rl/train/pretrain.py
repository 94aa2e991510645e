"""Pretraining across the zoo: collect, update, validate, checkpoint, and go on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import jax
import numpy as np

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.network import Policy
from go_rl.policy.weights import Weights, save_weights
from go_rl.train.baseline import RunningBaseline
from go_rl.train.checkpoints import Checkpoints, TrainState
from go_rl.train.collect import Collected
from go_rl.train.config import SampleConfig, TrainConfig
from go_rl.train.devices import on_all_devices, split_samples
from go_rl.train.ppo import Metrics, new_learner, update
from go_rl.train.problems import Problems
from go_rl.train.run_log import RunLog
from go_rl.train.workers import Collector, local_collector
from go_rl.zoo import ZOO_VERSION

WEIGHTS_FILE = "weights.npz"
"""The best weights so far, in the folder of the run."""
VALIDATION_SEED = 1_000_000_007
"""Apart from the seeds of the updates."""


def pretrain(
    config: TrainConfig,
    folder: str | Path,
    report: Callable[[int, str], None] | None = None,
    collector: Collector | None = None,
    stop_after: int | None = None,
) -> Weights:
    """Train a policy on the zoo; return the weights of the best validation.

    Args:
        config: what to do.
        folder: where checkpoints, logs and weights go; a run found there is resumed.
        report: is told the updates done and a sentence, after every update.
        collector: solves and prices samples; None: in this process.
        stop_after: stop after this many updates of this call, as if killed right after a
            checkpoint; None: go on to the end.

    Raises:
        TrainingError: a reward or gradient is not finite.
        CheckpointError: the folder holds a run of another configuration, or a damaged one.
    """
    folder = Path(folder)
    problems, checkpoints = Problems(config), Checkpoints(folder / "checkpoints")
    state = _first(config)
    if checkpoints.latest is not None:
        state = checkpoints.restore(state, config)
    log, collector = RunLog(folder, state.step), collector or local_collector()
    last = config.updates if stop_after is None else min(config.updates, state.step + stop_after)
    try:
        while state.step < last:
            sentence = _advance(state, problems, collector, log)
            if state.step % config.checkpoint_every == 0 or state.step == last:
                checkpoints.save(state, config)
                save_weights(_weights(config, state), folder / WEIGHTS_FILE)
            if report is not None:
                report(state.step, sentence)
    finally:
        log.close()
        checkpoints.close()
    return _weights(config, state)


def _first(config: TrainConfig) -> TrainState:
    agent = new_agent(config.policy, config.seed)
    return TrainState(
        step=0,
        learner=new_learner(agent.params, config.ppo),
        baseline=RunningBaseline(),
        best=agent.params,
        best_score=-np.inf,
        curve=[],
    )


def _advance(state: TrainState, problems: Problems, collector: Collector, log: RunLog) -> str:
    """Make one update in place, validate when it is time; return a sentence about it."""
    config, started = problems.config, time.perf_counter()
    agent = Agent(config.policy, state.learner.params)
    cases = problems.draw(state.step, state.baseline)
    seeds = [_seed(config.seed, state.step, i) for i in range(len(cases))]
    found = collector(agent, cases, config.samples, state.baseline, seeds)
    names = ", ".join(case.name for case in cases)
    try:
        state.learner, metrics = update(
            Policy(config.policy),
            config.ppo,
            on_all_devices(state.learner),
            [split_samples(c.batch) for c in found],
        )
    except TrainingError as error:
        raise TrainingError(f"update {state.step} on {names}: {error}") from error
    state.step += 1
    values = _values(found, metrics)
    if state.step % config.validate_every == 0:
        score, parts = validate(Agent(config.policy, state.learner.params), problems)
        values |= parts
        state.curve.append((state.step, score))
        if score > state.best_score:
            state.best, state.best_score = state.learner.params, score
    log.write(state.step, values)
    spent = time.perf_counter() - started
    return f"order {values['order']:+.3f}  placement {values['placement']:+.3f}  {spent:.1f} s"


def validate(agent: Agent, problems: Problems) -> tuple[float, dict[str, float]]:
    """Return the score of the validation problems and its parts.

    Rewards are logarithms of the throughput relative to the compiler heuristic. The score adds the
    means, over problems, of a batch's best order, its mean order and its mean
    placement.
    """
    found: dict[str, list[float]] = {"best order": [], "mean order": [], "mean placement": []}
    config, collector = SampleConfig(orders=16, placements=4), local_collector()
    for case in problems.validation_cases():
        got = collector(agent, [case], config, RunningBaseline(), [VALIDATION_SEED])[0]
        found["best order"].append(got.rewards("order").max())
        found["mean order"].append(got.rewards("order").mean())
        found["mean placement"].append(got.rewards("placement").mean())
    parts = {f"validation/{name}": float(np.mean(rewards)) for name, rewards in found.items()}
    return sum(parts.values()), parts


def _values(found: list[Collected], metrics: Metrics) -> dict[str, float]:
    values = {name: float(value) for name, value in metrics._asdict().items()}
    for task in ("order", "placement"):
        rewards = [c.rewards(task).mean() for c in found if len(c.rewards(task))]
        values[task] = float(np.mean(rewards)) if rewards else float("nan")
    return values


def _seed(seed: int, step: int, index: int) -> int:
    """One seed for each problem of each update."""
    return int(np.random.SeedSequence((seed, step, index)).generate_state(1)[0])


def _weights(config: TrainConfig, state: TrainState) -> Weights:
    params = state.best if state.curve else state.learner.params
    card = {
        "zoo": ZOO_VERSION,
        "training": asdict(replace(config)),
        "updates": state.step,
        "validation": [list(point) for point in state.curve],
        "best_validation": state.best_score if state.curve else None,
        "jax": jax.__version__,
    }
    return Weights(Agent(config.policy, jax.tree.map(np.asarray, params)), config.name, card)
