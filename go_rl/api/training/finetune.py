"""`finetune`: a policy learns on one model; the best plan and the trained weights come out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.api.load import graph_of
from go_rl.api.options import FineTuneOptions, HardwareChoice, options_from
from go_rl.api.problem import problem_for
from go_rl.api.training.learner_options import LearnerOptions
from go_rl.core import NodeId, Objective, OpGraph, Problem, SearchError
from go_rl.policy.config import POLICIES, SHIPPED_NAMES
from go_rl.policy.learn.config import FineTuneConfig

if TYPE_CHECKING:
    from go_rl.compare.portfolio import Result
    from go_rl.graphs.readers.model_options import Inputs
    from go_rl.policy.weights import Weights


def finetune(
    model: OpGraph | str | Path,
    hardware: HardwareChoice = None,
    *,
    config: FineTuneConfig | LearnerOptions | None = None,
    fixed: Mapping[NodeId, int] | None = None,
    dims: Mapping[str, int] | None = None,
    inputs: Inputs | None = None,
    report: Callable[[str], None] | None = None,
    **options: Any,
) -> tuple[Result, Weights]:
    """Train a policy further on one model; return the plans and the trained weights.

    Args:
        model, hardware, fixed, dims, inputs, report: as for `go_rl.optimize`.
        config: how it learns: changes as `LearnerOptions`, or the whole configuration.
        options: further fields of `FineTuneOptions`.

    Raises:
        GoRLError: bad input. A problem without a solution is a plan whose status says so.
    """
    from go_rl.compare.portfolio import methods_for, run, summarise
    from go_rl.policy.controls import controlled_name
    from go_rl.policy.effort import SECONDS_AN_HOUR, Effort
    from go_rl.policy.learn.fine_tune import FineTuned
    from go_rl.policy.weights import Weights, load_weights

    _refuse_learner_options(options)
    chosen = options_from(FineTuneOptions, {"hardware": hardware, **options}, "finetune")
    graph = graph_of(model, dims, inputs=inputs)
    problem = problem_for(graph, chosen, fixed)
    _check_asked(problem.objective, config)
    source = chosen.weights or SHIPPED_NAMES[problem.objective]
    before = load_weights(source, problem.objective)
    if config is None or isinstance(config, LearnerOptions):
        changes = config or LearnerOptions()
        config = changes.config_for(before.agent.config.kind)
    learner = FineTuned(before.agent, config, control=chosen.control)
    heuristic = run(problem, methods_for(problem)[0], None, chosen.seed, report).plans
    if report is not None:
        report(f"{controlled_name(learner.name, chosen.control)}: {chosen.samples} samples")
    before_time = time.process_time()
    try:
        plan, agent = learner.learn(problem, chosen.budget, chosen.seed)
    except KeyboardInterrupt as stop:
        raise type(stop)(
            "stopped before the policy had learned anything; nothing is kept"
        ) from None
    hours = (time.process_time() - before_time) / SECONDS_AN_HOUR
    effort = Effort(hours, plan.samples, 1)
    name = f"{controlled_name(before.name, chosen.control)}+{problem.graph.name}"
    card = _card(before, problem, chosen.samples) | effort.to_card()
    if chosen.control is not None:
        card["control"] = chosen.control
    weights = Weights(agent, name, card)
    return summarise(problem, [*heuristic, plan]), weights


def _refuse_learner_options(options: Mapping[str, Any]) -> None:
    """Point to ``config`` for options of the command line that go there in Python."""
    for each in fields(LearnerOptions):
        if each.name in options:
            given = f"config=LearnerOptions({each.name}={options[each.name]!r})"
            raise SearchError(
                f"finetune: {each.name} is a field of config; give {given}, of "
                "go_rl.api.training.learner_options"
            )


def _check_asked(objective: Objective, config: FineTuneConfig | LearnerOptions | None) -> None:
    """Refuse what has no meaning, before weights are read."""
    if objective not in SHIPPED_NAMES:
        raise SearchError(
            f"finetune: policies work on objectives {', '.join(SHIPPED_NAMES)}, not {objective}"
        )
    if isinstance(config, LearnerOptions):
        _check_options(objective, config)
    elif config is not None and not isinstance(config, FineTuneConfig):
        raise SearchError(f"finetune: config must be a FineTuneConfig, not {config!r}")


def _check_options(objective: Objective, options: LearnerOptions) -> None:
    """Refuse options that no policy of the objective has."""
    kinds = [kind for kind, each in POLICIES.items() if each.objective is objective]
    refusals: list[SearchError] = []
    for kind in kinds:
        try:
            options.config_for(kind)
            return
        except SearchError as error:
            refusals.append(error)
    raise refusals[0]


def _card(before: Any, problem: Problem, samples: int) -> dict[str, Any]:
    """The model card of weights that learned on one problem: from which, where, how long."""
    graph = problem.graph
    card = {"fine-tuned from": before.name, "graph": graph.name, "digest": graph.digest,
            "hardware": problem.hardware.name, "cost": problem.cost_model,
            "samples": samples, "before": dict(before.card)}  # fmt: skip
    if problem.objective.traits.has_rules:
        return card | {"rules": problem.rules.name}
    return card | {"decisions": list(problem.decisions)}
