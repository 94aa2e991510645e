"""`EvaluateConfig`: everything that decides what a comparison of methods runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from go_rl.core import Budget, SearchError, TrainingError, decision_names
from go_rl.core.config_checks import COUNT, FINITE, POSITIVE, check_ranges, check_tuples
from go_rl.costs.models.registry import check_cost
from go_rl.policy.config import Control, check_control

THRESHOLDS = (1.6, 1.7, 1.8)
"""Improvements of the multi-chip paper's table of samples to reach them."""
DEFAULT_SAMPLES = 200
"""Budget when the user gives neither samples nor seconds."""
DEFAULT_SECONDS = 3.0
"""The second budget of ``controls`` when the user gives neither."""
WARM_UP_SAMPLES = 32
"""Samples of the run that compiles a learned method, before its timed runs."""
SEEDLESS = (
    "greedy", "exact", "default", "one-device", "expert", "heft", "fusion-greedy", "layers-equal",
    "layers-by-speed", "fill-in-order",
)  # fmt: skip
"""Methods that draw nothing."""


@dataclass(frozen=True)
class EvaluateConfig:
    """Comparison of every method on every graph, hardware and rule set, with every seed."""

    graphs: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="GRAPHS")]
    """zoo:NAME, a split of the zoo such as zoo:test (go-rl zoo list), or model files."""
    hardware: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME|FILE ...")] = ("ring36",)
    """Hardware, one or more: presets or JSON files, all with ring links (objective ring), or all
    with links between all devices (makespan), such as p100x4."""
    rules: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="RULES ...")] = None
    """Rings: rule sets, one or more of default, strict, replicate, relay. Default: strict."""
    all_chips: bool = False
    """Rings: every chip must be used."""
    decide: Annotated[str | None, tyro.conf.arg(metavar="NAME,NAME")] = None
    """Makespan: some of placement,schedule,fusion. Default: all."""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:gpus|NAME|FILE], measured:DIR or
    stages:FILE (docs/costs.md)."""
    memory: bool | None = None
    """Must weights and live tensors fit? Default: yes, except for a profile on foreign hardware."""
    methods: Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME ...")] = None
    """Methods of go-rl optimize, and the learned ones (docs/policy.md). Default: that of the
    reference plan (greedy; makespan: default), random, annealing and policy."""
    weights: Annotated[str | None, tyro.conf.arg(metavar="NAME|FILE")] = None
    """Weights of the policy methods and finetuned ones. Default: those that ship."""
    control: Control | None = None
    """Control arm that decides in the place of every policy (docs/evaluate.md). Default: none."""
    controls: bool = False
    """Run every policy's control arms as well, at equal samples and then at equal seconds, and
    print them beside it."""
    samples: int | None = None
    """Evaluated plans of each run. Default: 200 if there is no limit in seconds."""
    seconds: float | None = None
    """Seconds of each run, compilation left out. Default: no limit; with --controls, 3."""
    seeds: int = 3
    """Runs of each method on each problem, with seeds 0, 1, ...; bands need at least 2."""
    once: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...")] = SEEDLESS
    """Methods that do not depend on the seed and run with the first one only."""
    bound_seconds: float = 0.0
    """Seconds in which CP-SAT may raise the proven bound of each problem, beside the methods; 0:
    none."""
    thresholds: tuple[float, ...] = THRESHOLDS
    """Improvements over the compiler heuristic whose samples are counted."""

    def __post_init__(self) -> None:
        check_tuples(self, "evaluate", TrainingError)
        for name in ("graphs", "hardware", "rules"):
            if getattr(self, name) == ():
                raise TrainingError(f"evaluate: {name} needs at least one entry")
        check_cost(self.cost)
        check_control(self.control)
        if self.decide is not None:
            decision_names(self.decide)
        if self.controls and self.control is not None:
            raise SearchError(
                f"evaluate: controls runs all control arms, {self.control!r} among them; name "
                "none beside it"
            )
        check_ranges(
            self, "evaluate", TrainingError, seeds=COUNT, bound_seconds=FINITE, thresholds=POSITIVE
        )
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The limits of a run; of ``controls``, of one run after the other."""
        if self.samples is not None or self.seconds is not None:
            return Budget(self.samples, self.seconds)
        return Budget(DEFAULT_SAMPLES, DEFAULT_SECONDS if self.controls else None)
