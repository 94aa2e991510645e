"""Pretraining across the zoo: collect, update, validate, checkpoint; resumable, bit for bit on a
CPU. For makespan, searches teach a critic first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import jax
import numpy as np

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.weights import Weights, save_weights
from go_rl.train.advantage import RunningBaseline
from go_rl.train.checkpoints import Checkpoints, TrainState
from go_rl.train.collect import Collected, Credit, Pricer, collect_all, price_here
from go_rl.train.config import (
    CHECKPOINTS,
    SEARCHES,
    WEIGHTS_FILE,
    MakespanTrainConfig,
    RingTrainConfig,
    TrainConfig,
)
from go_rl.train.critic.teaching import taught_agent
from go_rl.train.devices import on_all_devices, split_samples
from go_rl.train.effort import EffortLog
from go_rl.train.ppo import Metrics, new_learner, update
from go_rl.train.problems.curriculum import Curriculum
from go_rl.train.problems.makespan import MakespanProblems
from go_rl.train.problems.ring import RingProblems
from go_rl.train.run_log import RunLog
from go_rl.train.teachers import imitating_agent
from go_rl.zoo import ZOO_VERSION

Report = Callable[[int, str], None]


def pretrain(
    config: TrainConfig,
    folder: str | Path,
    report: Report | None = None,
    pricer: Pricer = price_here,
    stop_after: int | None = None,
) -> Weights:
    """Train a policy on the zoo; return the weights of the best validation.

    Args:
        config: what to do.
        folder: where checkpoints, logs and weights go; a run found there is resumed.
        report: called with the updates done and a sentence, after every search, the critic and
            every update.
        pricer: solves and prices samples.
        stop_after: stop after this many updates of this call, as if killed right after a
            checkpoint; None: go on to the end.

    Raises:
        TrainingError: a reward or gradient is not finite.
        CheckpointError: the folder holds a run of another configuration, or a damaged one.
    """
    folder, report = Path(folder), report or (lambda update, sentence: None)
    problems, checkpoints = _problems(config), Checkpoints(folder / CHECKPOINTS)
    begun = checkpoints.latest is not None or (folder / SEARCHES).exists()
    spent = EffortLog(folder, config, begun)
    state = _first(config, problems, checkpoints, folder, _counting(spent, report))
    log = RunLog(folder, state.step)
    last = config.updates if stop_after is None else min(config.updates, state.step + stop_after)
    try:
        while state.step < last:
            sentence, samples = _advance(state, problems, pricer, log)
            spent.count(samples)
            if state.step % config.checkpoint_every == 0 or state.step == last:
                checkpoints.save(state, config)
                save_weights(_weights(config, state, spent), folder / WEIGHTS_FILE)
            report(state.step, sentence)
    finally:
        log.close()
        checkpoints.close()
    return _weights(config, state, spent)


def _counting(spent: EffortLog, report: Report) -> Report:
    """Report, and count the time so far."""

    def tell(update: int, sentence: str) -> None:
        spent.count()
        report(update, sentence)

    return tell


def _problems(config: TrainConfig) -> Curriculum[TrainConfig]:
    if isinstance(config, RingTrainConfig):
        return RingProblems(config)
    assert isinstance(config, MakespanTrainConfig)
    return MakespanProblems(config)


def _first(
    config: TrainConfig,
    problems: Curriculum[TrainConfig],
    checkpoints: Checkpoints,
    folder: Path,
    report: Report,
) -> TrainState:
    """Return the state of the run found in the folder, else of a new one."""
    agent, resumed = new_agent(config.policy, config.seed, config.objective), checkpoints.latest
    if isinstance(problems, MakespanProblems) and resumed is None:
        agent = taught_agent(agent, problems, folder, lambda sentence: report(0, sentence))
        if agent.policy.dispatches:
            agent = imitating_agent(agent, problems, folder, lambda line: report(0, line))
    learner = new_learner(agent.params, config.ppo)
    state = TrainState(0, learner, RunningBaseline(), agent.params, -np.inf, [])
    if resumed is not None:
        return checkpoints.restore(state, config)
    if isinstance(problems, MakespanProblems):  # the critic may be better than all that follows
        _validate(state, problems)
    return state


def _advance(
    state: TrainState, problems: Curriculum[TrainConfig], pricer: Pricer, log: RunLog
) -> tuple[str, int]:
    """Make one update in place, validate when it is time; return a sentence about it, and how many
    plans it priced."""
    config, started = problems.config, time.perf_counter()
    agent = _agent(config, state.learner.params)
    cases = problems.draw(state.step, state.baseline)
    seeded = [(case, _seed(config.seed, state.step, i)) for i, case in enumerate(cases)]
    credit = Credit(config.teaching_share, state.baseline)
    found = collect_all(agent, seeded, config.sizes, credit, pricer)
    batches = [split_samples(each.batch) for each in found]
    learner = on_all_devices(state.learner)
    try:
        state.learner, metrics = update(agent.policy, config.ppo, learner, batches)
    except TrainingError as error:
        names = ", ".join(case.name for case in cases)
        raise TrainingError(f"update {state.step} on {names}: {error}") from error
    state.step += 1
    values = _values(found, metrics)
    if state.step % config.validate_every == 0:
        values |= _validate(state, problems)
    log.write(state.step, values)
    shown = [f"{name} {values[name]:+.3f}" for name in found[0].rollouts]
    if "validation" in values:
        shown.append(f"validation {values['validation']:+.4f}")
    samples = sum(len(r.reward) for one in found for r in one.rollouts.values())
    return "  ".join([*shown, f"{time.perf_counter() - started:.1f} s"]), samples


def _validate(state: TrainState, problems: Curriculum[TrainConfig]) -> dict[str, float]:
    """Judge the learner, keep it if it is the best so far, and return what to log."""
    score, parts = problems.validate(_agent(problems.config, state.learner.params))
    state.curve.append((state.step, score))
    if score > state.best_score:
        state.best, state.best_score = state.learner.params, score
    return parts


def _values(found: list[Collected], metrics: Metrics) -> dict[str, float]:
    """Metrics, and the mean reward of each group."""
    values = {name: float(value) for name, value in metrics._asdict().items()}
    for group in found[0].rollouts:
        values[group] = float(np.mean([c.rollouts[group].reward.mean() for c in found]))
    return values


def _seed(seed: int, update: int, index: int) -> int:
    """One seed for each problem of each update."""
    return int(np.random.SeedSequence((seed, update, index)).generate_state(1)[0])


def _agent(config: TrainConfig, params: object) -> Agent:
    return Agent(config.policy, params, config.objective)


def _weights(config: TrainConfig, state: TrainState, spent: EffortLog) -> Weights:
    params = state.best if state.curve else state.learner.params
    card = {
        "zoo": ZOO_VERSION,
        "training": asdict(config),
        "updates": state.step,
        "validation": [list(point) for point in state.curve],
        "best_validation": state.best_score if state.curve else None,
        "jax": jax.__version__,
        **spent.card(),
    }
    return Weights(_agent(config, jax.tree.map(np.asarray, params)), config.name, card)
