"""What differs by objective where a policy is loaded, fine-tuned, pretrained and saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from go_rl.core import Objective
from go_rl.policy.names import DEFAULT_STEP_WEIGHTS, DEFAULT_WEIGHTS
from go_rl.train.config import FineTuneConfig, StepFineTuneConfig, StepTrainConfig, TrainConfig

SHIPPED = {Objective.RING: DEFAULT_WEIGHTS, Objective.MAKESPAN: DEFAULT_STEP_WEIGHTS}
"""Weights that ship with the package, by the objectives that policies work on."""
FINE_TUNING = {Objective.RING: FineTuneConfig, Objective.MAKESPAN: StepFineTuneConfig}
"""How a policy learns on one graph."""
TRAINING = {Objective.RING: TrainConfig, Objective.MAKESPAN: StepTrainConfig}
"""One pretraining run."""


@dataclass(frozen=True)
class PolicyFunctions:
    """What can be done with the policies of an objective."""

    load: Callable[[Any], Any]
    """Read weights by name or path."""
    save: Callable[[Any, Any], None]
    """Write weights to a path."""
    weights: Callable[[Any, str, Mapping[str, Any]], Any]
    """Weights of an agent, a name and a model card."""
    learner: Callable[..., Any]
    """The `Optimizer` that learns on one graph."""
    pretrain: Callable[..., Any]
    """Pretrain on the zoo: configuration, folder, report, where samples are collected."""


def policy_functions(objective: Objective) -> PolicyFunctions:
    """Return the functions of an objective's policies; this imports JAX."""
    if objective is Objective.MAKESPAN:
        from go_rl.policy.makespan.weights import StepWeights, load_step_weights, save_step_weights
        from go_rl.train.makespan import pretrain as makespan_pretrain
        from go_rl.train.makespan.learning import StepFineTuned

        def pretrain_makespan(config: Any, folder: Any, report: Any, workers: str) -> Any:
            return makespan_pretrain.pretrain_step(config, folder, report)

        return PolicyFunctions(
            load_step_weights, save_step_weights, StepWeights, StepFineTuned, pretrain_makespan
        )
    from go_rl.policy.weights import Weights, load_weights, save_weights
    from go_rl.train.fine_tune import FineTuned
    from go_rl.train.pretrain import pretrain
    from go_rl.train.workers import collector

    def pretrain_ring(config: Any, folder: Any, report: Any, workers: str) -> Any:
        return pretrain(config, folder, report, collector(workers))

    return PolicyFunctions(load_weights, save_weights, Weights, FineTuned, pretrain_ring)
