"""`check_plan`: the independent checker of a plan.

It shares no code with solvers, environments or simulators: proposals and claims are read from the
plan alone, checked against `go_rl.verify.rules`, and evaluated again in `go_rl.verify.value`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from go_rl.core.errors import PlanError, name_largest
from go_rl.core.evaluation import OPTIMAL_GAP, Status, proved_optimal
from go_rl.core.files.strict_json import shown
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.hardware.hardware import Hardware
from go_rl.core.plan import Plan
from go_rl.core.problem import Problem
from go_rl.verify.figures import false_figures, peaks_over_memory, plan_figures
from go_rl.verify.kernel_rules import legal_kernels
from go_rl.verify.makespan_value import held_at_peak, replayed
from go_rl.verify.rules import ROUNDING, Violation, legal
from go_rl.verify.value import plan_value

VALUE_TOLERANCE = 1e-6
"""Relative difference allowed between the plan's value and the checker's own."""
CLAIMS = ("value", "bound", "optimal", "evaluation")
"""Names of violations that are false statements of a plan, not broken rules."""
FALSE_CLAIMS = "false-claims"
"""Status in documents of a plan that is legal and states something false."""


@dataclass(frozen=True)
class Verdict:
    """The checker's verdict on a plan."""

    status: Status
    """``ok``; the status of the first violation, ``illegal`` where only the plan's statements are
    false (`is_legal`); or the plan's own when it reports a failure."""
    violations: tuple[Violation, ...]
    """Every violated rule, or else every false statement (`CLAIMS`); empty when the status is
    ``ok`` or the plan's own."""
    value: float = float("inf")
    """The objective as the checker computes it, seconds an iteration; inf when it was not
    computed."""
    detail: str = ""
    """Failure that the plan itself reports, in its words (``evaluation.detail``)."""

    @property
    def ok(self) -> bool:
        """True for a legal plan whose value and bound hold."""
        return self.status.ok

    @property
    def is_legal(self) -> bool:
        """True for a plan that obeys every rule, whatever numbers it states; False for a plan that
        reports a failure."""
        broken = any(v.rule not in CLAIMS for v in self.violations)
        return not broken and (self.status.ok or bool(self.violations))

    @property
    def status_word(self) -> str:
        """The status as documents name it: `FALSE_CLAIMS` for a legal plan that is not ``ok``."""
        return FALSE_CLAIMS if self.is_legal and not self.ok else str(self.status)

    @property
    def status_sentence(self) -> str:
        """The status in one sentence."""
        if self.is_legal and not self.ok:
            return "The plan is legal, but what it states is false."
        if not self.ok and not self.violations:
            return f"The plan itself reports a failure. {self.status.sentence}"
        return self.status.sentence

    @property
    def sentence(self) -> str:
        """The verdict in words, every violation named."""
        return " ".join([self.status_sentence, *(f"{line.rstrip('.')}." for line in self.lines)])

    @property
    def lines(self) -> list[str]:
        """The reasons of a verdict that is not ``ok``: each violation, or what the plan reports."""
        reported = [self.detail] if self.detail else []
        return [*(f"{v.rule}: {v.message}" for v in self.violations), *reported]


def check_plan(plan: Plan, problem: Problem) -> Verdict:
    """Check a plan: does it satisfy every rule of the problem, and is its value correct?

    A plan whose own status is a failure gets that status; nothing else is checked.

    Raises:
        PlanError: the plan belongs to another graph, hardware, objective or rule set.
    """
    check_belongs(plan, problem)
    if not plan.evaluation.status.ok:
        return Verdict(plan.evaluation.status, (), detail=plan.evaluation.detail)
    if broken := legal(problem, plan.device, plan.replicas):
        return Verdict(broken[0].status, broken)
    if problem.objective.traits.is_replayed:
        if broken := legal_kernels(problem, plan.device, plan.priority, plan.fusion_group):
            return Verdict(broken[0].status, broken)
        step = replayed(problem, plan.device, plan.priority, plan.fusion_group)
        if broken := _too_full(plan, problem, step.peak_bytes):
            return Verdict(broken[0].status, broken)
        value = step.seconds
    else:
        if broken := _stated_too_full(plan, problem):
            return Verdict(broken[0].status, broken)
        step, value = None, plan_value(problem, plan.device, plan.replicas)
    figures = plan_figures(problem, plan.device, plan.replicas, step)
    false = false_figures(plan.evaluation, figures, problem)
    claims = [*_false_claims(plan, value), *(("evaluation", what) for what in false)]
    wrong = tuple(Violation(*claim) for claim in claims)
    return Verdict(Status.ILLEGAL if wrong else Status.OK, wrong, value)


def _too_full(plan: Plan, problem: Problem, peak: list[float]) -> tuple[Violation, ...]:
    full = [
        d
        for d, chip in enumerate(problem.hardware.devices)
        if problem.memory and peak[d] > chip.memory_bytes * (1 + ROUNDING)
    ]
    return tuple(_out_of_memory(plan, problem, d, peak[d]) for d in full)


