"""Pretraining across the zoo: collect, update, validate, checkpoint; resumable, bit for bit on a
CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from go_rl.core import TrainingError
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.learn.advantage import RunningBaseline
from go_rl.policy.learn.collect import (
    Credit,
    Pricer,
    Rewards,
    SharedCollection,
    collect_share,
    price_here,
)
from go_rl.policy.learn.config import NodesTrainConfig, RingTrainConfig, TrainConfig
from go_rl.policy.learn.devices import on_all_devices, split_samples
from go_rl.policy.learn.ppo import Metrics, new_learner, update
from go_rl.policy.learn.problems.curriculum import CACHE, Curriculum
from go_rl.policy.learn.problems.makespan import MakespanProblems
from go_rl.policy.learn.problems.ring import RingProblems
from go_rl.policy.learn.processes.group import ALONE, Group
from go_rl.policy.learn.run_state.checkpoints import TrainState
from go_rl.policy.learn.run_state.run_folder import RunFolder
from go_rl.policy.nodes.carried import Carried
from go_rl.policy.weights import Weights

Report = Callable[[int, str], None]
COMPILING = "compiling for the first graphs; every size of graph is compiled once"
"""Said before the first update, which takes a minute or more."""


def pretrain(
    config: TrainConfig,
    folder: str | Path,
    report: Report | None = None,
    pricer: Pricer = price_here,
    stop_after: int | None = None,
    group: Group = ALONE,
) -> Weights:
    """Train a policy on the zoo; return the weights of the best validation.

    Args:
        config: what to do.
        folder: where checkpoints, logs and weights go; a run found there is resumed.
        report: called with the updates done and a sentence, after every search and every update.
        pricer: solves and prices samples.
        stop_after: stop after this many updates of this call, as if killed right after a
            checkpoint; None: go on to the end.
        group: the processes that train together and share the problems of each update out. Only
            process 0 reads and writes the folder.

    Raises:
        TrainingError: a reward or gradient is not finite, or a process would have nothing to do.
        CheckpointError: the folder holds a run of another configuration, or a damaged one.
    """
    if group.count > config.problems:
        raise TrainingError(
            f"train: {group.count} processes share {config.problems} problems an update, so that "
            f"some have nothing to do; raise problems to at least {group.count}"
        )
    folder, report = Path(folder), report or (lambda update, sentence: None)
    problems, run = _problems(config, folder), RunFolder(folder, config, group)
    try:
        state = _first(problems, run)
        run.open_log(state.step)
        if state.step < config.updates:
            report(state.step, COMPILING)
        last = config.updates
        if stop_after is not None:
            last = min(last, state.step + stop_after)
        while state.step < last:
            sentence, values, samples = _advance(state, problems, pricer, group)
            run.keep(state, values, samples, last)
            report(state.step, sentence)
    finally:
        run.close()
    return run.weights(state)


def _problems(config: TrainConfig, folder: Path) -> Curriculum[TrainConfig]:
    if isinstance(config, RingTrainConfig):
        return RingProblems(config)
    assert isinstance(config, NodesTrainConfig)
    traced = folder / CACHE if config.traced is None else Path(config.traced)
    return MakespanProblems(config, traced)


def _first(problems: Curriculum[TrainConfig], run: RunFolder) -> TrainState:
    """Return the state of the run found in the folder, else of a new one."""
    config, group = problems.config, run.group
    agent = new_agent(config.policy, config.seed)
    found = run.restored(_start(agent, config))
    if found is not None:
        return found
    state = group.on_first(lambda: _start(agent, config))
    if isinstance(problems, MakespanProblems):
        # What precedes the updates may be better than all that follows.
        _validate(state, problems, group)
    return state


def _start(agent: Agent, config: TrainConfig) -> TrainState:
    learner = new_learner(agent.params, config.ppo)
    return TrainState(0, learner, RunningBaseline(), agent.params, -np.inf, [])


def _advance(
    state: TrainState, problems: Curriculum[TrainConfig], pricer: Pricer, group: Group
) -> tuple[str, dict[str, float], int]:
    """Make one update in place, validate when it is time; return a sentence about it, what to log,
    and how many plans it priced."""
    config, started = problems.config, time.perf_counter()
    agent = _agent(config, state.learner.params)
    cases = problems.draw(state.step, state.baseline)
    nodes = [case.decoder.workspace.problem.graph.num_nodes for case in cases]
    share, credit = group.share(nodes), Credit(config.teaching_share, state.baseline)
    found: list[SharedCollection] = []
    carried = [Carried(case.decoder.workspace.reference_seconds) for case in cases]
    for turn in range(config.batches):
        seeded = [
            (replace(case, start=one.start), _seed(config.seed, state.step, turn * len(cases) + i))
            for i, (case, one) in enumerate(zip(cases, carried, strict=True))
        ]
        found.append(collect_share(agent, seeded, config.sizes, credit, share, pricer))
        for i, each in zip(share.mine, found[-1].own, strict=True):
            for name, drawn in each.proposals.items():
                carried[i].offer(drawn, each.rollouts[name], config.sizes[name])
    batches = [split_samples(each.batch) for turn in found for each in turn.own]
    share = share.repeated(config.batches)
    learner = on_all_devices(state.learner)
    try:
        learner, metrics = update(agent.policy, config.ppo, learner, batches, share)
    except TrainingError as error:
        if group.over:  # it is of another process
            raise
        names = ", ".join(case.name for case in cases)
        raise TrainingError(f"update {state.step} on {names}: {error}") from error
    # Processors that are unlike round differently: all go on from the weights of one.
    state.learner = group.on_first(lambda: learner)
    state.step += 1
    rewards = [one for turn in found for one in turn.rewards]
    values = _values(rewards, metrics)
    if state.step % config.validate_every == 0:
        values |= _validate(state, problems, group)
    shown = [f"{name} {values[name]:+.3f}" for name in rewards[0]]
    if state.curve and state.curve[-1][0] == state.step:
        shown.append(f"validation {state.curve[-1][1]:+.4f}")
    samples = sum(len(reward) for one in rewards for reward in one.values())
    return "  ".join([*shown, f"{time.perf_counter() - started:.1f} s"]), values, samples


def _validate(
    state: TrainState, problems: Curriculum[TrainConfig], group: Group
) -> dict[str, float]:
    """Judge the learner, keep it if it is the best so far, and return what to log."""
    score, parts = problems.validate(_agent(problems.config, state.learner.params), group)
    state.curve.append((state.step, score))
    if score > state.best_score:
        state.best, state.best_score = state.learner.params, score
    return parts


def _values(rewards: list[Rewards], metrics: Metrics) -> dict[str, float]:
    """Metrics, and the mean reward of each group."""
    values = {name: float(value) for name, value in metrics._asdict().items()}
    for name in rewards[0]:
        values[name] = float(np.mean([each[name].mean() for each in rewards]))
    return values


def _seed(seed: int, update: int, index: int) -> int:
    """One seed for each problem of each update."""
    return int(np.random.SeedSequence((seed, update, index)).generate_state(1)[0])


def _agent(config: TrainConfig, params: object) -> Agent:
    return Agent(config.policy, params)
