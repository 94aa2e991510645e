"""`CodeTrees`, `MachineTrees`: boosted trees on what the compiler makes of a program, for the least
relative error.

Needs LightGBM, an optional extra: ``pip install 'go_rl[trees]'``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from go_rl.core import TrainingError
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.learning.splits import by_task
from go_rl.costs.programs.features import FEATURE_VERSION
from go_rl.costs.programs.learn.code_inputs import (
    MACHINE_TREE_NAMES,
    TREE_NAMES,
    code_tree_features,
    machine_tree_features,
    with_code,
)
from go_rl.costs.programs.learn.examples import (
    ProgramExamples,
    ProgramInputs,
    with_machine_code,
)
from go_rl.costs.programs.learn.predictor import MARGIN, TAILS, ProgramPredictions
from go_rl.costs.programs.learn.reading import join_examples
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels
from go_rl.runtime.saved_model import SavedKind

CONFIG = BoostedConfig(trees=600, learning_rate=0.05, column_share=0.2)
LINEAR = BoostedConfig(trees=1200, learning_rate=0.06, column_share=0.3, ridge=100.0)
MORE = replace(CONFIG, trees=60)
"""Trees that fine-tuning adds."""
COARSE = 5
"""Trees that compare the speeds of two processors are fewer by this factor."""
FACTORS = np.exp(np.linspace(-0.5, 0.1, 61))
"""Factors by which predictions may be multiplied."""
UNJUDGED = (-1.0, 1.0)
"""Bounds of logarithmic errors where there were too few tasks to judge."""
CLOCK = 1e9
"""Cycles in a second by which bounds count; what the core really has is learned."""
SMALL, FEWEST = 1e-6, 5
"""Seconds of the bound below which a program with parallel loops hardly takes longer than entering
these; so many programs tell how long that is."""
USUAL_CLOCK = 3e9
"""Cycles in a second of most cores, by which these small programs are taken to compute."""
LAUNCHES = np.linspace(0.0, 2e-5, 201)
"""Seconds that entering a parallel loop may take."""
LEAST_REST = 0.05
"""Share of a program's seconds that is left for trees, however long its parallel loops take to
enter."""
TREES, RANGE = "trees", "range"
ANY = ""
"""Stands for every processor that is not named."""


@dataclass(frozen=True, eq=False)
class ProgramTrees(Predictor[ProgramExamples, ProgramInputs]):
    """Abstract: trees that learned the logarithm of the seconds, or by what factor a program is
    slower than a bound of its cycles. A kind of them says what `features` are, and which one is the
    bound: it carries the size of a program beyond the sizes learned, which trees alone do not.

    Where there is a bound, entering parallel loops is told apart: TVM wakes its threads for each,
    also where there is one alone, which takes 2 to 6 µs by processor and operating system, and has
    nothing to do with how fast its loops are. Trees learn the rest of the seconds; a program counts
    by the share that is left.

    The mean of logarithms is a median of seconds; the least mean *percentage* error wants less, as
    a program predicted too slow by a factor counts more than one predicted too fast by it. The
    factor is the best one on a fifth of the tasks, by trees that learned the others; so is the
    interval.
    """

    trees: BoostedTrees | None
    factor: float = 1.0
    """Factor by which the seconds learned from were multiplied."""
    errors: tuple[float, float] = UNJUDGED
    """Logarithms of measured over predicted seconds: the quantiles `TAILS` on tasks that were not
    learned from."""
    least: Float32[np.ndarray, "F"] | None = None
    most: Float32[np.ndarray, "F"] | None = None
    """[F] range of features beyond which a program is unlike, `MARGIN` deviations wider than that
    learned from; None: nothing is."""
    data: tuple[str, ...] = ()
    """Data sets that ship, by name, where these are all that was learned: `for_processor` learns
    them again."""
    slower: Mapping[str, float] = field(default_factory=dict)
    """By what factor the processor whose seconds were learned is slower than others, by the name of
    these: programs on those are predicted faster by it."""
    launch: Mapping[str, float] = field(default_factory=dict)
    """Seconds that entering a parallel loop takes, by the name of the processor; `ANY` is for those
    that are not named."""
    devices: tuple[str, ...] = ()
    """Processors whose seconds are known, by name; (): they are not told. Programs on another are
    predicted as on the last one learned (`MeanOfProcessors` is an alternative)."""

    what = "trees of programs"
    unit = "seconds"
    format: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    """Names of the columns of `features`."""
    bound: ClassVar[str] = ""
    """Column of the cycles that a program takes at least, log2(x + 1); "": there is none."""
    config: ClassVar[BoostedConfig] = CONFIG
    """Configuration by which trees are grown by default."""

    def __post_init__(self) -> None:
        self.check_fitted(self.trees is not None)

    @staticmethod
    def readable(examples: ProgramExamples) -> ProgramExamples:
        """Return the examples of which `features` can be read."""
        return examples

    @staticmethod
    @abstractmethod
    def features(inputs: ProgramInputs) -> Float32[np.ndarray, "P F"]:
        """Return one row for each program."""

    @classmethod
    def fit(
        cls, examples: ProgramExamples, config: BoostedConfig | None = None, factor: bool = True
    ) -> ProgramTrees:
        """Return trees that learned from examples; see `Predictor`. Where these are of several
        processors they learn the last one's seconds (`as_last_device`).

        Args:
            examples: with loop nests.
            config: of the trees.
            factor: whether predictions are made smaller for the least percentage error.
        """
        config, examples = config or cls.config, _described(examples)
        devices = _devices(examples.inputs)
        launch = cls._launch_seconds(examples)
        examples, slower = cls.as_last_device(examples, launch, config)
        launched = _launched(examples.inputs, launch, slower)
        found = cls._fitted(examples, launched, config, factor)
        return replace(found, slower=slower, launch=launch, devices=devices)

    @classmethod
    def _fitted(
        cls,
        examples: ProgramExamples,
        launched: Float64[np.ndarray, "P"],
        config: BoostedConfig,
        factor: bool = True,
    ) -> ProgramTrees:
        """Trees that learned from examples as they are, but for [P] seconds of entering parallel
        loops."""
        features = cls.features(examples.inputs)
        known = cls._learnable(features, examples.seconds, launched)
        judged, told = held_out(known, examples.inputs.task, config)
        told = told * cls._least_seconds(features[judged])
        waits, seconds = launched[judged], examples.seconds[judged]
        by = best_factor(told, waits, seconds) if factor else 1.0
        known = replace(known, seconds=by * known.seconds)
        errors = np.log(seconds / (by * told + waits))
        return cls(BoostedTrees.fit(known, config), by, error_bounds(errors), *_range(features))

    def fine_tuned(
        self,
        examples: ProgramExamples,
        config: BoostedConfig | None = None,
        judged: ProgramExamples | None = None,
    ) -> ProgramTrees:
        """Return the trees and more, which learned what these miss on other examples; the factor
        stays.

        Args:
            examples: with loop nests.
            config: of the trees that are added; None: `MORE`.
            judged: examples whose errors give the interval; None: it stays.
        """
        _, launch = self._compared(examples)
        launched = launch * examples.inputs.launches
        known = self._learnable(self.features(examples.inputs), examples.seconds, launched)
        known = replace(known, seconds=self.factor * known.seconds)
        more = self._trees.continued(known, config or MORE)
        tuned = replace(
            self, trees=more, data=(), slower={}, launch={ANY: launch},
            devices=_devices(examples.inputs),
        )  # fmt: skip
        if self.least is not None and self.most is not None:
            least, most = _range(known.features)
            least, most = np.fmin(least, self.least), np.fmax(most, self.most)
            tuned = replace(tuned, least=least, most=most)
        return tuned if judged is None else tuned._judged(judged)

    def for_processor(
        self,
        source: ProgramExamples,
        examples: ProgramExamples,
        judged: ProgramExamples | None = None,
    ) -> ProgramTrees:
        """Return trees of another processor: they learn its few examples together with all that
        these trees learned, whose seconds are multiplied by how much slower it is.

        Args:
            source: what these trees learned.
            examples: of the other processor.
            judged: examples whose errors give the interval; None: tasks held out do.
        """
        examples = _described(examples)
        slower, launch = self._compared(examples)
        slower *= self.factor
        source = _described(self.readable(source))
        theirs = self._launch_seconds(source)
        source, factors = self.as_last_device(source, theirs, self.config)
        both = join_examples([replace(source, seconds=slower * source.seconds), examples])
        own = {each.device for each in examples.inputs.targets}
        scales = {each.device: slower * factors.get(each.device, 1.0)
                  for each in source.inputs.targets}  # fmt: skip
        launched = _launched(
            both.inputs, theirs | dict.fromkeys(own, launch), scales | dict.fromkeys(own, 1.0)
        )
        found = self._fitted(both, launched, self.config)
        found = replace(found, launch={ANY: launch}, devices=_devices(examples.inputs))
        return found if judged is None else found._judged(judged)

    def _compared(self, examples: ProgramExamples) -> tuple[float, float]:
        """By what factor the processor of examples is slower than the one learned, and the seconds
        of entering a parallel loop there: told by small programs, or where these are too few those
        that explain all seconds best."""
        rest = self._seconds(self.features(examples.inputs))
        launches, seconds = examples.inputs.launches, examples.seconds
        found: list[tuple[float, float, float]] = []
        told = self._launch_seconds(examples).get(ANY, 0.0)
        for launch in LAUNCHES.tolist() if self.bound and not told else [told]:
            slower = float(np.median((seconds - launch * launches) / rest))
            if slower > 0:
                error = np.abs(np.log((slower * rest + launch * launches) / seconds)).mean()
                found.append((float(error), slower, launch))
        return min(found)[1:]

    @classmethod
    def as_last_device(
        cls, examples: ProgramExamples, launch: Mapping[str, float], config: BoostedConfig
    ) -> tuple[ProgramExamples, dict[str, float]]:
        """Return examples as if all were of the last of their devices, and by what factor it is
        slower than each of the others: the median over its programs by a few trees of the others,
        whose seconds are multiplied by it; ``launch``: see `ProgramTrees.launch`."""
        others, own = device_apart(examples)
        if not len(others.seconds):
            return examples, {}
        name = _last_device(others.inputs)
        others, factors = cls.as_last_device(others, launch, config)
        few = replace(config, trees=max(config.trees // COARSE, 1))
        waits = _launched(others.inputs, launch, factors)
        known = cls._learnable(cls.features(others.inputs), others.seconds, waits)
        coarse = cls(BoostedTrees.fit(known, few))
        waits = _launched(own.inputs, launch, {})
        ratios = (own.seconds - waits) / coarse._seconds(cls.features(own.inputs))
        slower = float(np.median(ratios[_mostly_computing(own.seconds, waits)]))
        both = join_examples([replace(others, seconds=slower * others.seconds), own])
        return both, {name: slower, **{other: slower * by for other, by in factors.items()}}

    @classmethod
    def _launch_seconds(cls, examples: ProgramExamples) -> dict[str, float]:
        """Seconds that entering a parallel loop takes on each device of examples, told by their
        smallest programs; 0 where these are too few. `ANY`: as on the last."""
        if not cls.bound:
            return {}
        inputs = examples.inputs
        bound = cls._least_seconds(cls.features(inputs))
        device = np.array([each.device for each in inputs.targets])[inputs.target]
        told: dict[str, float] = {}
        for name in np.unique(device).tolist():
            mine = (bound < SMALL) & (device == name) & (inputs.launches > 0)
            waits = examples.seconds[mine] - CLOCK / USUAL_CLOCK * bound[mine]
            each = np.maximum(waits, 0.0) / inputs.launches[mine]
            told[name] = float(np.median(each)) if len(each) >= FEWEST else 0.0
        return told | {ANY: told[_last_device(inputs)]}

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] predictions."""
        return self._told(inputs, self.features(inputs))

    def interval(self, inputs: ProgramInputs) -> ProgramPredictions:
        """Return predictions, bounds by errors on other tasks, and flags."""
        features = self.features(inputs)
        seconds = self._told(inputs, features)
        low, high = np.exp(self.errors)
        return ProgramPredictions(
            seconds, low * seconds, high * seconds, np.zeros_like(seconds), self._outside(features)
        )

    def knows(self, leaves: int) -> bool:
        """Return True: trees read sums over any number of leaves."""
        return leaves > 0

    def save(self, path: Path) -> None:
        """Write the trees, in LightGBM's own text, and what is beside them to a file."""
        text = np.frombuffer(self._trees.text.encode(), np.uint8)
        known = self.least is not None and self.most is not None
        tree = {TREES: text} | ({RANGE: {"least": self.least, "most": self.most}} if known else {})
        about = {
            "factor": self.factor, "errors": list(self.errors), "data": list(self.data),
            "slower": dict(self.slower), "launch": dict(self.launch),
            "devices": list(self.devices),
        }  # fmt: skip
        self._kind().write(path, tree, about)

    @classmethod
    def load(cls, source: str | Path) -> ProgramTrees:
        """Read a saved file, by path."""
        with cls._kind().opened(source) as saved:
            trees = BoostedTrees.from_text(saved.arrays[TREES].tobytes().decode())
            low, high = saved.manifest["errors"]
            least, most = (saved.arrays.get(f"{RANGE}/{name}") for name in ("least", "most"))
            data = tuple(map(str, saved.manifest["data"]))
            slower, launch = (
                {str(name): float(by) for name, by in saved.manifest[which].items()}
                for which in ("slower", "launch")
            )
            factor = float(saved.manifest["factor"])
            devices = devices_told(saved.manifest)
            return cls(trees, factor, (low, high), least, most, data, slower, launch, devices)

    @property
    def _trees(self) -> BoostedTrees:
        assert self.trees is not None  # `check_fitted`
        return self.trees

    def _judged(self, examples: ProgramExamples) -> ProgramTrees:
        """These trees, with an interval by their errors on examples."""
        errors = np.log(examples.seconds / self.predict(examples.inputs))
        return replace(self, errors=error_bounds(errors))

    def _told(
        self, inputs: ProgramInputs, features: Float32[np.ndarray, "P F"]
    ) -> Float64[np.ndarray, "P"]:
        """[P] seconds of programs on their processors."""
        seconds = self._seconds(features) / _by_device(inputs, self.slower, 1.0)
        return seconds + _launched(inputs, self.launch, {})

    def _seconds(self, features: Float32[np.ndarray, "P F"]) -> Float64[np.ndarray, "P"]:
        """[P] seconds on the processor learned, parallel loops having been entered."""
        if self.least is None or self.most is None:
            factors = self._trees.predict(features)
        else:
            factors = self._trees.predict(_within(features, self.least, self.most))
        return factors * self._least_seconds(features)

    @classmethod
    def _least_seconds(cls, features: Float32[np.ndarray, "P F"]) -> Float64[np.ndarray, "P"]:
        """[P] seconds of the bound; without one, 1."""
        if not cls.bound:
            return np.ones(len(features))
        return np.exp2(features[:, cls.names.index(cls.bound)].astype(np.float64)) / CLOCK

    @classmethod
    def _learnable(
        cls,
        features: Float32[np.ndarray, "P F"],
        seconds: Float64[np.ndarray, "P"],
        launched: Float64[np.ndarray, "P"],
    ) -> SummedKernels:
        """Return programs as trees learn them: seconds that entering parallel loops leaves,
        relative to those of the bound; an error in these counts by their share of all."""
        share = np.maximum(1.0 - launched / seconds, LEAST_REST)
        return SummedKernels(features, share * seconds / cls._least_seconds(features), share**2)

    def _outside(self, features: Float32[np.ndarray, "P F"]) -> Bool[np.ndarray, "P"]:
        if self.least is None or self.most is None:
            return np.zeros(len(features), np.bool_)
        strange = (features < self.least) | (features > self.most)
        return np.asarray(strange.any(axis=1))

    @classmethod
    def _kind(cls) -> SavedKind:
        versions = {
            "version": 2, "features": FEATURE_VERSION, "columns": list(cls.names),
            "bound": cls.bound,
        }  # fmt: skip
        return SavedKind(cls.format, cls.what, versions, "retrain (go-rl train programs)")


