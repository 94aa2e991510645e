"""Configuration of tuning, without anything else, so that a command line reads it quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from go_rl.core import GoRLError
from go_rl.core.config_checks import COUNT, FINITE_POSITIVE, PART, SEED, Range, check_ranges
from go_rl.core.errors import nearest
from go_rl.core.hardware.processor import own_target
from go_rl.costs.timing.config import ADAPTIVE_VISITS, FEW_VISITS, CollectConfig, TimingConfig

GuideName = Literal["learned", "analytical", "random", "everything"]
ProgramGuideName = Literal["xgboost", "cdmpp", "code-trees", "transfer"]
TREES = "xgboost"
"""Guide of programs that learns from trials alone."""
FirstRound = Literal["slowest", "declared"]
"""Order of each operator's first slot: most seconds in the network first, or as declared."""
LEARNED = "learned"
ROUNDS, GUIDED = "rounds", "guided"
"""Scheduler and inner tuner of kernels by default."""
CANDIDATE_TIMING = replace(FEW_VISITS, seconds=4e-3, most_calls=20, visits=3)
"""Timing of a candidate while tuning."""
CHECK_PATIENCE = 10
"""Time of a network at the end over that of a candidate, where it has visits left."""


class TuningError(GoRLError):
    """A model cannot be tuned here, or the configuration of tuning is wrong."""


@dataclass(frozen=True)
class TuneConfig:
    """Configuration of the tuning of kernels: time, guide, scheduler and inner tuner."""

    minutes: float = 5.0
    """Wall-clock time of tuning: search, predictions, compilations and measurements; those of
    earlier runs in the same folder count as if they were made again."""
    guide: GuideName = LEARNED
    """Order of candidates: predictions of the learned or of the analytical cost model, chance, or
    none: everything is measured as it comes."""
    cost: str = LEARNED
    """Weights of the learned guide: ``learned``, those that ship for the target, or
    ``learned:NAME`` or ``learned:FILE.npz``, a file of go-rl train kernels or go-rl calibrate."""
    ranks: str = ""
    """Ranks of settings under the learned guide: a file of go-rl train flags, or a name; default:
    the ranks that ship for the weights' target."""
    target: str = field(default_factory=own_target)
    """Name of this machine, with one core, in the records; by default its processor's."""
    core: int | None = None
    """Core of the worker that measures; default: the last one of this process."""
    k_graph: int = 10
    """Fusions that are measured in a round, the first ones by the guide."""
    k_kernel: int = 5
    """Settings of flags that are measured of each kernel, the first ones by the guide."""
    candidates: int = 64
    """Fusions that the guide orders at a time."""
    scheduler: str = ROUNDS
    """Scheduler that gives the next time slot to the fusion or to a kernel.
    rounds: the fusion, then the slowest kernels one after the other, and anew
    any other: a scheduler of tune programs
    """
    belief: str = "log-power"
    """Belief that predicts gains, for schedulers that predict; see tune programs."""
    tuner: str = GUIDED
    """Inner tuner that proposes fusions and settings.
    guided: the guide puts them in order
    any other: an inner tuner of tune programs, without a guide
    """
    trials: int | None = None
    """Fusions and settings measured in all, at most; None: as many as the minutes allow."""
    seed: int = 0
    """Random seed."""
    check_rounds: int = 1
    """Times that the winner and XLA's default are measured again, alternately, at the end."""
    timeout: float = 30.0
    """Seconds that a kernel may take, compilation included."""
    timing: TimingConfig = FEW_VISITS

    def __post_init__(self) -> None:
        check_ranges(
            self, "tune", TuningError, minutes=FINITE_POSITIVE, k_graph=COUNT, k_kernel=COUNT,
            candidates=COUNT, check_rounds=COUNT, trials=COUNT, seed=SEED,
        )  # fmt: skip
        word, _, file = self.cost.partition(":")
        if word != LEARNED or (":" in self.cost and not file):
            raise TuningError(f"tune: cost must be learned or learned:FILE.npz, not {self.cost!r}")
        self.measuring  # noqa: B018 - target, core and time-out are checked there

    @property
    def weights(self) -> str:
        """Name or file of the learned guide's weights; empty: those that ship for the target."""
        return self.cost.partition(":")[2]

    @property
    def measuring(self) -> CollectConfig:
        """Configuration of the measurement of a single kernel."""
        return CollectConfig(
            target=self.target, core=self.core, timeout=self.timeout, timing=self.timing
        )


