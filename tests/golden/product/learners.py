"""One small lesson of every learner of policies: what an update made of the weights, its losses."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np

from go_rl.core import Budget, Objective
from go_rl.objectives.makespan.methods.hdp.hdp import HDP, Actors, HDPConfig, draw
from go_rl.objectives.makespan.methods.hdp.hdp import new_learner as new_hdp_learner
from go_rl.objectives.makespan.methods.hdp.hdp import update as update_hdp
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import (
    SHIPPED_CHIPS,
    DispatchPolicyConfig,
    NodesPolicyConfig,
    RingPolicyConfig,
)
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.learn.collect import Credit, TrainingCase, collect
from go_rl.policy.learn.config import (
    DispatchTrainConfig,
    FineTuneConfig,
    PPOConfig,
    RingTrainConfig,
)
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.learn.ppo import new_learner, update
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.learn.prototypes.run import pretrain_prototypes
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.weights import load_weights, shipped_agent
from go_rl.runtime.run_log import FILE

from ..fingerprint import Facts, digest, moments, short
from .plans import SEED, facts_of
from .problems import Setting, problem

RING = Setting("zoo:vae-3-layers", "ring", "ring6", "strict")
DEVICES = Setting("zoo:deep-autoencoder", "makespan", "p100x2")
SIZES = {"hidden": 16, "sage_layers": 1, "attention_layers": 1, "heads": 2, "segment": 32}
TINY = RingPolicyConfig(**SIZES, decoder_width=8)
PPO = PPOConfig(epochs=2)
SAMPLES = 24
"""Plans that fine-tuning learns from."""


def _weights(before: Any, after: Any) -> Facts:
    """What learning made of parameters."""
    old, new = ([np.asarray(x) for x in jax.tree.leaves(each)] for each in (before, after))
    sizes = sorted(int(x.size) for x in new)
    change = [a - b for a, b in zip(new, old, strict=True)] if before is not None else []
    return {"sizes": digest(sizes), "weights": moments(new), "change": moments(change)}


def _updated(
    agent: Agent, decoder: Any, samples: dict[str, int], credit: Credit
) -> tuple[dict[str, Any], Facts]:
    """What was drawn, and one PPO update that learned from it."""
    found = collect(agent, TrainingCase("golden", decoder), samples, credit, SEED)
    learner, metrics = update(agent.policy, PPO, new_learner(agent.params, PPO), [found.batch])
    losses = [short(float(x)) for x in metrics]
    return found.rollouts, _weights(agent.params, learner.params) | {"losses": losses}


def ring_update(solver: str) -> Facts:
    """Of the shipped policy of chips."""
    agent, decoder = load_weights(SHIPPED_CHIPS).agent, RingPlans(problem(RING), solver=solver)
    drawn, facts = _updated(agent, decoder, {"placement": 8}, Credit())
    return facts | {"placement rewards": moments([drawn["placement"].reward])}


def step_update() -> Facts:
    """Of an untrained node policy for placement, schedule and fusion."""
    decoder = plan_decoder(problem(DEVICES), "nodes")
    drawn, facts = _updated(_step_agent("nodes"), decoder, {"plan": 8}, Credit(1.0))
    return facts | {"seconds": moments([drawn["plan"].priced.seconds])}


def _step_agent(kind: str) -> Agent:
    if kind == "dispatch":
        return shipped_agent(Objective.MAKESPAN)
    return new_agent(NodesPolicyConfig(), 0)


def ring_pretraining() -> Facts:
    """Two updates of a tiny ring policy across the zoo's smallest graphs, with validation."""
    config = RingTrainConfig(
        validation="train", hardware=("ring6",), validation_hardware=("ring6",), max_nodes=62,
        updates=2, problems=2, samples=4, solver="sample", ppo=PPO, policy=TINY, validate_every=1,
        checkpoint_every=2,
    )  # fmt: skip
    before = new_agent(config.policy, config.seed).params
    return _run(lambda folder: pretrain(config, folder), before)


def step_pretraining() -> Facts:
    """Searches, prototypes, choice and offsets of a tiny dispatcher on generated graphs."""
    config = DispatchTrainConfig(
        generated=8, zoo=False, max_nodes=500, rollouts=32, candidates=4, judged=4, choices=3,
        updates=2, problems=2, best_of=(1, 2), held_out=0.4, hardware=("p100x2",),
        learning_rate=1e-3,
        policy=DispatchPolicyConfig(**SIZES, prototypes=4),
    )  # fmt: skip
    before = new_agent(config.policy, config.seed).params
    with TemporaryDirectory() as folder:
        found = pretrain_prototypes(config, Path(folder))
    curve = np.array(found.card["choice"], np.float64)
    return _weights(before, found.agent.params) | {"choice": moments([curve])}


def _run(train: Callable[[Path], Any], before: Any) -> Facts:
    """A training run in a folder of its own: its best weights, its validation, its log."""
    with TemporaryDirectory() as folder:
        found = train(Path(folder))
        lines = (Path(folder) / FILE).read_text().splitlines()
    logged = [value for line in lines for name, value in sorted(_as_recorded(json.loads(line)))]
    curve = np.array(found.card["validation"], np.float64)
    return _weights(before, found.agent.params) | {
        "log": moments([logged]),
        "validation": moments([curve]),
    }


def _as_recorded(line: dict[str, float]) -> list[tuple[str, float]]:
    """Return what a line of the log holds by the names that were logged when it was recorded."""
    return [("reward" if name == "plan" else name, value) for name, value in line.items()]


def ring_fine_tuning() -> Facts:
    """The shipped policy of chips learns on one graph; the best plan on the way."""
    return _tuned(load_weights(SHIPPED_CHIPS).agent, RING)


def step_fine_tuning(kind: str) -> Facts:
    """The same on connected devices; a node policy learns from scratch."""
    return _tuned(_step_agent(kind), DEVICES, top=1.0, remembered=8)


def _tuned(before: Agent, setting: Setting, **config: Any) -> Facts:
    given = problem(setting)
    learner = FineTuned(before, FineTuneConfig(batch=8, ppo=PPO, first=4, **config))
    plan, agent = learner.learn(given, Budget(samples=SAMPLES), SEED)
    return facts_of(plan, given) | _weights(before.params, agent.params)


def hdp_update() -> Facts:
    """One step of HDP's grouper and placer along given advantages, and a plan that it learned."""
    given = problem(DEVICES)
    actors = Actors(HDPConfig(groups=16, hidden=32), makespan_workspace(given))
    learner = new_hdp_learner(actors, jax.random.key(SEED))
    drawn = draw(actors, learner, jax.random.key(SEED + 1), 0.5)
    after = update_hdp(actors, learner, drawn, np.linspace(-1.0, 1.0, len(drawn.device)))
    plan = HDP(actors.config).optimize(given, Budget(samples=SAMPLES), SEED)
    return facts_of(plan, given) | _weights(learner.params, after.params)


LEARNERS: Sequence[tuple[str, Callable[[], Facts]]] = (
    *((f"ring-ppo/{mode}", partial(ring_update, mode)) for mode in ("sample", "fix", "none")),
    ("step-ppo/nodes", step_update),
    ("ring-pretraining", ring_pretraining),
    ("step-pretraining", step_pretraining),
    ("ring-fine-tuning/placement", ring_fine_tuning),
    *((f"step-fine-tuning/{f}", partial(step_fine_tuning, f)) for f in ("nodes", "dispatch")),
    ("hdp", hdp_update),
)
"""Every learner of policies."""