def _stated_too_full(plan: Plan, problem: Problem) -> tuple[Violation, ...]:
    """Where live tensors are not recomputed, the peaks that the plan states must fit."""
    return tuple(
        Violation("memory", message, Status.OUT_OF_MEMORY)
        for message in peaks_over_memory(plan.evaluation, problem)
    )


def _out_of_memory(plan: Plan, problem: Problem, device: int, peak: float) -> Violation:
    room = problem.hardware.devices[device].memory_bytes
    held = held_at_peak(problem, plan.device, plan.priority, plan.fusion_group, device)
    return Violation(
        "memory",
        f"device {device} needs {peak:.6g} bytes at once; its memory is {room:.6g}; the largest "
        f"there at that moment: {name_largest(held)}",
        Status.OUT_OF_MEMORY,
    )


def _false_claims(plan: Plan, value: float) -> list[tuple[str, str]]:
    claims = []
    if not abs(plan.value - value) <= VALUE_TOLERANCE * value:
        claims.append(("value", f"the plan says {plan.value:.9g} s; it is {value:.9g} s"))
    if not 0 <= plan.bound <= value * (1 + ROUNDING):
        claims.append(
            ("bound", f"a lower bound of {plan.bound:.9g} s does not fit a plan of {value:.9g} s")
        )
    if plan.optimal and not proved_optimal(value, plan.bound):
        claims.append(
            (
                "optimal",
                f"the plan says that it is optimal; its bound of {plan.bound:.9g} s leaves a gap "
                f"below {value:.9g} s, and at most {OPTIMAL_GAP:g} of the bound is allowed",
            )
        )
    return claims


def check_belongs(plan: Plan, problem: Problem) -> None:
    """Raise a `PlanError` naming the first difference when the plan is for another problem."""
    check_same_graph(plan, problem.graph)
    _check_hardware(plan, problem.hardware)
    for name, mine in (
        ("objective", str(problem.objective)),
        ("rules", problem.rules.name),
        ("memory", problem.memory),
        ("all_chips", problem.all_chips),
        ("fixed", dict(problem.fixed)),
        ("cost_model", problem.cost_model),
        ("element_bytes", problem.hardware.element_bytes),
    ):
        if getattr(plan, name) != mine:
            raise PlanError(
                f"the plan is for another problem: its {name} is {shown(getattr(plan, name))}, "
                f"the problem's {shown(mine)}"
            )


def check_same_graph(plan: Plan, graph: OpGraph) -> None:
    """Raise a `PlanError` naming the first difference when the plan is for another graph."""
    for i, (theirs, mine) in enumerate(zip(plan.nodes, graph.names, strict=False)):
        if theirs != mine:
            raise PlanError(
                f"the plan is for another graph: its node {i} is {shown(theirs)}, that of "
                f"{graph.name!r} is {shown(mine)}"
            )
    for field, length in (("nodes", len(plan.nodes)), ("device", len(plan.device))):
        if length != graph.num_nodes:
            raise PlanError(
                f"the plan is for another graph: {field} has {length} entries, "
                f"{graph.name!r} has {graph.num_nodes} nodes"
            )
    if plan.graph_hash != graph.digest:
        raise PlanError(
            f"the plan is for another graph: graph_hash {plan.graph_hash[:12]}…, but "
            f"{graph.name!r} has {graph.digest[:12]}… (same nodes, other costs or edges)"
        )


def _check_hardware(plan: Plan, hardware: Hardware) -> None:
    theirs = plan.described_hardware
    if theirs.name != hardware.name:
        raise PlanError(
            f"the plan is for other hardware: {shown(theirs.name)}, not {hardware.name!r}"
        )
    for field in fields(Hardware):
        pair = getattr(theirs, field.name), getattr(hardware, field.name)
        if field.name != "description" and pair[0] != pair[1]:
            name, his, own = _first_difference(field.name, *pair)
            raise PlanError(
                f"the plan is for other hardware: {name} of its {shown(theirs.name)} is "
                f"{_value(his)}, that of {hardware.name!r} is {_value(own)}"
            )


def _first_difference(name: str, theirs: Any, mine: Any) -> tuple[str, Any, Any]:
    """Name, and both values, of the first field that differs in two values that are not equal."""
    if isinstance(mine, tuple) and len(theirs) == len(mine):
        pairs = enumerate(zip(theirs, mine, strict=True))
        parts = [(f"{name}[{i}]", *pair) for i, pair in pairs]
    elif is_dataclass(mine):
        names = [field.name for field in fields(mine)]
        parts = [(f"{name}.{each}", getattr(theirs, each), getattr(mine, each)) for each in names]
    else:
        return name, theirs, mine
    return _first_difference(*next(part for part in parts if part[1] != part[2]))


def _value(value: Any) -> str:
    """A number or word as it is, a list by its length."""
    if isinstance(value, tuple):
        return f"a list of {len(value)}"
    return f"{value:.9g}" if isinstance(value, float) else shown(value)
