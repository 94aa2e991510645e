"""``go-rl zoo best``: the best plans known, and a leaderboard of the user's own."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from go_rl.api.zoo import (
    BEST_VERSION,
    BOARD,
    BestEntry,
    Submission,
    best_differences,
    named_problems,
    rebuild_board,
    submit_plan,
)
from go_rl.cli.console import console, print_json, print_line, print_table, working
from go_rl.cli.exit_codes import OK, REJECTED
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import say_next
from go_rl.core.printable import message_line
from go_rl.core.unit_text import seconds_text
from go_rl.report.text_table import TextTable


@dataclass(frozen=True)
class ZooBest:
    """Options of ``go-rl zoo best``."""

    split: Literal["train", "validation", "test"] | None = None
    """Only this side of the split (docs/zoo.md)."""
    objective: Literal["ring", "makespan"] | None = None
    """Only problems of this objective."""
    board: str | None = None
    """Folder of a leaderboard of your own; without it out/best, where there is one."""
    rebuild: bool = False
    """First compute the list of the leaderboard anew from the plans beside it."""
    verify: bool = False
    """Simulate and check every plan anew, those that ship too; exit code 1: some figure is not as
    listed."""
    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class ZooBestSubmit:
    """Options of ``go-rl zoo best submit``."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAN")]
    """A plan.json, for one of the problems that go-rl zoo best lists."""
    board: str = BOARD
    """Folder of the leaderboard that the plan goes to if it is the best one known."""
    problem: str | None = None
    """Name of the problem, where the plan fits several."""
    json: bool = False
    """Print one JSON document and nothing else."""


def run(config: ZooBest | ZooBestSubmit) -> int:
    """Run the command; returns the exit code."""
    return _submit(config) if isinstance(config, ZooBestSubmit) else _list(config)


def _list(config: ZooBest) -> int:
    if config.rebuild:
        rebuild_board(config.board or BOARD)
    found = list(named_problems(config.split, config.objective, config.board))
    wrong: list[str] = []
    if config.verify:
        with working("simulating and checking all plans"):
            wrong = best_differences(config.split, config.objective, config.board)
    if config.json:
        plans = [
            asdict(problem)
            | {"name": problem.name, "best": None if best is None else asdict(best)}
            | {"source": None if best is None else source}
            for problem, best, source in found
        ]
        verified = {"wrong": wrong} if config.verify else {}
        print_json({"version": BEST_VERSION, "problems": plans} | verified)
        return REJECTED if wrong else OK
    heads = ("problem", "family", "split", "ms", "above the bound", "method", "searched, s", "from")
    cells = [(p.name, p.family, p.part, *_cells(best, source)) for p, best, source in found]
    planned = sum(best is not None for _, best, _ in found)
    title = f"{BEST_VERSION}: {len(found)} problems, {planned} with a plan"
    words = ("family", "split", "method", "from")
    print_table(console(), TextTable(title, heads, cells, words=words))
    for sentence in wrong:
        print_line(console(), message_line(sentence))
    if config.verify and not wrong:
        print_line(console(), "every plan was simulated and checked anew: all is as listed")
    say_next(console(), "zoo", "show", found[0][0].graph)
    return REJECTED if wrong else OK


def _cells(best: BestEntry | None, source: str) -> tuple[str, ...]:
    if best is None:
        return ("-",) * 5
    milliseconds = f"{1e3 * best.seconds:.5g}"
    return milliseconds, f"{best.gap:.1%}", best.method, f"{best.processor_seconds:,.0f}", source


def _submit(config: ZooBestSubmit) -> int:
    check_folder(Path(config.board), "--board")
    with working("simulating and checking the plan"):
        found = submit_plan(config.plan, config.board, config.problem)
    if config.json:
        before = None if found.before is None else asdict(found.before)
        print_json({"accepted": found.accepted, "entry": asdict(found.entry), "before": before,
                    "source": found.source})  # fmt: skip
        return OK
    print_line(console(), message_line(_sentence(found, config.board)))
    board = () if config.board == BOARD else ("--board", config.board)
    if found.accepted:
        say_next(console(), "zoo", "best", *board)
    return OK


def _sentence(found: Submission, board: str) -> str:
    """Outcome of the plan, in words."""
    own = f"{found.entry.name}: {seconds_text(found.entry.seconds)}"
    if found.before is None:
        return f"accepted, {own}, the first plan known; written to {board}"
    known = f"{seconds_text(found.before.seconds)} ({found.source}, {found.before.method})"
    ratio = found.entry.seconds / found.before.seconds
    if found.accepted:
        return f"accepted, {own}, {1 - ratio:.3%} below the best known, {known}; written to {board}"
    return f"not better, {own}, {ratio - 1:.3%} above the best known, {known}; nothing was written"
