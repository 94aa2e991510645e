"""What decides a training run: samples, learner, network, problems. Imports nothing heavy."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from go_rl.core import DECISIONS, RULE_SETS, Objective, TrainingError, decision_names
from go_rl.core.errors import nearest
from go_rl.cost.registry import check_cost
from go_rl.policy.config import (
    ADDED,
    OLD_NAMES,
    SHIPPED_NAMES,
    SOLVER_MODES,
    PolicyConfig,
    current_names,
)
from go_rl.zoo.split import TRAINED

CONFIG_FILE = "config.json"
"""The configuration of a run, in its folder; that of its searches, in theirs."""
CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints, in that of the run."""
SEARCHES = "searches"
"""Folder of a makespan run's searches, in that of the run."""
WEIGHTS_FILE = "weights.npz"
"""The best weights so far, in the folder of the run."""
RENAMED = {
    **OLD_NAMES,
    "packages": "hardware",
    "validation_packages": "validation_hardware",
    "tasks": "decide",
}
"""Fields that runs of older versions hold, and their names now."""
WORKERS = ("local", "ray")
"""Where samples are solved and priced."""
TOP = {"orders": 0.3, "nodes": 1.0, "dispatch": 0.3}
"""Share of a batch that teaches, for each form of makespan policies; GO's learns from all."""


def _check_least(where: str, config: object, least: int, *names: str) -> None:
    for name in names:
        if not (value := getattr(config, name)) >= least:
            raise TrainingError(f"{where}: {name} must be >= {least}, not {value}")


def _check_positive(where: str, config: object, *names: str) -> None:
    for name in names:
        if not (value := getattr(config, name)) > 0:
            raise TrainingError(f"{where}: {name} must be > 0, not {value}")


def _check_top(top: float | None, where: str) -> None:
    if top is not None and not 0 < top <= 1:
        raise TrainingError(f"{where}: top must be above 0 and at most 1, not {top}")


@dataclass(frozen=True)
class SampleConfig:
    """Samples of one update."""

    orders: int = 16
    """Orders drawn, cut by dynamic programming."""
    placements: int = 16
    """Placements drawn through the solver."""
    solver: str = "sample"
    """One of `SOLVER_MODES`."""

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
    least_entropy: float | None = None
    """Mean entropy of the decisions but for a ring's chips (for Gaussians, mean log standard
    deviation) below which it is pulled back; None: no floor."""
    anchor: float = 0.0
    """Weight of the divergence from the weights that fine-tuning started from."""

    def __post_init__(self) -> None:
        _check_positive("ppo", self, "learning_rate", "clip", "gradient_norm")
        _check_least(
            "ppo", self, 0, "order_entropy", "placement_entropy", "decay_updates", "anchor"
        )
        _check_least("ppo", self, 1, "epochs")


PPO_ADDED = ("least_entropy", "anchor")
"""As `TrainConfig.added`, of `PPOConfig`."""


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
        for least, name in ((2, "batch"), (1, "first"), (0, "remembered")):
            _check_least("fine-tuning", self, least, name)
        _check_positive("fine-tuning", self, "widen")
        _check_top(self.top, "fine-tuning")


FINE_TUNING = {
    Objective.RING: FineTuneConfig(),
    Objective.MAKESPAN: FineTuneConfig(
        ppo=PPOConfig(learning_rate=3e-3, epochs=4), widen=1.0, remembered=8
    ),
}
"""By objective."""
FORM_FINE_TUNING = {
    "nodes": FineTuneConfig(
        batch=32, first=1, widen=1.0, top=0.3, ppo=PPOConfig(learning_rate=3e-3, epochs=2)
    )
}
"""Of makespan policies whose form is served by another one."""


def fine_tuning(objective: Objective, form: str) -> FineTuneConfig:
    """Return what serves a policy of an objective and, for makespan, of a form."""
    if objective is Objective.MAKESPAN:
        return FORM_FINE_TUNING.get(form, FINE_TUNING[objective])
    return FINE_TUNING[objective]


