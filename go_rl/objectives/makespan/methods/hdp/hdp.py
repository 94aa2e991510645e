"""HDP, the learned rival in device placement: "A hierarchical model for device placement"
(Mirhoseini, Goldie, Pham, Steiner, Le, Dean, ICLR 2018).

A grouper assigns operators to groups, a placer assigns groups to devices; both learn by REINFORCE
from scratch on the one graph that is to be placed. The reward of an iteration of t seconds is
-sqrt(t), less a moving average of rewards.

Dimension letters: ``N`` operators, ``G`` groups, ``X`` numbers of a group, ``M`` groupings and
``B`` samples of an update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Float32, Float64, Int

from go_rl.core import FREE, OPEN_SAMPLES, Budget, OpGraph, Plan, Problem, Progress, TrainingError
from go_rl.core.decisions import Scored
from go_rl.objectives.common.incumbent import Incumbent, finish_plan
from go_rl.objectives.makespan.choices import softly_placed
from go_rl.objectives.makespan.methods.hdp.config import HDPConfig
from go_rl.objectives.makespan.methods.hdp.features import (
    OpFeatures,
    equal_runs,
    group_features,
    op_features,
)
from go_rl.objectives.makespan.methods.hdp.grouper import (
    Grouper,
    Params,
    draw_groups,
    grouper_gradient,
    new_grouper,
)
from go_rl.objectives.makespan.methods.hdp.placer import (
    Placer,
    draw_devices,
    new_placer,
    placer_gradient,
)
from go_rl.objectives.makespan.workspace import MakespanWorkspace, makespan_workspace

LEARNING = 8.0
"""An update takes this many times as long as a draw, until one was timed."""
LEAST_SQUARE = 1e-24


@dataclass(frozen=True)
class HDP:
    """`Optimizer`: the default placement, then samples of a policy that learns from them.

    Every sample is one grouping and one placement of its groups; priorities and fusion are left as
    the framework has them.
    """

    config: HDPConfig = field(default_factory=HDPConfig)
    name: str = "hdp"
    report: Callable[[Scored], None] | None = None
    """Receives the priced placements of every update."""

    def prepare(self, problem: Problem) -> None:
        """Compile the networks for the sizes of a problem, so that no budget pays for it."""
        workspace = makespan_workspace(problem)
        if not _decides(workspace):
            return
        actors, key = Actors(self.config, workspace), jax.random.key(0)
        learner = new_learner(actors, key)
        drawn = draw(actors, learner, key, self.config.noise)
        update(actors, learner, drawn, np.zeros(len(drawn.device)))

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the best placement drawn; see `go_rl.core.Optimizer`.

        Raises:
            TrainingError: a gradient is not finite.
        """
        workspace, progress = makespan_workspace(problem), Progress(budget, OPEN_SAMPLES)
        incumbent = Incumbent(workspace, progress)
        if not incumbent.hopeless:
            incumbent.offer_scored(workspace.evaluate(workspace.reference))
            if _decides(workspace):
                _learn(self, workspace, incumbent, progress, seed)
        return finish_plan(workspace, incumbent, self.name, seed, progress)


def _decides(workspace: MakespanWorkspace) -> bool:
    """Whether any node may go to more than one device."""
    return workspace.num_devices > 1 and bool((workspace.pinned == FREE).any())


def _learn(
    hdp: HDP, workspace: MakespanWorkspace, incumbent: Incumbent, progress: Progress, seed: int
) -> None:
    """Draw, price and learn until the budget is spent, or what is left of it is too short to learn
    and to draw again, by the times of the last round; the last samples teach nothing."""
    config, key = hdp.config, jax.random.key(seed % 2**32)
    actors, baseline = Actors(config, workspace), new_baseline(config)
    learner = new_learner(actors, key)
    updates, drawing, learning = 0, 0.0, 0.0
    while not progress.spent and drawing <= progress.remaining_seconds:
        began = progress.wall_seconds
        noise = config.noise if updates < config.noise_updates else 0.0
        drawn = draw(actors, learner, jax.random.fold_in(key, updates + 1), noise)
        rows = int(min(len(drawn.device), progress.remaining_samples))
        placed = softly_placed(workspace.choices, drawn.device[:rows])
        priced = workspace.evaluate(workspace.decisions(placed))
        incumbent.offer_scored(priced)
        if hdp.report is not None:
            hdp.report(priced)
        updates += 1
        drawing = progress.wall_seconds - began
        learning = learning or LEARNING * drawing * bool(config.learning_rate)
        if progress.spent or drawing + learning > progress.remaining_seconds:
            break
        if not config.learning_rate:
            continue
        fits, began = priced.ok, progress.wall_seconds
        counts = fits | (updates <= config.ignore_failures_from)
        advantage = baseline.advantage(rewards(config, priced, fits), counts)
        learner = update(actors, learner, drawn, advantage)
        learning = progress.wall_seconds - began


@dataclass
class Baseline:
    """Moving average of rewards; the mean of the first update starts it, unless it is given."""

    decay: float
    mean: float | None = None
    normalise: bool = False
    square: float | None = None
    """Moving average of squared advantages."""

    def advantage(
        self, reward: Float64[np.ndarray, "B"], counts: Bool[np.ndarray, "B"]
    ) -> Float64[np.ndarray, "B"]:
        """Return [B] rewards less the average before this update, 0 where one does not count."""
        if not counts.any():
            return np.zeros(len(reward))
        fresh = float(reward[counts].mean())
        known = fresh if self.mean is None else self.mean
        self.mean = self.decay * known + (1 - self.decay) * fresh
        gain = np.where(counts, reward - known, 0.0)
        if not self.normalise:
            return gain
        square = float(np.square(gain[counts]).mean())
        last = square if self.square is None else self.square
        self.square = self.decay * last + (1 - self.decay) * square
        return gain / np.sqrt(max(self.square, LEAST_SQUARE))


