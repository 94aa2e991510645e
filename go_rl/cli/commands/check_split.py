"""``go-rl check --split``: what is to be said of a split that somebody else chose."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.api.options import JudgeOptions
from go_rl.cli.console import console, print_json, print_line, working
from go_rl.cli.exit_codes import OK, REJECTED
from go_rl.cli.model_arguments import ModelArguments, Pins, read
from go_rl.cli.next_command import changed_options, model_words, say_next
from go_rl.core.printable import message_line

if TYPE_CHECKING:
    from go_rl.api.plans.check_split import Judgement


@dataclass(frozen=True)
class CheckSplit:
    """Options of ``go-rl check --split``."""

    source: ModelArguments
    split: Annotated[str, tyro.conf.arg(metavar="FILE|TEXT")]
    """The split: a file, or the text itself, such as 8,8,8,8 (docs/export.md); a text that begins
    with a dash follows an equals sign: --split='-ts 3,1'."""
    judged: JudgeOptions = field(default_factory=JudgeOptions)
    fixed: Pins = ()
    """Operators that must not move, by name or pattern, such as 'encoder/*=0'."""
    json: bool = False
    """Print one JSON document and nothing else."""


def run(config: CheckSplit) -> int:
    """Run the command; returns the exit code."""
    with working(f"reading {config.source.model}") as report:
        from go_rl.api.plans.check_split import check_split, judgement_json
        from go_rl.api.problem import read_pins

        graph = read(config.source)
        report(f"judging the split of {graph.num_nodes:,} operators")
        found = check_split(
            config.split, graph, fixed=read_pins(config.fixed), **asdict(config.judged)
        )
    if config.json:
        print_json(judgement_json(found))
    else:
        _print(found)
        _say_next(config, found)
    return OK if found.ok else REJECTED


def _print(found: Judgement) -> None:
    from go_rl.report.split_summary import split_lines

    out = console()
    for line in split_lines(found):
        print_line(out, message_line(line))


def _say_next(config: CheckSplit, found: Judgement) -> None:
    """The command that plans the same problem, in the parts that the notation can move."""
    from go_rl.api.plans.check_split import counts_layers

    words = ["optimize", *model_words(config.source)]
    words += changed_options(replace(config.judged, notation=None, moves=True))
    if config.judged.objective is None:
        words += ["--objective", str(found.problem.objective)]
    say_next(console(), *words, *(["--for", found.split.notation] if counts_layers(found) else []))
