"""`TrainConfig`: one pretraining run, for each policy."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from go_rl.core import DECISIONS, RULE_SETS, CheckpointError, TrainingError, decision_names
from go_rl.core.config_checks import (
    COUNT,
    NOT_NEGATIVE,
    PART,
    SEED,
    SHARE,
    Range,
    check_ranges,
    check_tuples,
)
from go_rl.core.errors import nearest
from go_rl.core.files.strict_json import parse_json
from go_rl.costs.models.registry import check_cost
from go_rl.graphs.cutting.colocation import check_colocation
from go_rl.graphs.zoo.index import TRAINED
from go_rl.policy.config import (
    SHIPPED_CHIPS,
    NodesPolicyConfig,
    PolicyConfig,
    RingPolicyConfig,
    check_solver_mode,
)
from go_rl.policy.learn.config.learner import PPOConfig

CONFIG_FILE = "config.json"
"""Configuration of a run, in its folder."""
NETWORK = "network"
"""Field of a configuration's JSON with the name of its policy."""
CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints, in that of the run."""
WEIGHTS_FILE = "weights.npz"
"""The best weights so far, in the folder of the run."""
WORKERS = ("local", "ray")
"""Workers that solve and price samples."""
GO_GRAPHS = (
    "rnnlm-2-layers", "rnnlm-4-layers", "rnnlm-8-layers", "gnmt-2-layers", "gnmt-4-layers",
    "transformer-xl-2-layers", "transformer-xl-4-layers", "transformer-xl-8-layers",
    "inception-v3-b32", "amoebanet-d-6-192", "wavenet-2x18", "wavenet-4x36",
)  # fmt: skip
"""Graphs of the six families of GO."""


@dataclass(frozen=True)
class RunConfig(ABC):
    """Abstract: what the pretraining of every policy has; the same configuration and machine give
    the same weights."""

    kind: ClassVar[str]
    """Policy that is trained: ring, orders, nodes or dispatch."""

    name: str
    """Name of the weights."""
    updates: int
    """Updates of the weights; a run may go on to more."""
    graphs: tuple[str, ...] = ()
    """Own models instead of the zoo's: files that go-rl graph reads, .npz graphs, folders of such.
    They teach and validate."""
    max_nodes: int = 2500
    """Larger graphs are left out of updates and validation: they cost too much."""
    policy: PolicyConfig = field(default_factory=RingPolicyConfig)
    """Network."""
    seed: int = 0
    """Random seed."""
    attempts: int = 1
    """Training runs that were tried for these weights, this one included; only the card says it."""

    def __post_init__(self) -> None:
        check_tuples(self, "train", TrainingError)
        check_ranges(self, "train", TrainingError, seed=SEED, attempts=COUNT, max_nodes=COUNT)

    def to_json(self) -> str:
        """Return the configuration as JSON text, the name of its policy first."""
        return json.dumps({NETWORK: self.kind, **asdict(self)}, indent=2)

    def check_goes_on(self, folder: Path, text: str, recorded: Path) -> None:
        """Check that a run in a folder, of which ``text`` is the configuration as JSON, as
        ``recorded`` in a file, may go on with this one.

        Raises:
            CheckpointError: the text is damaged, or more than ``updates`` differs.
        """
        try:
            parse_json(text)
        except ValueError as error:
            raise CheckpointError(
                f"{recorded}: is damaged ({error}); restore it, or start in an empty folder"
            ) from error
        if differing := self.differing(text):
            raise CheckpointError(
                f"{folder}: was made with another configuration: {differing}; resume with the same "
                "one (only updates may grow), or start in an empty folder"
            )

    def differing(self, text: str) -> str:
        """Return the fields in which the JSON text of a run differs from this one, as the end of a
        sentence; empty where it does not. A run goes on to more ``updates``, so these may."""
        try:
            # Older runs have not recorded their network.
            theirs = {NETWORK: self.kind} | _fields(json.loads(text))
            mine = _fields(json.loads(self.to_json()))
        except ValueError:
            return "its configuration is damaged"
        if theirs[NETWORK] != self.kind:  # hardly a field is the same
            theirs, mine = ({NETWORK: each[NETWORK]} for each in (theirs, mine))
        return ", ".join(
            f"{name} was {theirs.get(name)!r} and is {mine.get(name)!r}"
            for name in sorted({*theirs, *mine} - {"updates"})
            if theirs.get(name) != mine.get(name)
        )


@dataclass(frozen=True)
class TrainConfig(RunConfig, ABC):
    """Abstract: one pretraining run by PPO."""

    split: str = "train"
    """Split of the zoo that is trained on."""
    hardware: tuple[str, ...] = ()
    """Hardware, each as often as the others."""
    validation_hardware: tuple[str, ...] = ()
    """Hardware of the validation problems."""
    cost: str = "analytical"
    """Cost model: auto, analytical, profiled, learned[:gpus|NAME|FILE], measured:DIR or
    stages:FILE (docs/costs.md)."""
    updates: int = 600
    """Updates of the weights by PPO."""
    problems: int = 6
    """Problems in each update."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    """The learner."""
    validate_every: int = 50
    """Updates between validations."""
    checkpoint_every: int = 50
    """Updates between checkpoints."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(
            self, "train", TrainingError, problems=COUNT, validate_every=COUNT,
            checkpoint_every=COUNT, updates=COUNT,
        )  # fmt: skip
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
    @abstractmethod
    def batches(self) -> int:
        """Batches drawn on each problem in an update, one after the other."""

    @property
    @abstractmethod
    def teaching_share(self) -> float | None:
        """Share of a batch that teaches, as `Credit.top`."""


