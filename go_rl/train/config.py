"""What decides a training run: samples, learner, network, problems. Imports nothing heavy."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar

from go_rl.core import DECISIONS, RULE_SETS, Objective, TrainingError, decision_names
from go_rl.core.errors import nearest
from go_rl.cost.registry import check_cost
from go_rl.policy.config import PolicyConfig
from go_rl.policy.names import SHIPPED_NAMES
from go_rl.zoo.split import TRAINED

WORKERS = ("local", "ray")
"""Where samples are solved and priced."""


TOP = {"orders": 0.3, "nodes": 1.0}
"""Share of a batch that teaches, for each form of makespan policies; GO's learns from all."""
SOLVER_MODES = ("sample", "fix", "none")
"""How placements go through the solver."""


@dataclass(frozen=True)
class SampleConfig:
    """Samples of one update."""

    orders: int = 16
    """Orders drawn, cut by dynamic programming."""
    placements: int = 16
    """Placements drawn through the solver."""
    solver: str = "sample"
    """One of `SOLVER_MODES`."""

    @property
    def sizes(self) -> dict[str, int]:
        """Samples of each group of `RingDecoder`."""
        return {"order": self.orders, "placement": self.placements}

    def __post_init__(self) -> None:
        if self.orders < 0 or self.placements < 0 or self.orders + self.placements < 2:
            raise TrainingError(
                f"samples: orders {self.orders} and placements {self.placements} must be >= 0 and "
                "at least 2 together"
            )
        if self.solver not in SOLVER_MODES:
            raise TrainingError(f"samples: solver must be one of {', '.join(SOLVER_MODES)}, "
                                f"not {self.solver!r}")  # fmt: skip


@dataclass(frozen=True)
class PPOConfig:
    """One update."""

    learning_rate: float = 1e-3
    """Adam's step."""
    epochs: int = 3
    """Gradient steps on one batch of samples."""
    clip: float = 0.2
    """Ratios beyond 1 +- clip earn nothing more."""
    order_entropy: float = 1e-3
    """Weight of the entropy of orders; for makespan of all decisions, whatever the form."""
    placement_entropy: float = 1e-3
    """Weight of the entropy of chips on a ring."""
    gradient_norm: float = 1.0
    """Largest norm of a gradient."""
    decay_updates: int = 0
    """Updates over which the learning rate falls to a tenth, along a cosine; 0: it stays."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "clip", "gradient_norm"):
            if not getattr(self, name) > 0:
                raise TrainingError(f"ppo: {name} must be > 0, not {getattr(self, name)}")
        for name in ("order_entropy", "placement_entropy"):
            if not getattr(self, name) >= 0:
                raise TrainingError(f"ppo: {name} must be >= 0, not {getattr(self, name)}")
        if self.decay_updates < 0:
            raise TrainingError(f"ppo: decay_updates must be >= 0, not {self.decay_updates}")
        if self.epochs < 1:
            raise TrainingError(f"ppo: epochs must be >= 1, not {self.epochs}")


def _check_batches(batch: int, first: int) -> None:
    if batch < 2:
        raise TrainingError(f"fine-tuning: batch must be >= 2, not {batch}")
    if first < 1:
        raise TrainingError(f"fine-tuning: first must be >= 1, not {first}")


def _check_top(top: float | None, where: str) -> None:
    if top is not None and not 0 < top <= 1:
        raise TrainingError(f"{where}: top must be above 0 and at most 1, not {top}")


@dataclass(frozen=True)
class FineTuneConfig:
    """How a policy learns on one graph; `FINE_TUNING` holds what serves each objective."""

    batch: int = 10
    """Samples of an update."""
    ppo: PPOConfig = field(default_factory=lambda: PPOConfig(learning_rate=1e-3, epochs=4))
    """The learner."""
    widen: float = 4.0
    """Factor on the spread of graph-level decisions before learning starts; 1: as it came."""
    first: int = 10
    """Samples of the policy as it came, its likeliest decision first, before all that."""
    top: float | None = None
    """Share of a batch that teaches, the best; 1: all, against their mean. None: on a ring all,
    against a running baseline; for makespan as `TOP` has it for the policy's form."""
    remembered: int = 0
    """Best decisions so far that are learned again with each batch; 0: none."""

    def __post_init__(self) -> None:
        _check_batches(self.batch, self.first)
        _check_top(self.top, "fine-tuning")
        if not self.widen > 0:
            raise TrainingError(f"fine-tuning: widen must be > 0, not {self.widen}")
        if self.remembered < 0:
            raise TrainingError(f"fine-tuning: remembered must be >= 0, not {self.remembered}")