@dataclass(frozen=True, eq=False)
class CodeTrees(ProgramTrees):
    """Trees on what rules say that a compiler makes of a loop nest."""

    features = staticmethod(code_tree_features)
    format = "go_rl-programs-code-trees"
    names = TREE_NAMES


@dataclass(frozen=True, eq=False)
class MachineTrees(ProgramTrees):
    """Trees on these rules and on the machine code that a compiler made."""

    config = LINEAR

    readable = staticmethod(with_machine_code)
    features = staticmethod(machine_tree_features)
    format = "go_rl-programs-machine-trees"
    names = MACHINE_TREE_NAMES
    bound = "throughput_cycles"


TREE_KINDS: Mapping[str, type[ProgramTrees]] = {
    "code-trees": CodeTrees, "machine-trees": MachineTrees,
}  # fmt: skip
"""Kinds of trees by the names of models in go-rl train programs."""


def devices_told(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the processors learned, by the manifest of saved trees; where it does not list them,
    those whose parallel loops were timed."""
    return tuple(map(str, manifest.get("devices", [name for name in manifest["launch"] if name])))


def _devices(inputs: ProgramInputs) -> tuple[str, ...]:
    """Names of the processors that programs are of."""
    numbers = np.unique(inputs.target).tolist()
    return tuple(dict.fromkeys(inputs.targets[number].device for number in numbers))


def _described(examples: ProgramExamples) -> ProgramExamples:
    """Examples whose loops are described once, however often their features are asked for."""
    return replace(examples, inputs=with_code(examples.inputs))


def device_apart(
    examples: ProgramExamples, device: str = ""
) -> tuple[ProgramExamples, ProgramExamples]:
    """Return the examples of all devices but one, and those of that one; "": the last."""
    device = device or _last_device(examples.inputs)
    others = examples.on_devices(lambda name: name != device)
    return others, examples.on_devices(lambda name: name == device)


def _last_device(inputs: ProgramInputs) -> str:
    return inputs.targets[int(inputs.target.max(initial=0))].device


def _range(
    features: Float32[np.ndarray, "P F"],
) -> tuple[Float32[np.ndarray, "F"], Float32[np.ndarray, "F"]]:
    """[F] least and greatest features that are like these."""
    spread = MARGIN * features.std(axis=0)
    return features.min(axis=0) - spread, features.max(axis=0) + spread


def _within(
    features: Float32[np.ndarray, "P F"],
    least: Float32[np.ndarray, "F"],
    most: Float32[np.ndarray, "F"],
) -> Float32[np.ndarray, "P F"]:
    """Return features moved into the range learned from, beyond which a linear model of a leaf
    would go on rising. Missing numbers stay missing."""
    features = np.where(features < least, least, features)
    return np.where(features > most, most, features)


def held_out(
    known: SummedKernels, task: Int64[np.ndarray, "P"], config: BoostedConfig
) -> tuple[Int64[np.ndarray, "J"], Float64[np.ndarray, "J"]]:
    """Return [J] programs of a fifth of the tasks, and [J] their values by trees that learned the
    others; none where there are too few tasks."""
    try:
        split = by_task(task, config.seed)
    except TrainingError:
        return np.zeros(0, np.int64), np.zeros(0)
    judged = np.concatenate([split.validation, split.test])
    weight = None if known.weight is None else known.weight[split.train]
    train = SummedKernels(known.features[split.train], known.seconds[split.train], weight)
    asked = _within(known.features[judged], *_range(train.features))
    return judged, BoostedTrees.fit(train, config).predict(asked)


def best_factor(
    told: Float64[np.ndarray, "J"],
    launched: Float64[np.ndarray, "J"],
    seconds: Float64[np.ndarray, "J"],
) -> float:
    """Return the one of `FACTORS` by which what is told has the least MAPE, with what is launched
    added; 1 where there is nothing."""
    if not len(seconds):
        return 1.0
    shares: Any = [np.abs((by * told + launched) / seconds - 1.0).mean() for by in FACTORS]
    return float(FACTORS[np.argmin(shares)])


def error_bounds(errors: Float64[np.ndarray, "J"]) -> tuple[float, float]:
    """Return the quantiles `TAILS` of errors."""
    if not len(errors):
        return UNJUDGED
    low, high = np.quantile(errors, TAILS)
    return float(low), float(high)


def _mostly_computing(
    seconds: Float64[np.ndarray, "P"], launched: Float64[np.ndarray, "P"]
) -> Bool[np.ndarray, "P"]:
    """Whether programs compute for most of their seconds; all where none does."""
    found = launched < seconds / 2
    return found if found.any() else ~found


def _by_device(
    inputs: ProgramInputs, figures: Mapping[str, float], other: float
) -> Float64[np.ndarray, "P"]:
    """[P] figure of each program's processor; ``other``: of those that have none."""
    return np.array([figures.get(t.device, other) for t in inputs.targets])[inputs.target]


def _launched(
    inputs: ProgramInputs, launch: Mapping[str, float], slower: Mapping[str, float]
) -> Float64[np.ndarray, "P"]:
    """[P] seconds of entering parallel loops, multiplied as those of their processors are."""
    if not launch:
        return np.zeros(inputs.num_programs)
    seconds = _by_device(inputs, launch, launch.get(ANY, 0.0)) * inputs.launches
    return seconds * _by_device(inputs, slower, 1.0)
