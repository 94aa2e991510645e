"""``go-rl finetune``: train a policy on one model; a plan, and weights for its relatives."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Annotated

import tyro

from go_rl.api.options import FineTuneOptions
from go_rl.api.training.learner_options import LearnerOptions
from go_rl.cli.console import console, print_line, working
from go_rl.cli.folders import own_folder
from go_rl.cli.model_arguments import ModelArguments, Pins, read
from go_rl.cli.next_command import model_words, say_next
from go_rl.cli.plan_output import exit_code, output_folder, print_result
from go_rl.cli.stopping import keeping_the_best
from go_rl.policy.learn.config import WEIGHTS_FILE


@dataclass(frozen=True)
class FineTune:
    """Options of ``go-rl finetune``."""

    source: ModelArguments
    search: FineTuneOptions = field(default_factory=FineTuneOptions)
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    fixed: Pins = ()
    """Operators that must not move, by name or pattern, such as 'encoder/*=0'."""
    out: Annotated[str | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder for the plan, tables, figures and weights.npz. Default: out/MODEL."""


def run(config: FineTune) -> int:
    """Run the command; returns the exit code."""
    with working(f"reading {config.source.model}") as report, ExitStack() as held:
        graph = read(config.source)
        folder = output_folder(config.out, graph, held)
        report(f"preparing {graph.num_nodes:,} operators")
        from go_rl.api.plans.check import require_accepted
        from go_rl.api.problem import read_pins
        from go_rl.api.training.finetune import finetune
        from go_rl.api.training.pretrain import effort_sentence, save_weights
        from go_rl.report.plan_folder import write_plan_folder

        with keeping_the_best() as stop:
            fixed = read_pins(config.fixed)
            result, weights = finetune(
                graph, fixed=fixed, config=config.learner, report=report, **asdict(config.search)
            )
        require_accepted(result)
        report("drawing figures")
        if config.out is None:
            folder = own_folder(folder, result.problem.graph, held)
        written = write_plan_folder(folder, result, asdict(config))
        path = folder / WEIGHTS_FILE
        save_weights(weights, path)
    print_result(out := console(), result)
    print_line(out, effort_sentence(weights.card))
    print_line(out, f"written to {folder}: {', '.join((*written, WEIGHTS_FILE))}")
    chosen = config.search
    hardware = ("--hardware", str(chosen.hardware)) if chosen.hardware else ()
    objective = ("--objective", chosen.objective) if chosen.objective else ()
    use = (*hardware, *objective, "--weights", path)
    say_next(out, "optimize", *model_words(config.source), *use)
    return exit_code(result, stop)