FINE_TUNING = {
    Objective.RING: FineTuneConfig(),
    Objective.MAKESPAN: FineTuneConfig(
        ppo=PPOConfig(learning_rate=3e-3, epochs=4), widen=1.0, remembered=8
    ),
}
"""By objective."""


@dataclass(frozen=True)
class SearchConfig:
    """Searches that teach a critic; see `go_rl.train.critic.searches`."""

    samples: int = 256
    """Decisions drawn on each problem, in whole batches, at least one; 0: none, and no critic."""
    batch: int = 32
    """Decisions drawn at a time."""

    def __post_init__(self) -> None:
        for name, least in (("samples", 0), ("batch", 2)):
            if getattr(self, name) < least:
                raise TrainingError(
                    f"searches: {name} must be >= {least}, not {getattr(self, name)}"
                )


@dataclass(frozen=True)
class CriticConfig:
    """How the critic of a makespan policy learns from searches; see
    `go_rl.train.critic.learning`."""

    steps: int = 800
    """Updates."""
    problems: int = 32
    """Problems of each set of tasks in an update."""
    decisions: int = 48
    """Decisions of each problem in an update."""
    learning_rate: float = 2e-3
    """AdamW's first step."""
    weight_decay: float = 1e-3
    """AdamW's."""

    def __post_init__(self) -> None:
        for name in ("steps", "problems", "decisions"):
            if getattr(self, name) < 1:
                raise TrainingError(f"critic: {name} must be >= 1, not {getattr(self, name)}")
        if not self.learning_rate > 0:
            raise TrainingError(f"critic: learning_rate must be above 0, not {self.learning_rate}")
        if not self.weight_decay >= 0:
            raise TrainingError(f"critic: weight_decay must be at least 0, not {self.weight_decay}")


GO_GRAPHS = (
    "rnnlm-2-layers", "rnnlm-4-layers", "rnnlm-8-layers", "gnmt-2-layers", "gnmt-4-layers",
    "transformer-xl-2-layers", "transformer-xl-4-layers", "transformer-xl-8-layers",
    "inception-v3-b32", "amoebanet-d-6-192", "wavenet-2x18", "wavenet-4x36",
)  # fmt: skip
"""Of the six families of GO."""


@dataclass(frozen=True)
class TrainConfig(ABC):
    """Abstract: one pretraining run; the same configuration and machine give the same weights."""

    objective: ClassVar[Objective]
    added: ClassVar[tuple[str, ...]] = ("cost",)
    """Fields that older runs lack: left out of the text while they have their default, so that such
    runs can be resumed."""

    name: str
    """Name of the weights."""
    split: str = "train"
    """Split of the zoo that is trained on."""
    packages: tuple[str, ...] = ()
    """Hardware, each as often as the others."""
    validation_packages: tuple[str, ...] = ()
    """Hardware of the validation problems."""
    cost: str = "auto"
    """Cost model: auto, analytical, profiled, learned[:NAME|FILE] or measured:DIR
    (docs/costs.md)."""
    max_nodes: int = 2500
    """Larger graphs are left out of updates and validation: they cost too much."""
    updates: int = 600
    """Updates of the weights."""
    graphs: int = 6
    """Problems in each update."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The learner."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    """The network."""
    seed: int = 0
    """Random seed."""
    validate_every: int = 50
    """Updates between validations."""
    checkpoint_every: int = 50
    """Updates between checkpoints."""

    def __post_init__(self) -> None:
        for name in ("updates", "graphs", "max_nodes", "validate_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise TrainingError(f"train: {name} must be >= 1, not {getattr(self, name)}")
        for name in ("packages", "validation_packages"):
            if not getattr(self, name):
                raise TrainingError(f"train: {name} need at least one entry")
        check_cost(self.cost)
        if self.seed < 0:
            raise TrainingError(f"train: seed must be >= 0, not {self.seed}")
        self.check_own_fields()

    @abstractmethod
    def check_own_fields(self) -> None:
        """Raise a `TrainingError` for a bad value of a field that only this objective has."""

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Samples drawn on each problem, by group of the objective's decoder."""

    def to_json(self) -> str:
        """Return the configuration as JSON text; see `added`."""
        default, values = TRAINING[self.objective](), asdict(self)
        for name in self.added:
            if getattr(self, name) == getattr(default, name):
                del values[name]
        return json.dumps(values, indent=2)


