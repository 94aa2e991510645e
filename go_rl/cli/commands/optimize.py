"""``go-rl optimize``: placement, schedule and fusion; a table, a plan, a timeline and figures."""

from __future__ import annotations

from dataclasses import asdict

from go_rl.cli.commands.partition import finish, plan_folder, read
from go_rl.cli.console import working
from go_rl.cli.options.configuration import Optimize


def run_optimize(config: Optimize) -> int:
    """Run the command; returns the exit code."""
    from go_rl.api.joint import optimize

    with working(f"reading {config.source.model}") as report:
        graph = read(config.source)
        folder = plan_folder(config, graph)
        report(f"preparing {graph.num_nodes:,} operators")
        result = optimize(
            graph,
            config.hardware,
            config.tasks,
            memory=config.memory == "on",
            report=report,
            **asdict(config.search),
        )
        outcome = finish(result, folder, config, report)
    return outcome()
