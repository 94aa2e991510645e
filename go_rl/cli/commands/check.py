"""``go-rl check``: the independent checker's verdict on a plan; with ``--split``, on a split, with
``--ran``, what a session ran where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated

import tyro

from go_rl.api.options import HardwareChoice
from go_rl.cli.commands import check_ran, check_split
from go_rl.cli.commands.check_ran import CheckRan
from go_rl.cli.commands.check_split import CheckSplit
from go_rl.cli.console import console, print_json, print_line, working
from go_rl.cli.exit_codes import OK, REJECTED
from go_rl.cli.model_arguments import ModelArguments, as_planned, naming_plan, read
from go_rl.cli.next_command import model_words, say_next
from go_rl.core import (
    Hardware,
    HardwareError,
    Objective,
    OpGraph,
    Plan,
    PlanError,
    Problem,
    ProblemError,
    load_hardware,
)
from go_rl.core.evaluation import finite
from go_rl.core.files.strict_json import shown
from go_rl.core.printable import counted, message_line

if TYPE_CHECKING:
    from go_rl.api.plans.check import Explanation, Verdict


@dataclass(frozen=True)
class CheckOptions:
    """Options of ``go-rl check``."""

    plan: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PLAN")]
    """A plan.json. A split (--split FILE) and what a session ran (--ran FILE) have options of their
    own: go-rl check --split FILE --help, go-rl check --ran FILE --help."""
    source: ModelArguments
    hardware: HardwareChoice = None
    """Hardware that the plan must be for: a preset (go-rl hardware list), a JSON file, a plan.json
    (its hardware), or "file" for the model file's own. Default: what the plan itself describes."""
    explain: bool = False
    """Also say, for a small ring plan, which rule forbids every partition, or which legal one is
    nearest; all are tried."""
    json: bool = False
    """Print one JSON document and nothing else."""


def options_of(argv: Sequence[str]) -> type[CheckOptions | CheckRan | CheckSplit]:
    """Return the options for a split or a session, if the arguments name one, else for a plan.

    Raises:
        UsageError: they name both.
    """
    kinds = {"--split": CheckSplit, "--ran": CheckRan}
    named = [
        option for option in kinds
        if any(word == option or word.startswith(f"{option}=") for word in argv)
    ]  # fmt: skip
    if len(named) > 1:
        from go_rl.cli.parsing.parse import UsageError

        raise UsageError(
            "--split and --ran exclude each other: --split judges a split of MODEL without a plan, "
            "--ran what a session ran of PLAN; leave one out"
        )
    return kinds[named[0]] if named else CheckOptions


def run(config: CheckOptions | CheckRan | CheckSplit) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, CheckRan):
        return check_ran.run(config)
    if isinstance(config, CheckSplit):
        return check_split.run(config)
    plan = Plan.load(config.plan)
    reading = as_planned(config.source, plan, config.plan)
    with working(f"reading {config.source.model}"), reading as source:
        from go_rl.api.plans.check import check, explain

        graph = read(source)
        with naming_plan(config.plan):
            problem = _problem(plan, graph, config.hardware)
            verdict = check(plan, problem)
            beside = explain(plan, problem) if config.explain else None
    if config.json:
        said = {} if beside is None else {"explanation": asdict(beside)}
        print_json(_document(verdict, plan, config) | said)
    else:
        _print(verdict, plan, config)
        if beside is not None:
            print_line(console(), message_line(_explained(beside, graph)))
        say_next(console(), *_after(verdict, plan, config.plan, source))
    return OK if verdict.ok else REJECTED


def _problem(plan: Plan, graph: OpGraph, hardware: HardwareChoice) -> Problem:
    """The plan's problem, on the hardware that the user names."""
    from go_rl.api.plans.check import problem_of
    from go_rl.api.problem import named_hardware

    problem = problem_of(plan, graph)
    if hardware is None:
        return problem
    chosen = named_hardware(graph, hardware)
    try:
        return replace(problem, hardware=chosen)
    except ProblemError:  # of another kind, which cannot even be that of the plan's objective
        theirs = shown(plan.hardware["name"])
        raise PlanError(f"the plan is for other hardware: {theirs}, not {chosen.name!r}") from None


