"""`train_programs`: CDMPP, or boosted trees, on the user's own records of tensor programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from go_rl.api.progress import Progress, count_updates, ignore, of_total
from go_rl.core import TrainingError
from go_rl.core.config_checks import COUNT, POSITIVE, SEED, Range, check_ranges, check_tuples
from go_rl.core.errors import nearest
from go_rl.core.files.run_lock import exclusive
from go_rl.core.optimizer import Milestone

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Int64

    from go_rl.costs.learning.splits import DataSplit
    from go_rl.costs.programs.learn.examples import ProgramExamples
    from go_rl.costs.programs.learn.predictor import ProgramPredictor

SplitName = Literal["by_task", "within_task", "by_model", "by_target"]
ModelName = Literal["cdmpp", "cdmpp-code", "code-trees", "machine-trees", "transfer"]
NETWORKS = ("cdmpp", "cdmpp-code")
"""Models that a search and members are of."""
OF_NETWORKS = ("network", "labels", "loss", "updates", "members")
"""Fields of `TrainProgramsConfig` that not every model reads."""
READ = MappingProxyType({
    "cdmpp": OF_NETWORKS, "cdmpp-code": OF_NETWORKS, "code-trees": (), "machine-trees": (),
    "transfer": ("updates",),
})  # fmt: skip
"""Those of `OF_NETWORKS` that a model reads."""
TUNING = MappingProxyType({
    "program latency weights": ("loss", "updates"), "the transfer tuner": ("updates",)
})  # fmt: skip
"""Those of `OF_NETWORKS` that fine-tuning reads, by the kind of the weights; trees read none."""
UPDATES, MEMBERS = 2500, 3
"""Updates of each network, and networks, unless a configuration says otherwise."""
WEIGHTS = "weights.npz"
"""File in the folder of the output, of any model."""
LEAST_SEARCH_UPDATES, MOST_TRIALS = 9, 1000
"""A search trains for a ninth and a third of the updates first
(`go_rl.costs.programs.learn.search`)."""


@dataclass(frozen=True)
class TrainProgramsConfig:
    """Training and judging of a predictor of tensor programs."""

    split: SplitName = "by_task"
    """Programs that are judged and not learned from: a tenth of the tasks; of each task's programs;
    all programs of networks held out; or all of one target."""
    held_out: tuple[str, ...] = ()
    """Networks, of ``by_model`` (default: those of the paper that were measured); the target, such
    as "DEVICE x86-64-v4", of ``by_target``."""
    model: ModelName = "cdmpp"
    """The paper's network; the same with numbers of what the compiler makes of each leaf; boosted
    trees on these, or on the machine code besides, the most accurate (extra `trees`;
    docs/programs.md); or the transfer tuner, which ranks the programs of one operator and knows no
    seconds."""
    network: Literal["small", "paper"] | None = None
    """CDMPP's sizes and hyper-parameters: those of the weights that ship, or the paper's Table 6
    (13.8 M parameters; it wants many updates). Default: small."""
    labels: Literal["box-cox", "yeo-johnson", "quantile", "log", "none"] | None = None
    """CDMPP's transform of the seconds. Default: box-cox."""
    loss: Literal["mse", "mape", "mspe", "mse+mape"] | None = None
    """CDMPP's loss of transformed seconds. Default: mse+mape; in fine-tuning that of the
    weights."""
    updates: int | None = None
    """Updates of each network, of CDMPP or the transfer tuner. Default: 2500; in fine-tuning a
    fifth of those of the weights, or 20 epochs of the transfer tuner."""
    members: int | None = None
    """CDMPP's networks, which differ by their seed. Default: 3."""
    seed: int = 0
    """Random seed."""
    most_spread: float = 1.0
    """Measurements are dropped whose 95 % interval has a half-width above this share of their
    time."""
    slowest: float = 1000.0
    """Programs slower than this many times their task's fastest are dropped."""
    least_programs: int = 2
    """Tasks with fewer distinct programs are dropped; 1 keeps those of one program, which seconds
    can be learned of, ranks not."""
    search_updates: int = 2500
    """Updates of a trial of ``--search`` that is not pruned after a ninth or a third of them."""
    devices: str | None = None
    """JSON file with features of devices that are not in the table (docs/programs.md)."""

    def __post_init__(self) -> None:
        check_tuples(self, "train programs", TrainingError)
        check_ranges(
            self, "train programs", TrainingError, updates=COUNT, members=COUNT,
            search_updates=Range(LEAST_SEARCH_UPDATES), seed=SEED, most_spread=POSITIVE,
            slowest=Range(1, above=True), least_programs=COUNT,
        )  # fmt: skip
        if self.held_out and self.split not in ("by_model", "by_target"):
            raise TrainingError(
                f"train programs: held_out is for by_model and by_target, not {self.split}"
            )
        if self.split == "by_target" and len(self.held_out) != 1:
            raise TrainingError("train programs: by_target needs the one target that is held_out")
        _check_read(self)


