"""`EvaluateConfig`: everything that decides what a comparison of methods runs."""

from __future__ import annotations

from dataclasses import dataclass

from go_rl.core import Budget, SearchError, TrainingError, decision_names
from go_rl.costs.models.registry import check_cost
from go_rl.policy.config import check_control

THRESHOLDS = (1.6, 1.7, 1.8)
"""Improvements of the multi-chip paper's table of samples to reach them."""


@dataclass(frozen=True)
class EvaluateConfig:
    """What is compared: every method on every graph, hardware and rule set, with every seed."""

    graphs: tuple[str, ...]
    """``zoo:NAME``, a whole split of the zoo such as ``zoo:test``, or files that go_rl reads."""
    hardware: tuple[str, ...] = ("ring36",)
    """Presets or JSON files, all with ring links or all with links between all devices."""
    rules: tuple[str, ...] | None = None
    """Rule sets, for rings; None: strict."""
    all_chips: bool = False
    """Rings: every chip must be used."""
    decide: str | None = None
    """Connected devices: some of placement,schedule,fusion; None: all."""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:gpus|NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    memory: bool | None = None
    """Must weights and live tensors fit? None: unless a profile is on foreign hardware."""
    methods: tuple[str, ...] | None = None
    """Names of the portfolio's and of the learned methods; None: that of the reference plan, random
    search, annealing and the policy."""
    weights: str | None = None
    """Weights of the methods that start from pretrained ones; None: those that ship."""
    control: str | None = None
    """Control arm that decides in the place of every policy; see `go_rl.policy.controls`."""
    controls: bool = False
    """Run every control arm of every policy as well; samples and seconds are then two budgets, one
    after the other."""
    samples: int | None = 200
    """Priced plans of each run; None: no limit."""
    seconds: float | None = None
    """Seconds of each run; None: no limit."""
    seeds: int = 3
    """Runs of each method on each problem, with seeds 0, 1, ..."""
    once: tuple[str, ...] = ("greedy", "exact", "default", "expert", "heft", "fusion-greedy")
    """Methods that do not depend on the seed and run with the first one only."""
    bound_seconds: float = 0.0
    """CP-SAT's time to raise each problem's proven bound, beside the methods; 0: not run."""

    def __post_init__(self) -> None:
        for name in ("graphs", "hardware", "rules"):
            if getattr(self, name) == ():
                raise TrainingError(f"evaluate: {name} needs at least one entry")
        check_cost(self.cost)
        check_control(self.control)
        if self.decide is not None:
            decision_names(self.decide)
        if self.controls and self.control is not None:
            raise SearchError(
                f"evaluate: controls runs all control arms, {self.control!r} among them; leave one "
                "of controls and control out"
            )
        if self.seeds < 1:
            raise TrainingError(f"evaluate: seeds must be >= 1, not {self.seeds}")
        if not 0 <= self.bound_seconds < float("inf"):
            raise TrainingError(f"evaluate: bound_seconds must be >= 0, not {self.bound_seconds}")
        self.budget  # noqa: B018 - a budget checks itself

    @property
    def budget(self) -> Budget:
        """The limits of a run."""
        return Budget(self.samples, self.seconds)