@dataclass(frozen=True)
class SearchConfig:
    """Searches that teach a critic; see `go_rl.train.critic.searches`."""

    samples: int = 256
    """Decisions drawn on each problem, in whole batches, at least one; 0: none, and no critic."""
    batch: int = 32
    """Decisions drawn at a time."""

    def __post_init__(self) -> None:
        _check_least("searches", self, 0, "samples")
        _check_least("searches", self, 2, "batch")

    @property
    def drawn(self) -> int:
        """Decisions that one search draws: whole batches."""
        return max(1, self.samples // self.batch) * self.batch


@dataclass(frozen=True)
class CriticConfig:
    """How the critic of a makespan policy learns from searches; see
    `go_rl.train.critic.learning`."""

    steps: int = 800
    """Updates."""
    problems: int = 32
    """Problems of each set of decisions in an update."""
    decisions: int = 48
    """Decisions of each problem in an update."""
    learning_rate: float = 2e-3
    """AdamW's first step."""
    weight_decay: float = 1e-3
    """AdamW's."""

    def __post_init__(self) -> None:
        _check_least("critic", self, 1, "steps", "problems", "decisions")
        _check_least("critic", self, 0, "weight_decay")
        _check_positive("critic", self, "learning_rate")


@dataclass(frozen=True)
class ImitationConfig:
    """How a policy of rings, or of the form ``dispatch``, learns from what searches found before
    PPO; see `go_rl.train.teachers` and `go_rl.train.ring_imitation.teachers`."""

    rounds: int = 2
    """Rounds; before each the policy looks for better decisions itself. 0: no imitation."""
    updates: int = 600
    """Gradient steps of a round."""
    problems: int = 4
    """Problems in each of them."""
    astray: float = 0.1
    """Rings: share of the units whose chip the next iteration sees wrongly, so that the policy
    learns the way back from its own mistakes."""
    samples: int = 128
    """Rings: plans of an untrained policy among which the first teacher is chosen."""
    each: int = 4
    """Dispatch: problems of each graph that are searched, drawn among all hardware and
    decisions."""
    rollouts: int = 256
    """Plans drawn on each problem before a round, dispatch in whole batches."""
    max_units: int = 1300
    """Larger problems do not teach: they cost too much."""
    learning_rate: float = 5e-3
    """AdamW's first step; it falls to a tenth in a round, along a cosine."""
    weight_decay: float = 0.03
    """AdamW's."""

    def __post_init__(self) -> None:
        _check_least("imitation", self, 0, "rounds", "updates")
        _check_least("imitation", self, 0, "rollouts", "weight_decay", "astray")
        _check_least("imitation", self, 1, "problems", "samples", "each", "max_units")
        _check_positive("imitation", self, "learning_rate")


RING_IMITATION = ImitationConfig(
    rounds=0, updates=250, problems=2, samples=64, rollouts=32, max_units=1279, weight_decay=0.01
)
"""What serves rings, where imitation is asked for."""
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
    added: ClassVar[tuple[str, ...]] = ("cost", "attempts")
    """Fields that older runs lack: left out of the text while they have their default, so that such
    runs can be resumed."""

    name: str
    """Name of the weights."""
    split: str = "train"
    """Split of the zoo that is trained on."""
    hardware: tuple[str, ...] = ()
    """Hardware, each as often as the others."""
    validation_hardware: tuple[str, ...] = ()
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
    attempts: int = 1
    """Training runs that were tried for these weights, this one included; only the card says it."""
    validate_every: int = 50
    """Updates between validations."""
    checkpoint_every: int = 50
    """Updates between checkpoints."""

    def __post_init__(self) -> None:
        whole = ("updates", "graphs", "max_nodes", "validate_every", "checkpoint_every", "attempts")
        _check_least("train", self, 1, *whole)
        _check_least("train", self, 0, "seed")
        for name in ("hardware", "validation_hardware"):
            if not getattr(self, name):
                raise TrainingError(f"train: {name} needs at least one entry")
        check_cost(self.cost)
        self.check_own_fields()

    @abstractmethod
    def check_own_fields(self) -> None:
        """Raise a `TrainingError` for a bad value of a field that only this objective has."""

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Samples drawn on each problem, by group of the objective's decoder."""

    @property
    def batches(self) -> int:
        """Batches drawn on each problem in an update, one after the other."""
        return 1

    @property
    @abstractmethod
    def teaching_share(self) -> float | None:
        """Share of a batch that teaches, as `Credit.top`."""

    def to_json(self) -> str:
        """Return the configuration as JSON text; see `added`."""
        default, values = TRAINING[self.objective](), asdict(self)
        for name in ADDED:
            if getattr(self.policy, name) == getattr(default.policy, name):
                del values["policy"][name]
        for name in self.added:
            if getattr(self, name) == getattr(default, name):
                del values[name]
        for name in PPO_ADDED:
            if getattr(self.ppo, name) == getattr(PPOConfig(), name):
                del values["ppo"][name]
        return json.dumps(values, indent=2)

    def wrote(self, text: str) -> bool:
        """Whether the JSON text of a run, of this version or an older one, is this one's."""
        try:
            return current_fields(json.loads(text)) == json.loads(self.to_json())
        except ValueError:
            return False


@dataclass(frozen=True)
class RingTrainConfig(TrainConfig):
    """Pretraining of a policy for rings."""

    objective = Objective.RING
    added = ("validation_hardware", "cost", "attempts", "imitation", "named_share")

    name: str = SHIPPED_NAMES[Objective.RING]
    """Name of the weights."""
    validation: str = "validation"
    """Split whose mean reward chooses the weights that are kept."""
    hardware: tuple[str, ...] = ("ring6", "ring16", "ring36")
    """Hardware, each as often as the others."""
    rules: tuple[str, ...] = ("strict", "strict", "strict", "default")
    """Rule sets, each as often as it is listed."""
    validation_hardware: tuple[str, ...] = ("ring16", "ring36")
    """Hardware of the validation problems, under strict rules."""
    named_share: float = 0.0
    """Share of the draws that go to the named problems of the zoo's side ``train``, where linear
    DP leaves something to win and memory is checked."""
    max_nodes: int = 1300
    """Larger graphs of the split are left out: their updates cost too much."""
    samples: SampleConfig = field(default_factory=lambda: SampleConfig(12, 4))
    """Samples drawn on each problem."""
    imitation: ImitationConfig = field(default_factory=lambda: RING_IMITATION)
    """What is learned from plans, before all updates; ``rounds`` 0: nothing. Later updates start
    from there."""
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
        if not 0 <= self.named_share <= 1:
            raise TrainingError(f"train: named_share must be 0 to 1, not {self.named_share}")
        if not self.rules:
            raise TrainingError("train: rules need at least one entry")

    @property
    def sizes(self) -> dict[str, int]:
        """Orders and placements."""
        return {"order": self.samples.orders, "placement": self.samples.placements}

    @property
    def teaching_share(self) -> None:
        """All samples teach, against a running baseline."""


@dataclass(frozen=True)
class MakespanTrainConfig(TrainConfig):
    """Pretraining of a policy for placement, schedule and fusion on connected devices."""

    objective = Objective.MAKESPAN
    added = ("cost", "imitation", "chained")

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
    hardware: tuple[str, ...] = ("p100x2", "p100x4", "p100x8")
    """Hardware, each as often as the others."""
    validation_hardware: tuple[str, ...] = ("p100x4",)
    """Hardware of the validation problems."""
    decide: tuple[tuple[str, ...], ...] = (
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
    chained: int = 1
    """Batches drawn on each problem in an update, one after the other; policies of the form
    ``nodes`` draw each from the best plan of those before it, as they do in a search."""
    top: float | None = None
    """Share of these that teach: the best; 1: all, against their mean. None: as `TOP` has it for
    the policy's form."""
    searches: SearchConfig = field(default_factory=SearchConfig)
    """What comes before. A critic judges graph-level decisions, so ``nodes`` have none."""
    critic: CriticConfig = field(default_factory=CriticConfig)
    """What the critic makes of the searches."""
    imitation: ImitationConfig = field(default_factory=ImitationConfig)
    """What a policy of the form ``dispatch`` learns from plans, before all updates."""
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
        _check_least("train", self, 2, "samples")
        _check_least("train", self, 1, "chained")
        _check_top(self.top, "train")
        if self.policy.form != "orders" and self.searches.samples:
            object.__setattr__(self, "searches", replace(self.searches, samples=0))
        if not 0 <= self.further_share <= 1:
            raise TrainingError(f"train: further_share must be 0 to 1, not {self.further_share}")
        if not self.decide:
            raise TrainingError("train: decide needs at least one entry")
        for names in self.decide:
            decision_names(names, error=TrainingError)

    @property
    def sizes(self) -> dict[str, int]:
        """Plans."""
        return {"plan": self.samples}

    @property
    def batches(self) -> int:
        """See `chained`."""
        return self.chained

    @property
    def teaching_share(self) -> float | None:
        """As configured."""
        return self.top


TRAINING: dict[Objective, Callable[[], TrainConfig]] = {
    Objective.RING: RingTrainConfig,
    Objective.MAKESPAN: MakespanTrainConfig,
}
"""Configuration of pretraining by objective."""


def current_fields(document: Any) -> Any:
    """Return the JSON document of a run with the names that its fields have today."""
    return current_names(document, RENAMED)