def new_baseline(config: HDPConfig) -> Baseline:
    """Return the baseline of a search that begins."""
    failure = -float(np.sqrt(config.failing_seconds))
    mean = failure if config.failure_first else None
    return Baseline(config.baseline_decay, mean, config.normalise)


def rewards(
    config: HDPConfig, priced: Scored, fits: Bool[np.ndarray, "B"]
) -> Float64[np.ndarray, "B"]:
    """Return [B] minus the root of the seconds an iteration."""
    return -np.sqrt(np.where(fits, priced.seconds, config.failing_seconds))


class Actors:
    """The networks, without parameters, and what they read of a graph."""

    def __init__(self, config: HDPConfig, workspace: MakespanWorkspace) -> None:
        self.config = config
        self.graph: OpGraph = workspace.problem.graph
        wanted = min(config.groups, config.groups_per_device * workspace.num_devices)
        groups = min(wanted, workspace.num_nodes)
        ops = op_features(self.graph, config.adjacency, config.published)
        self.ops: OpFeatures = ops._replace(run=equal_runs(_work(workspace), groups))
        self.grouper = Grouper(groups, config.grouper_hidden, config.published, config.prior)
        self.placer = Placer(
            workspace.num_devices, config.hidden, config.temperature, config.tanh_constant
        )


def _work(workspace: MakespanWorkspace) -> Float64[np.ndarray, "N"]:
    """[N] seconds of operators on the fastest device that can run them."""
    seconds = workspace.problem.seconds.min(axis=0)
    return np.where(np.isfinite(seconds), seconds, 0.0)


class HdpLearner(NamedTuple):
    """State that learning changes."""

    params: dict[str, Params]
    """Parameters of ``grouper`` and ``placer``."""
    optimizer: Any
    """State of Adam."""


class Drawn(NamedTuple):
    """The samples of an update and how they came about."""

    keys: tuple[Array, Array]
    """Random keys of the grouper and of the placer."""
    noise: Float[Array, ""]
    group: Int[np.ndarray, "M N"]
    """[M, N] group of each operator."""
    features: Float32[np.ndarray, "M G X"]
    """[M, G, X] what the placer read."""
    chosen: Int[np.ndarray, "B G"]
    """[B, G] device of each group, B / M rows for each grouping."""

    @property
    def device(self) -> Int[np.ndarray, "B N"]:
        """[B, N] device of each operator."""
        group = np.repeat(self.group, len(self.chosen) // len(self.group), axis=0)
        return np.take_along_axis(self.chosen, group, axis=1)


def new_learner(actors: Actors, key: Array) -> HdpLearner:
    """Return untrained networks."""
    one, two = jax.random.split(key)
    params = {
        "grouper": new_grouper(actors.grouper, actors.config.adjacency, one),
        "placer": new_placer(actors.placer, actors.grouper.groups, two),
    }
    return HdpLearner(params, transformation(actors.config).init(params))


def draw(actors: Actors, learner: HdpLearner, key: Array, noise: float) -> Drawn:
    """Draw the samples of an update."""
    config, doubt = actors.config, jnp.float32(noise)
    one, two = jax.random.split(key)
    group = np.asarray(
        draw_groups(
            actors.grouper, learner.params["grouper"], actors.ops, one, doubt, config.groupings
        )
    )
    features = group_features(
        actors.graph, actors.ops, group, actors.grouper.groups, config.published
    )
    chosen = draw_devices(
        actors.placer, learner.params["placer"], features, two, doubt, config.placements
    )
    return Drawn((one, two), doubt, group, features, np.asarray(chosen))


def update(
    actors: Actors, learner: HdpLearner, drawn: Drawn, advantage: Float64[np.ndarray, "B"]
) -> HdpLearner:
    """Return the learner after one step along the policy gradient (equations 4 and 6).

    Raises:
        TrainingError: the gradient is not finite.
    """
    gain = advantage.astype(np.float32)
    grouping = gain.reshape(len(drawn.group), -1).mean(axis=1)
    gradient = {
        "grouper": grouper_gradient(
            actors.grouper,
            learner.params["grouper"],
            actors.ops,
            drawn.keys[0],
            drawn.noise,
            drawn.group,
            grouping,
        ),
        "placer": placer_gradient(
            actors.placer,
            learner.params["placer"],
            drawn.features,
            drawn.keys[1],
            drawn.noise,
            drawn.chosen,
            gain,
        ),
    }
    learner, norm = descend(actors.config, learner, gradient)
    if not np.isfinite(norm):
        raise TrainingError(
            f"hdp: an update on {actors.graph.name!r} gave a gradient of norm {float(norm)}; lower "
            f"learning_rate ({actors.config.learning_rate}), or look for extreme costs"
        )
    return learner


def transformation(config: HDPConfig) -> optax.GradientTransformation:
    """Return the rule of descent: Adam on gradients of bounded norm."""
    rate = optax.exponential_decay(
        config.learning_rate,
        config.decay_updates,
        config.decay,
        transition_begin=config.decay_start,
        staircase=True,
    )
    return optax.chain(optax.clip_by_global_norm(config.gradient_norm), optax.adam(rate))


@partial(jax.jit, static_argnums=0)
def descend(
    config: HDPConfig, learner: HdpLearner, gradient: dict[str, Params]
) -> tuple[HdpLearner, Float[Array, ""]]:
    """Return the learner after one step, and the gradient's norm."""
    steps, optimizer = transformation(config).update(gradient, learner.optimizer, learner.params)
    params = cast("dict[str, Params]", optax.apply_updates(learner.params, steps))
    return HdpLearner(params, optimizer), optax.tree.norm(gradient)