def _check_read(config: TrainProgramsConfig) -> None:
    """Raise a `TrainingError` that names the first field given that the model does not read."""
    for name in OF_NETWORKS:
        reads = [model for model, fields in READ.items() if name in fields]
        unread = config.model in READ and config.model not in reads
        if unread and getattr(config, name) is not None:
            raise TrainingError(
                f"train programs: {name} is an option of the models {', '.join(reads)}, and "
                f"{config.model} does not read it; leave it out"
            )


@dataclass(frozen=True)
class TrainedPrograms:
    """Result of `train_programs`."""

    path: Path
    """Path of the weights."""
    programs: int
    tasks: int
    """Learned from."""
    dropped: tuple[tuple[str, int], ...]
    """Measurements that were not learned from, by rule."""
    errors: Mapping[str, float] = field(default_factory=dict)
    """Metrics on what was not learned from until then
    (`go_rl.costs.learning.metrics.latency_metrics`)."""


@exclusive("out")
def train_programs(
    source: str | Path | Sequence[str | Path],
    out: str | Path,
    config: TrainProgramsConfig | None = None,
    *,
    search: int = 0,
    fine_tune: str | Path | None = None,
    report: Progress = ignore,
) -> TrainedPrograms:
    """Train on measured tensor programs, and write the weights ``OUT/weights.npz``, which
    `go_rl.costs.programs.learn.program_weights.load_program_weights` reads whatever the model.

    Args:
        source: a folder of `measure_programs`, a data set, or a feature file of CDMPP; several are
            learned from together, by trees for the processor of the last one.
        out: folder for the weights and the trials of a search, which a later call continues.
        config: how.
        search: trials of a search for sizes and hyper-parameters, before training; 0: none.
        fine_tune: weights of any model, by path or the name of some that ship, to be trained
            further; of CDMPP's, programs that are held out are drawn to the others without their
            times.
        report: called with the updates done, all updates and a sentence.

    Raises:
        TrainingError: too few programs are left, a part of the split is empty, or an option is
            wrong.
        ReadError, RecordError: the measurements cannot be read.
        CheckpointError: weights cannot be read or written.
        MissingDependencyError: a search without Optuna, or trees without LightGBM.
    """
    from go_rl.costs.programs.learn.code_trees import TREE_KINDS
    from go_rl.costs.programs.learn.examples import KeepRules
    from go_rl.costs.programs.learn.predictor import ProgramPredictor, check_enough
    from go_rl.costs.programs.learn.reading import read_examples, shipped_sources

    config, out = config or TrainProgramsConfig(), Path(out)
    _check_asked(config, search, fine_tune)
    start = None if fine_tune is None else _start(fine_tune, config)
    rules = KeepRules(config.most_spread, slowest=config.slowest,
                      least_programs=config.least_programs)  # fmt: skip
    examples = read_examples(source, rules, config.devices)
    if config.model in TREE_KINDS:
        examples = TREE_KINDS[config.model].readable(examples)
    check_enough(examples)
    split = split_of(examples, config)
    out.mkdir(parents=True, exist_ok=True)
    if config.model not in NETWORKS or not isinstance(start, ProgramPredictor | None):
        return _trained(examples, split, out, config, start, shipped_sources(source))
    return _trained_network(examples, split, out, config, start, search, report)


