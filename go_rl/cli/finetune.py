"""``go-rl finetune``: train a policy on one model; a plan, and weights for its relatives."""

from __future__ import annotations

from pathlib import Path

from go_rl.api import fine_tune
from go_rl.cli.configuration import FineTune, to_json
from go_rl.cli.console import console, working
from go_rl.cli.exit_codes import FAILED_SEARCH, OK
from go_rl.cli.partition import judge, output_folder, print_result, read
from go_rl.report.plan_folder import write_plan_folder
from go_rl.report.tables import rows

WEIGHTS_FILE = "weights.npz"
"""The trained weights, in the output folder."""


def run_finetune(config: FineTune) -> int:
    """Run the command; returns the exit code."""
    with working(f"reading {config.source.model}") as report:
        graph = read(config.source)
        report(f"preparing {graph.num_nodes:,} operators")
        result, weights = fine_tune(
            graph,
            config.package,
            memory={"auto": None, "on": True, "off": False}[config.memory],
            samples=config.samples,
            task=config.task,
            config=config.learner,
            report=report,
            rules=config.rules,
            weights=config.weights,
            seed=config.seed,
        )
        judge(result)
        folder = output_folder(config.out, graph)
        report("drawing figures")
        written = write_plan_folder(folder, result, to_json(config))
        from go_rl.policy.weights import save_weights

        save_weights(weights, folder / WEIGHTS_FILE)
    out = console()
    print_result(out, result, rows(result.plans, result.bound))
    names = ", ".join((*written, WEIGHTS_FILE))
    out.print(f"written to {folder}: {names}", markup=False, soft_wrap=True)
    out.print(f"use the weights: --weights {Path(folder) / WEIGHTS_FILE}", soft_wrap=True)
    return OK if result.best.evaluation.status.ok else FAILED_SEARCH