@dataclass(frozen=True)
class TuneProgramsConfig:
    """Configuration of the tuning of a network's operators through TVM."""

    minutes: float = 20.0
    """Minutes of tuning in all: those of earlier runs in the same folder count."""
    scheduler: str = "dynatune-relative"
    """Scheduler that gives the next time slot to an operator.
    dynatune: greatest predicted gain, few slots favoured, as published
    dynatune-relative: the same, favoured in proportion to the network's latency
    epsilon-greedy: greatest predicted gain or, rarely, any
    softmax: at random, by predicted gain
    ansor: Ansor's gradient
    dynamic-random: at random, finished operators left out
    dynamic-round-robin: in turn, finished ones left out
    random: at random
    round-robin: in turn
    linear: in proportion to FLOP
    sequential: one until it is finished, then the next
    rounds: the slowest ones, 90 % of the time, each until it is finished
    """
    first_round: FirstRound = "slowest"
    """Order of each operator's first slot, for schedulers that leave out finished operators.
    slowest: most seconds in the network first
    declared: the network's order
    """
    belief: str = "transfer"
    """Belief that predicts gains, for the first four schedulers.
    log-power: a / (1 + (x / e^b)^-c), sampled by emcee
    pow2: a x^b, sampled
    pow4: c - (a x + b)^-d, sampled
    log-linear: a ln x + b, sampled
    log-log-linear: ln(a ln x + b), sampled
    transfer: what recorded curves of other networks did
    """
    tuner: str = "annealing"
    """Inner tuner that proposes an operator's next candidates.
    annealing: simulated annealing over boosted trees
    evolution: evolutionary search over boosted trees
    chameleon: reinforcement learning, adaptive sampling
    random: candidates drawn at random
    """
    guide: ProgramGuideName = TREES
    """Cost model that ranks candidates for the inner tuner.
    xgboost: boosted trees that learn from the trials of the operator alone
    cdmpp: CDMPP's network, fine-tuned on the trials of all operators
    code-trees: boosted trees on the code of loops, continued on them
    transfer: the transfer tuner, its attention head fine-tuned on them
    """
    weights: str = ""
    """Weights of the guide, by name or as a file of go-rl train programs. Default: those of go-rl
    calibrate --programs; of transfer those that ship."""
    adaptive: bool = False
    """AdaTune's number of measurements, whoever proposes: two visits to a candidate whose times
    agree within 2 %, up to eight to others."""
    only_heavy: float = 1.0
    """Share of the network's FLOP: the fewest operators that make it up are tuned, each of the
    others gets one batch of candidates like theirs, chosen by the transfer tuner's attention."""
    trials: int | None = None
    """Candidates measured in all, at most; None: as many as the minutes allow."""
    target: str = ""
    """Level of x86-64 that code is generated for, such as x86-64-v3; default: the highest that this
    processor runs."""
    cores: int = 1
    """Cores that the compiled network runs on, and that its candidates are tuned for and measured
    on: the last ones of this process."""
    batch: int = 8
    """Candidates of one operator that are measured together."""
    core: int | None = None
    """Core of the worker that measures on one; default: the last one of this process."""
    workers: str = ""
    """Workers that measure candidates: ``ray``, a Ray cluster on this machine, or the address of a
    running one; default: one process here."""
    seed: int = 0
    """Random seed."""
    timeout: float = 20.0
    """Seconds that building or timing a candidate may take."""
    memory: float = 8e9
    """Bytes that the worker's process may address."""
    timing: TimingConfig = CANDIDATE_TIMING
    """Timing rule of a candidate."""
    check_visits: int = 16
    """Visits of the tuned and the untuned network, in turn, at the end."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "tune", TuningError, minutes=FINITE_POSITIVE, trials=COUNT, only_heavy=PART,
            batch=COUNT, check_visits=COUNT, seed=SEED, memory=Range(1e9), cores=COUNT,
        )  # fmt: skip
        if self.weights and self.guide == TREES:
            raise TuningError("tune: weights are of the guides cdmpp, code-trees and transfer")
        if self.cores > 1 and (self.core is not None or self.workers):
            raise TuningError(
                "tune: several cores are the last ones of this process: leave out --core and "
                "--workers"
            )
        self.measuring("here")  # core and time-out are checked there

    @property
    def candidate_timing(self) -> TimingConfig:
        """Timing rule of a candidate, `adaptive` taken into account."""
        if not self.adaptive:
            return self.timing
        return replace(
            self.timing, visits=ADAPTIVE_VISITS.visits, variation=ADAPTIVE_VISITS.variation
        )

    @property
    def check_timing(self) -> TimingConfig:
        """Timing rule of a whole network."""
        patience = CHECK_PATIENCE * self.timing.patience
        return replace(self.timing, visits=self.check_visits, patience=patience)

    def measuring(self, target: str, timing: TimingConfig | None = None) -> CollectConfig:
        """Return the configuration of measurements on a target of the records."""
        return CollectConfig(
            target=target, core=self.core, timeout=self.timeout,
            timing=timing or self.candidate_timing,
        )  # fmt: skip


TuningConfig = TuneConfig | TuneProgramsConfig
"""Configuration of either tuning command."""


def check_name(what: str, name: str, names: Sequence[str]) -> None:
    """Raise a `TuningError` that lists the names unless a name is one of them.

    Args:
        what: is named, such as ``scheduler``.
        name: of it.
        names: that there are.
    """
    if name not in names:
        known = ", ".join(names)
        raise TuningError(f"unknown {what} {name!r}{nearest(name, names)} There are {known}")