def _trained_network(
    examples: ProgramExamples, split: DataSplit, out: Path, config: TrainProgramsConfig,
    start: ProgramPredictor | None, search: int, report: Progress,
) -> TrainedPrograms:  # fmt: skip
    """Train CDMPP's network anew, or ``start`` further, and write the weights."""
    from go_rl.costs.programs.learn.code_inputs import of_width
    from go_rl.costs.programs.learn.predictor import ProgramPredictor

    run = _run(config)
    examples = replace(examples, inputs=of_width(examples.inputs, run.network.leaf_numbers))
    leaves = examples.inputs.leaves
    split, strange = _with_layers(
        split, leaves, leaves[split.train] if start is None else start.config.network.leaf_counts
    )
    dropped = (*examples.dropped, ("of a number of leaves that is not learned", strange))
    if search:
        run = _searched(examples, split, out, config, run, search, report)
    train, validation = examples.take(split.train), examples.take(split.validation)
    if start is None:
        members = config.members or MEMBERS
        each_update = count_updates(report, members, run.updates)
        weights = ProgramPredictor.fit(train, run, members, each_update, validation)
    else:
        other = split.held_out if len(split.held_out) else split.test
        unlabelled = examples.inputs.take(other)
        tuning = start.tuning_run(config.updates, config.loss)
        each_update = count_updates(report, len(start.networks), tuning.updates)
        weights = start.fine_tuned(train, unlabelled, tuning, each_update, validation)
    errors = _judged(weights, examples, split)
    card = {**weights.card, "split": config.split, "judged": errors}
    replace(weights, name=out.resolve().name, card=card).save(out / WEIGHTS)
    tasks = len(set(train.inputs.task.tolist()))
    return TrainedPrograms(out / WEIGHTS, len(train.seconds), tasks, dropped, errors)


def _with_layers(
    split: DataSplit, leaves: Int64[np.ndarray, "P"], known: Int64[np.ndarray, "A"] | Sequence[int]
) -> tuple[DataSplit, int]:
    """Leave programs whose number of leaves no layer is for out of what is not learned; return the
    split and how many they are."""
    import numpy as np

    rest = {name: part for name, part in vars(split).items() if name != "train"}
    kept = {name: part[np.isin(leaves[part], known)] for name, part in rest.items()}
    judges = "held_out" if len(split.held_out) else "test"
    if not len(kept[judges]):
        raise TrainingError(
            "train programs: of the programs that were to judge, none has a number of leaves that "
            "is learned; measure more tasks, or take the split within_task"
        )
    strange = sum(map(len, rest.values())) - sum(map(len, kept.values()))
    return replace(split, **kept), strange


def _check_asked(config: TrainProgramsConfig, search: int, fine_tune: str | Path | None) -> None:
    if not 0 <= search <= MOST_TRIALS:
        raise TrainingError(
            f"train programs: search must be a number of trials, 0 to {MOST_TRIALS}, not {search}"
        )
    if search and fine_tune is not None:
        raise TrainingError("train programs: give search or fine_tune, not both")
    another = config.model != TrainProgramsConfig.model
    if (search and config.model not in NETWORKS) or (fine_tune is not None and another):
        raise TrainingError(
            f"train programs: search is of CDMPP's networks, and fine_tune of the model of its "
            f"weights; leave out the model {config.model}"
        )


def _start(source: str | Path, config: TrainProgramsConfig) -> Any:
    """The weights that are trained further, once no field is given that this does not read."""
    from go_rl.costs.programs.learn.program_weights import load_program_weights

    start = load_program_weights(source)
    read = TUNING.get(start.what, ())
    for name in OF_NETWORKS:
        if name not in read and getattr(config, name) is not None:
            more = f"; {' and '.join(read)} can be set" if read else ""
            raise TrainingError(
                f"train programs: {name} is not read in fine-tuning {start.what}{more}"
            )
    return start


def split_of(examples: ProgramExamples, config: TrainProgramsConfig) -> DataSplit:
    """Return the split of a configuration.

    Raises:
        TrainingError: a part is empty, or there is no such network or target.
    """
    from go_rl.costs.learning import splits

    inputs = examples.inputs
    if config.split == "within_task":
        return splits.within_task(inputs.task, config.seed)
    if config.split == "by_task":
        return splits.by_task(inputs.task, config.seed)
    if config.split == "by_model":
        known = {name for some in inputs.networks for name in some}
        held_out = config.held_out or tuple(n for n in splits.HELD_OUT if n in known)
        return splits.by_model(inputs.task, inputs.networks, held_out, config.seed)
    titles = [target.title for target in inputs.targets]
    if config.held_out[0] not in titles:
        raise TrainingError(
            f"train programs: no target {config.held_out[0]!r}"
            f"{nearest(config.held_out[0], titles)} Targets: {', '.join(titles)}"
        )
    number = titles.index(config.held_out[0])
    return splits.by_target(inputs.task, inputs.target, number, config.seed)


