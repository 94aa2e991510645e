"""``go-rl finetune``, ``finetune-step``: train a policy on one model; a plan, and weights for its
relatives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from go_rl.api.joint import fine_tune_step
from go_rl.api.partition import fine_tune
from go_rl.cli.commands.partition import judge, output_folder, print_result, read
from go_rl.cli.console import console, print_line, working
from go_rl.cli.exit_codes import FAILED_SEARCH, OK
from go_rl.cli.folders import own_folder
from go_rl.cli.next_command import model_words, say_next
from go_rl.cli.options.configuration import FineTune, FineTuneStep, to_json
from go_rl.cli.options.step_configuration import plain
from go_rl.core import OpGraph
from go_rl.report.plan_folder import write_plan_folder
from go_rl.report.tables import rows
from go_rl.train.config import FineTuneConfig

WEIGHTS_FILE = "weights.npz"
"""The trained weights, in the output folder."""


def run_finetune(config: FineTune) -> int:
    """Run the command; returns the exit code."""

    def learn(graph: OpGraph, report: Callable[[str], None]) -> Any:
        return fine_tune(
            graph,
            config.hardware,
            memory={"auto": None, "on": True, "off": False}[config.memory],
            samples=config.samples,
            task=config.task,
            config=config.learner,
            report=report,
            rules=config.rules,
            cost=config.cost,
            weights=config.weights,
            seed=config.seed,
        )

    from go_rl.policy.weights import save_weights

    return _run(config, learn, save_weights, "partition")


def run_finetune_step(config: FineTuneStep) -> int:
    """Run ``go-rl finetune-step``; returns the exit code."""

    def learn(graph: OpGraph, report: Callable[[str], None]) -> Any:
        return fine_tune_step(
            graph,
            config.hardware,
            config.tasks,
            memory=config.memory == "on",
            samples=config.samples,
            config=plain(FineTuneConfig, config.learner),
            report=report,
            cost=config.cost,
            weights=config.weights,
            seed=config.seed,
        )

    from go_rl.policy.makespan.weights import save_step_weights

    return _run(config, learn, save_step_weights, "optimize")


def _run(
    config: FineTune | FineTuneStep,
    learn: Callable[[OpGraph, Callable[[str], None]], Any],
    save: Callable[[Any, Path], None],
    command: str,
) -> int:
    """Learn on the model, write its folder and say so; ``command`` takes the weights."""
    with working(f"reading {config.source.model}") as report:
        graph = read(config.source)
        folder = output_folder(config.out, graph)
        report(f"preparing {graph.num_nodes:,} operators")
        result, weights = learn(graph, report)
        judge(result)
        report("drawing figures")
        folder = folder if config.out else own_folder(folder, result.problem.graph)
        written = write_plan_folder(folder, result, to_json(config))
        save(weights, folder / WEIGHTS_FILE)
    out, path = console(), folder / WEIGHTS_FILE
    print_result(out, result, rows(result.plans, result.bound))
    names = ", ".join((*written, WEIGHTS_FILE))
    print_line(out, f"written to {folder}: {names}")
    say_next(out, command, *model_words(config.source), "--weights", path)
    return OK if result.best.evaluation.status.ok else FAILED_SEARCH
