"""`DispatchTrainConfig`, `OrdersTrainConfig`: one pretraining run of a policy of prototypes."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field

from go_rl.core import DECISIONS, TrainingError, decision_names
from go_rl.core.config_checks import COUNT, NOT_NEGATIVE, POSITIVE, check_ranges
from go_rl.costs.models.registry import check_cost
from go_rl.policy.config import DispatchPolicyConfig, OrdersPolicyConfig, PrototypePolicyConfig
from go_rl.policy.learn.config.run import RunConfig


@dataclass(frozen=True)
class PrototypeTrainConfig(RunConfig, ABC):
    """Abstract: searches on many problems, a cover of what they found, then the network that
    chooses among it."""

    name: str = "prototypes"
    """Name of the weights."""
    generated: int = 3000
    """Generated networks (``go-rl zoo generate``), seeds 0 to this; 0: none."""
    zoo: bool = True
    """Whether the problems of the zoo's training families teach as well."""
    graphs: tuple[str, ...] = ()
    """Own models instead of both: files that go-rl graph reads, .npz graphs, folders of such."""
    hardware: tuple[str, ...] = ()
    """Hardware, each as often as the others."""
    cost: tuple[str, ...] = ("analytical",)
    """Cost models, each as often as the others: auto, analytical, profiled,
    learned[:gpus|NAME|FILE], measured:DIR or stages:FILE (docs/costs.md)."""
    max_nodes: int = 16_000
    """Larger graphs are left out: they cost too much."""
    rollouts: int = 512
    """Rollouts of the search on each problem."""
    candidates: int = 400
    """Problems whose best weights are the candidates for prototypes."""
    judged: int = 800
    """Problems on which the candidates are judged."""
    examples: int | None = None
    """Problems from whose known results the choice is learned; None: all."""
    choices: int = 1500
    """Updates of the network's choice among the prototypes, from their known results."""
    listwise: float = 0.5
    """Share of these updates, the first, that learn which prototypes are good at all, by listwise
    cross-entropy; the others lower the regret of the best of k."""
    updates: int = 300
    """Updates of choice and offsets together, with rollouts; 0: offsets stay zero."""
    problems: int = 16
    """Problems in each update."""
    best_of: tuple[int, ...] = (1, 5, 20)
    """Numbers of samples whose best is learned to be good."""
    learning_rate: float = 1e-3
    """AdamW's first step; it falls to a tenth along a cosine."""
    weight_decay: float = 0.03
    """AdamW's."""
    held_out: float = 0.1
    """Share of the problems that choose the weights that are kept, and teach nothing."""
    policy: PrototypePolicyConfig = field(default_factory=DispatchPolicyConfig)
    """Network."""
    finds: str | None = None
    """Folder of the searches, which runs may share; None: in that of the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(
            self, "train", TrainingError, generated=NOT_NEGATIVE, choices=NOT_NEGATIVE,
            updates=NOT_NEGATIVE, weight_decay=NOT_NEGATIVE, max_nodes=COUNT, rollouts=COUNT,
            candidates=COUNT, judged=COUNT, problems=COUNT, learning_rate=POSITIVE, examples=COUNT,
        )  # fmt: skip
        if not 0 <= self.listwise <= 1:
            raise TrainingError(f"train: listwise must be from 0 to 1, not {self.listwise}")
        for name in self.cost:
            check_cost(name)
        if not (self.generated or self.zoo or self.graphs):
            raise TrainingError("train: generated 0, no zoo and no graphs leave nothing to learn")
        if not self.hardware:
            raise TrainingError("train: hardware needs at least one entry")
        if not self.cost:
            raise TrainingError("train: cost needs at least one entry")
        if not self.best_of or min(self.best_of) < 1:
            raise TrainingError(f"train: best_of must be numbers >= 1, not {self.best_of}")
        if max(self.best_of) > self.policy.prototypes:
            raise TrainingError(
                f"train: best_of {max(self.best_of)} asks for more samples than the policy has "
                f"prototypes ({self.policy.prototypes})"
            )
        if not 0 < self.held_out < 1:
            raise TrainingError(f"train: held_out must be above 0 and below 1, not {self.held_out}")


@dataclass(frozen=True)
class DispatchTrainConfig(PrototypeTrainConfig):
    """Pretraining of a dispatch policy, on connected devices."""

    kind = "dispatch"

    name: str = "dispatch"
    """Name of the weights."""
    hardware: tuple[str, ...] = (
        "p100x4", "p100x8", "p100x2", "v100x4", "p100x4", "p100x8", "a100x8", "a100-40gbx4",
    )  # fmt: skip
    """Hardware, each as often as the others."""
    decide: tuple[tuple[str, ...], ...] = (DECISIONS, DECISIONS, ("placement",), DECISIONS)
    """Sets of decisions, each as often as it is listed."""
    cost: tuple[str, ...] = ("analytical", "learned:gpus")
    """Cost models, each as often as the others: auto, analytical, profiled,
    learned[:gpus|NAME|FILE], measured:DIR or stages:FILE (docs/costs.md)."""
    rollouts: int = 256
    """Rollouts of the search on each problem."""
    updates: int = 0
    """Updates of choice and offsets together, with rollouts; 0: offsets stay zero."""
    learning_rate: float = 2e-3
    """AdamW's first step; it falls to a tenth along a cosine."""
    policy: DispatchPolicyConfig = field(default_factory=DispatchPolicyConfig)
    """Network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.decide:
            raise TrainingError("train: decide needs at least one entry")
        for names in self.decide:
            decision_names(names, error=TrainingError)


@dataclass(frozen=True)
class OrdersTrainConfig(PrototypeTrainConfig):
    """Pretraining of an orders policy, on rings under the strict rules; of generated networks their
    inference functions teach."""

    kind = "orders"

    name: str = "orders"
    """Name of the weights."""
    hardware: tuple[str, ...] = (
        "ring36", "ring16", "ring16-mixed", "ring6-mixed", "ring6", "ring36", "ring16",
    )  # fmt: skip
    """Rings, each as often as it is listed."""
    max_nodes: int = 3500
    """Larger graphs are left out: they cost too much."""
    rollouts: int = 800
    """Rollouts of the search on each problem."""
    choices: int = 0
    """Updates of the network's choice among the prototypes, from their known results; 0: they come
    in the order of the cover."""
    updates: int = 0
    """Updates of choice and offsets together, with rollouts; 0: offsets stay zero."""
    policy: OrdersPolicyConfig = field(default_factory=OrdersPolicyConfig)
    """Network."""