def _fields(document: Any, prefix: str = "") -> dict[str, Any]:
    """The fields of a JSON object by their dotted names, those of its parts included."""
    if not isinstance(document, dict):
        return {prefix: document}
    found: dict[str, Any] = {}
    for name, value in document.items():
        found |= _fields(value, f"{prefix}.{name}" if prefix else name)
    return found


@dataclass(frozen=True)
class RingTrainConfig(TrainConfig):
    """Pretraining of a policy that draws chips on rings, by default as published."""

    kind = "ring"

    name: str = SHIPPED_CHIPS
    """Name of the weights."""
    validation: str = "validation"
    """Split whose best and mean reward choose the weights that are kept."""
    hardware: tuple[str, ...] = ("ring36",)
    """Hardware, each as often as the others."""
    rules: tuple[str, ...] = ("strict",)
    """Rule sets, each as often as it is listed."""
    validation_hardware: tuple[str, ...] = ("ring36",)
    """Hardware of the validation problems, under strict rules."""
    max_nodes: int = 1300
    """Larger graphs of the split are left out: their updates cost too much."""
    updates: int = 250
    """Updates of the weights by PPO."""
    problems: int = 4
    """Problems in each update."""
    samples: int = 20
    """Placements drawn on each problem."""
    solver: str = "sample-nodes"
    """How placements go through the solver: sample, fix, sample-nodes, fix-nodes or none."""
    ppo: PPOConfig = field(
        default_factory=lambda: PPOConfig(learning_rate=6e-4, epochs=4, decay_updates=250)
    )
    """The learner."""
    validate_every: int = 25
    """Updates between validations."""
    checkpoint_every: int = 10
    """Updates between checkpoints."""
    policy: RingPolicyConfig = field(default_factory=RingPolicyConfig)
    """Network."""

    def check_own_fields(self) -> None:
        """Check the fields of this policy's configuration."""
        check_ranges(self, "train", TrainingError, samples=Range(2))
        check_solver_mode(self.solver, TrainingError)
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
        """Placements."""
        return {"placement": self.samples}

    @property
    def batches(self) -> int:
        """One batch a problem."""
        return 1

    @property
    def teaching_share(self) -> None:
        """All samples teach, against a running baseline."""


@dataclass(frozen=True)
class NodesTrainConfig(TrainConfig):
    """Pretraining of a node policy, for placement, schedule and fusion on connected devices."""

    kind = "nodes"

    name: str = "nodes"
    """Name of the weights."""
    split: str = "train"
    """Split of the zoo that is trained on: inference graphs only."""
    further: tuple[str, ...] = tuple(f"{name}-training" for name in (*GO_GRAPHS, *TRAINED))
    """Training graphs that are trained on as well."""
    further_share: float = 0.8
    """Share of the draws that go to these."""
    generated: int = 0
    """Generated graphs (``go-rl zoo generate``) that are trained on instead of the zoo's, of seeds
    0 to this; other seeds and the zoo's validation families choose the weights. 0: none."""
    traced: str | None = None
    """Folder of the generated graphs, traced once, which runs may share; None: in that of the
    run."""
    colocate: str = "graph"
    """Operators that must share a device: graph (none but in own models), gradients (each gradient
    with its operator, each update with its weight) or none."""
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
    """Updates of the weights by PPO."""
    samples: int = 20
    """Plans drawn on each problem."""
    top: float | None = 1.0
    """Share of the samples that teach: the best; 1: all, against their mean; None: all, against a
    running baseline of the graph, as in GO."""
    chained: int = 1
    """Batches drawn on each problem in an update, one after the other, each from the best plan of
    those before it, as in a search."""
    policy: NodesPolicyConfig = field(default_factory=NodesPolicyConfig)
    """Network."""
    ppo: PPOConfig = field(
        default_factory=lambda: PPOConfig(
            learning_rate=5e-4, epochs=2, entropy=5e-3, decay_updates=160
        )
    )
    """The learner."""
    validate_every: int = 20
    """Updates between validations."""
    checkpoint_every: int = 20
    """Updates between checkpoints."""

    def check_own_fields(self) -> None:
        """Check the fields of this policy's configuration."""
        check_ranges(
            self, "train", TrainingError, samples=Range(2), chained=COUNT, top=PART,
            generated=NOT_NEGATIVE, further_share=SHARE,
        )  # fmt: skip
        check_colocation(self.colocate)
        if self.generated:
            self._check_generated()
        elif self.traced is not None:
            raise TrainingError(
                "train: traced is the folder of generated graphs; give generated as well, or "
                "leave traced out"
            )
        if not self.decide:
            raise TrainingError("train: decide needs at least one entry")
        for names in self.decide:
            decision_names(names, error=TrainingError)

    def _check_generated(self) -> None:
        """Fields that generated graphs leave without a meaning stay as they are."""
        defaults = {each.name: each.default for each in fields(self)}
        for name in ("graphs", "split", "further", "further_share", "validation"):
            if getattr(self, name) != defaults[name]:
                raise TrainingError(
                    f"train: {name} has no meaning beside generated {self.generated}: generated "
                    "graphs take the place of all others; leave one of the two out"
                )

    @property
    def sizes(self) -> dict[str, int]:
        """Plans of a batch."""
        return {"plan": self.samples}

    @property
    def teaching_share(self) -> float | None:
        """Share of teaching as configured."""
        return self.top

    @property
    def batches(self) -> int:
        return self.chained