@dataclass(frozen=True)
class RingTrainConfig(TrainConfig):
    """Pretraining of a policy for rings."""

    objective = Objective.RING
    added = ("validation_packages", "cost")

    name: str = SHIPPED_NAMES[Objective.RING]
    """Name of the weights."""
    validation: str = "validation"
    """Split whose mean reward chooses the weights that are kept."""
    packages: tuple[str, ...] = ("ring6", "ring16", "ring36")
    """Hardware, each as often as the others."""
    rules: tuple[str, ...] = ("strict", "strict", "strict", "default")
    """Rule sets, each as often as it is listed."""
    validation_packages: tuple[str, ...] = ("ring16", "ring36")
    """Hardware of the validation problems, under strict rules."""
    max_nodes: int = 1300
    """Larger graphs of the split are left out: their updates cost too much."""
    samples: SampleConfig = field(default_factory=lambda: SampleConfig(12, 4))
    """Samples drawn on each problem."""
    ppo: PPOConfig = field(
        default_factory=lambda: PPOConfig(learning_rate=6e-4, epochs=2, decay_updates=600)
    )
    """The learner."""

    def check_own_fields(self) -> None:
        """See `TrainConfig`."""
        for rules in self.rules:
            if rules not in RULE_SETS:
                raise TrainingError(
                    f"train: unknown rules {rules!r}{nearest(rules, RULE_SETS)} "
                    f"Use {', '.join(RULE_SETS)}"
                )
        if not self.rules:
            raise TrainingError("train: rules need at least one entry")

    @property
    def sizes(self) -> dict[str, int]:
        """Orders and placements."""
        return self.samples.sizes


@dataclass(frozen=True)
class MakespanTrainConfig(TrainConfig):
    """Pretraining of a policy for placement, schedule and fusion on connected devices."""

    objective = Objective.MAKESPAN

    name: str = SHIPPED_NAMES[Objective.MAKESPAN]
    """Name of the weights."""
    split: str = "train"
    """Split of the zoo that is trained on: inference graphs only."""
    further: tuple[str, ...] = tuple(f"{name}-training" for name in (*GO_GRAPHS, *TRAINED))
    """Training graphs that are trained on as well."""
    further_share: float = 0.8
    """Share of the draws that go to these."""
    validation: str | None = None
    """Split whose best rewards choose the weights that are kept; None: the further graphs. On
    inference graphs one device and fusion is nearly all that can be had, whatever the policy."""
    packages: tuple[str, ...] = ("p100x2", "p100x4", "p100x8")
    """Hardware, each as often as the others."""
    validation_packages: tuple[str, ...] = ("p100x4",)
    """Hardware of the validation problems."""
    tasks: tuple[tuple[str, ...], ...] = (
        DECISIONS,
        ("placement",),
        DECISIONS,
        ("placement", "schedule"),
    )
    """Sets of decisions, each as often as it is listed."""
    updates: int = 160
    """Updates of the weights."""
    samples: int = 20
    """Plans drawn on each problem."""
    top: float | None = None
    """Share of these that teach: the best; 1: all, against their mean. None: as `TOP` has it for
    the policy's form."""
    searches: SearchConfig = field(default_factory=SearchConfig)
    """What comes before. A critic judges graph-level decisions, so ``nodes`` have none."""
    critic: CriticConfig = field(default_factory=CriticConfig)
    """What the critic makes of the searches."""
    ppo: PPOConfig = field(
        default_factory=lambda: PPOConfig(
            learning_rate=5e-4, epochs=2, order_entropy=5e-3, decay_updates=160
        )
    )
    """The learner."""
    validate_every: int = 20
    """Updates between validations."""
    checkpoint_every: int = 20
    """Updates between checkpoints."""

    def check_own_fields(self) -> None:
        """See `TrainConfig`."""
        if self.samples < 2:
            raise TrainingError(f"train: samples must be >= 2, not {self.samples}")
        _check_top(self.top, "train")
        if self.policy.step_form != "orders" and self.searches.samples:
            object.__setattr__(self, "searches", replace(self.searches, samples=0))
        if not 0 <= self.further_share <= 1:
            raise TrainingError(f"train: further_share must be 0 to 1, not {self.further_share}")
        if not self.tasks:
            raise TrainingError("train: tasks need at least one entry")
        for names in self.tasks:
            decision_names(names, error=TrainingError)

    @property
    def sizes(self) -> dict[str, int]:
        """Plans."""
        return {"plan": self.samples}


TRAINING: dict[Objective, Callable[[], TrainConfig]] = {
    Objective.RING: RingTrainConfig,
    Objective.MAKESPAN: MakespanTrainConfig,
}
"""Configuration of pretraining by objective."""