def _trained(
    examples: ProgramExamples, split: DataSplit, out: Path, config: TrainProgramsConfig, start: Any,
    sources: tuple[str, ...],
) -> TrainedPrograms:  # fmt: skip
    """Train, or train further, what is no ensemble of CDMPP's networks; ``sources``: the data sets
    that ship, where these are all that is learned."""
    from go_rl.costs.programs.learn.code_trees import TREE_KINDS
    from go_rl.costs.programs.learn.transfer.tuner import TransferTuner

    train = examples.take(split.train)
    if isinstance(start, TransferTuner) and config.updates:
        learned = start.fine_tuned(train, _for_updates(start.run, config.updates, train))
    elif start is not None:
        learned = start.fine_tuned(train)
    elif config.model in TREE_KINDS:
        learned = TREE_KINDS[config.model].fit(train)
    else:
        learned = _transfer_tuner(train, config)
    errors = _judged(learned, examples, split)
    if start is None and config.model in TREE_KINDS:
        if not len(split.held_out):  # a fit is short: tasks that judged are learned, too
            train = examples
            learned = TREE_KINDS[config.model].fit(train)
        learned = replace(learned, data=sources)
    learned.save(out / WEIGHTS)
    tasks = len(set(train.inputs.task.tolist()))
    return TrainedPrograms(out / WEIGHTS, len(train.seconds), tasks, examples.dropped, errors)


def _transfer_tuner(train: ProgramExamples, config: TrainProgramsConfig) -> Any:
    """The transfer tuner, trained for about as many updates as are asked for."""
    from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
    from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun

    run = TunerRun(seed=config.seed)
    return TransferTuner.fit(train, _for_updates(run, config.updates or UPDATES, train))


def _for_updates(run: Any, updates: int, train: ProgramExamples) -> Any:
    """The run of a transfer tuner, of as many epochs as make about so many updates."""
    return replace(run, epochs=max(1, round(updates * run.batch / len(train.seconds))))


def _judged(learned: Any, examples: ProgramExamples, split: DataSplit) -> dict[str, float]:
    """Metrics on what was held out, else on the part for tests; of scores those of order alone, of
    trees those of the processor that they predict."""
    from go_rl.costs.learning.metrics import latency_metrics, pair_accuracy
    from go_rl.costs.programs.learn.code_trees import ProgramTrees, device_apart

    judged = examples.take(split.held_out if len(split.held_out) else split.test)
    if isinstance(learned, ProgramTrees):
        _, judged = device_apart(judged)
    found = learned.predict(judged.inputs)
    if learned.unit != "seconds":
        return {"pair_accuracy": pair_accuracy(found, judged.seconds, judged.inputs.group)}
    return latency_metrics(found, judged.seconds, judged.inputs.group)


def _run(config: TrainProgramsConfig) -> Any:
    from go_rl.costs.programs.learn.code_inputs import WIDE_NUMBERS
    from go_rl.costs.programs.learn.training import NAMED_RUNS

    run = NAMED_RUNS[config.network or "small"]
    network = run.network
    if config.model == "cdmpp-code":
        network = replace(network, leaf_numbers=WIDE_NUMBERS)
    return replace(
        run, network=network, updates=config.updates or UPDATES, labels=config.labels or run.labels,
        loss=config.loss or run.loss, seed=config.seed,
    )  # fmt: skip


def _searched(
    examples: ProgramExamples, split: DataSplit, out: Path, config: TrainProgramsConfig, run: Any,
    trials: int, report: Progress,
) -> Any:  # fmt: skip
    from go_rl.costs.programs.learn.search import ProgramSearchConfig, SearchData, search_programs

    others = split.held_out if len(split.held_out) else split.validation
    data = SearchData(
        examples.take(split.train), examples.take(split.validation), examples.inputs.take(others)
    )
    search = ProgramSearchConfig(trials, updates=config.search_updates, seed=config.seed)
    report(0, trials, Milestone(f"searching among sizes and hyper-parameters: {trials} trials"))
    return search_programs(data, out, search, run, of_total(report, trials))