def _document(verdict: Verdict, plan: Plan, config: CheckOptions) -> dict[str, object]:
    violations = [{"rule": v.rule, "message": v.message} for v in verdict.violations]
    return {
        "accepted": verdict.ok,
        "legal": verdict.is_legal,
        "status": verdict.status_word,
        "detail": verdict.detail,
        "value": finite(verdict.value),
        "violations": violations,
        "assumed": {
            "hardware": plan.hardware["name"],
            "hardware_from": "plan" if config.hardware is None else "--hardware",
            "objective": plan.objective,
            "rules": plan.rules if Objective(plan.objective).traits.has_rules else None,
            "memory": plan.memory,
            "cost_model": plan.cost_model,
        },
    }


def _assumed(plan: Plan, config: CheckOptions) -> str:
    """The problem that the plan was held against, in words."""
    hardware = plan.described_hardware
    whose = "as the plan describes them"
    if config.hardware is not None:
        whose = "as --hardware has them"
    elif _preset_is(plan) is False:
        whose += ", which the preset of that name does not"
    parts = [
        f"{hardware.name}, {counted(hardware.num_devices, 'device')} {whose}",
        f"objective {plan.objective}",
    ]
    if Objective(plan.objective).traits.has_rules:
        parts.append(f"rules {plan.rules}")
    parts += [f"cost {plan.cost_model}", *([] if plan.memory else ["memory without limit"])]
    return "; ".join([parts[0], ", ".join(parts[1:])])


def _print(verdict: Verdict, plan: Plan, config: CheckOptions) -> None:
    out = console()
    word = "accepted" if verdict.ok else "rejected"
    assumed = _assumed(plan, config)
    print_line(out, message_line(f"{word}: {verdict.status_sentence} Checked on {assumed}"))
    for line in verdict.lines:
        print_line(out, message_line(line))
    if verdict.ok:
        bound = "no bound was proved"
        if math.isfinite(plan.gap):
            bound = f"proven bound {plan.bound:.6g} s, gap {100 * plan.gap:.2f} %"
        print_line(out, f"{verdict.value:.6g} s an iteration, {bound}")


def _explained(found: Explanation, graph: OpGraph) -> str:
    """The legal partitions in a sentence."""
    if not found.partitions and not found.blamed:
        return "no partition is legal, and leaving out one rule would not change that"
    if not found.partitions:
        rules = " or ".join(found.blamed)
        return f"no partition is legal; without rule {rules} there would be some"
    count = counted(found.partitions, "legal partition")
    if not found.moves:
        return f"{count}; this is one of them"
    moves = ", ".join(f"{graph.names[n]!r} to chip {c}" for n, c in found.moves.items())
    return f"{count}; the nearest moves {moves}"


def _after(verdict: Verdict, plan: Plan, path: str, source: ModelArguments) -> list[str]:
    """The command that makes the plan anew, or, if it is a good one, compares all methods."""
    words = ["optimize", *model_words(source), "--objective", plan.objective]
    if Objective(plan.objective).traits.has_rules:
        words += ["--rules", plan.rules]
    words += ["--hardware", _hardware(plan, path)]
    return [*words, "--method", "all"] if verdict.ok else words


def _hardware(plan: Plan, path: str) -> str:
    """Value of `--hardware`: ``file``, the preset of the plan, or the plan, which holds it."""
    from go_rl.api.problem import OWN_HARDWARE

    name = str(plan.hardware["name"])
    return name if name == OWN_HARDWARE or _preset_is(plan) else path


def _preset_is(plan: Plan) -> bool | None:
    """Whether the preset that the plan's hardware has the name of is like it; None: there is none
    of that name."""
    try:
        preset = load_hardware(str(plan.hardware["name"]))
    except HardwareError:
        return None
    return preset == Hardware.from_json(plan.hardware)
