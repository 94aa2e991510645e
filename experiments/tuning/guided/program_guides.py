"""Guides of ``go-rl tune programs`` at equal trials: predictors of programs, XGBoost and chance.

Run: ``python -m experiments tuning.guided.program_guides build/program_guides``. The candidates are
those of the data set that ships, with their loop nests and seconds, of three operators; each
predictor learned the other operators of the data set, once, and is kept in the folder. One
evolutionary search is guided by each, fine-tuned on the trials (`ProgramGuide`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from jaxtyping import Float32

from experiments.experiment import Experiment, say_loss
from experiments.rows import run_name
from experiments.tuning.guided.recorded_programs import without
from experiments.tuning.inner_tuners import COLUMNS, table
from experiments.tuning.make_pools import PEAK
from experiments.tuning.tuner_curves import CurveRow, figure, run_curves
from go_rl.core import ReadError
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import LoadedPrograms, load_program_weights
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.nests import LoopNest, nest_from_json
from go_rl.report.text_table import markdown_table
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, MakeInnerTuner, TunedOperator
from go_rl.tuning.pools.candidate_pool import CandidatePool, PoolSet
from go_rl.tuning.tuners import inner_tuner
from go_rl.tuning.tuners.program_guide import ProgramGuide

DATA, CODEGEN = "programs-1", "x86-64-v4"
OPERATORS = (
    "conv2d 1x56x56x64x64x3x3x1x1x1", "matmul 1x128x512x512", "conv2d 1x13x13x48x192x3x3x1x1x1",
)  # fmt: skip
"""Of ResNet-18, T5-small and SqueezeNet."""
CHANCE, TREES, SEARCH = "random", "XGBoost", "evolution"
SPENT = 0.5
"""Seconds that a trial counts as; nothing here depends on it."""


@dataclass(frozen=True)
class ProgramGuides(Experiment):
    """Options of this experiment."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Keeps the predictors."""
    trials: int = 24
    """Of each operator."""
    batch: int = 4
    """Candidates that are proposed together."""
    seeds: int = 3
    updates: int = 1500
    """Updates of each of CDMPP's networks, and of the transfer tuner."""
    members: int = 2
    """CDMPP's networks."""

    def run(self) -> None:
        """Make the rows that are missing; write the page and its figure."""
        pools, nests = recorded(read_examples(DATA))
        guides = self._guides()
        arms: dict[str, Callable[[PoolSet, int], MakeInnerTuner]] = {
            CHANCE: lambda *_: inner_tuner("random"), TREES: lambda *_: inner_tuner(SEARCH),
        }  # fmt: skip
        arms |= {name: partial(_guided, guide, nests) for name, guide in guides.items()}
        run = run_name(f"{pools.digest} {self.trials} {self.batch} {self.updates} {self.members}")
        rows = run_curves(
            self.kept_rows(CurveRow), run, [pools], arms, range(self.seeds), self.trials, self.batch
        )
        self.save_figure(figure(rows, tuple(arms), self.batch))
        self.write_page(_page(rows, pools, self))

    def _guides(self) -> Mapping[str, LoadedPrograms]:
        """Predictors that learned the other operators; those trained before are read."""
        makers = {"CDMPP": self._cdmpp, "CodeTrees": CodeTrees.fit, "transfer": self._transfer}
        found: dict[str, LoadedPrograms] = {}
        for name, fit in makers.items():
            path = self.folder / f"{name}-{self.updates}-{self.members}.npz"
            if not path.exists():
                examples = read_examples(DATA)
                tasks = [t for t in examples.inputs.tasks if t is not None and t.title in OPERATORS]
                self.folder.mkdir(parents=True, exist_ok=True)
                fit(without(examples, tuple(tasks))).save(path)
            found[name] = load_program_weights(path)
        return found

    def _cdmpp(self, examples: ProgramExamples) -> ProgramPredictor:
        run = ProgramTrainConfig(updates=self.updates)
        return ProgramPredictor.fit(examples, run, self.members, say_loss)

    def _transfer(self, examples: ProgramExamples) -> TransferTuner:
        batch = 64
        epochs = max(1, round(self.updates * batch / len(examples.seconds)))
        return TransferTuner.fit(examples, TunerRun(batch=batch, epochs=epochs), report=say_loss)


class NestPool:
    """A recorded pool whose candidates' loop nests are known (`ProgramSpace`).

    Args:
        pool: of the candidates.
        nests: JSON of their loop nests, by key.
    """

    def __init__(self, pool: CandidateSpace, nests: Mapping[str, str]) -> None:
        self._pool, self._nests = pool, nests

    def draw(self, count: int, rng: np.random.Generator) -> list[Candidate]:
        return self._pool.draw(count, rng)

    def neighbour(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        return self._pool.neighbour(candidate, rng)

    def features(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S numbers"]:
        return self._pool.features(candidates)

    def nests(self, candidates: Sequence[Candidate]) -> list[LoopNest | None]:
        return [nest_from_json(self._nests[each.key]) for each in candidates]

    def adapted(self, document: Any) -> Candidate | None:
        """Return None: a pool has no other candidates than its own."""
        return None


def recorded(examples: ProgramExamples) -> tuple[PoolSet, dict[str, str]]:
    """Return pools of `OPERATORS` on one target, and the loop nest of each candidate by its key.

    Raises:
        ReadError: the data set has no such operator.
    """
    inputs, pools, nests = examples.inputs, [], {}
    target = [each.codegen for each in inputs.targets].index(CODEGEN)
    titles = [None if task is None else task.title for task in inputs.tasks]
    for name in OPERATORS:
        if name not in titles:
            raise ReadError(f"{examples.name}: has no operator {name!r}")
        at = titles.index(name)
        rows = np.flatnonzero((inputs.task == at) & (inputs.target == target))
        texts = [inputs.nests[i] for i in inputs.nest[rows].tolist()]
        keys = np.array([zlib.crc32(f"{name} {text}".encode()) for text in texts], np.uint64)
        nests |= {f"{key:016x}": text for key, text in zip(keys.tolist(), texts, strict=True)}
        task = inputs.tasks[at]
        assert task is not None
        operator = TunedOperator(name, task.workload, 1, float(task.flops))
        seconds = examples.seconds[rows].astype(np.float32)
        spent, features = np.full(len(rows), SPENT, np.float32), inputs.asts.take(rows).sums()
        pools.append(CandidatePool(operator, seconds, spent, features.astype(np.float32), keys))
    device = inputs.targets[target].title
    return PoolSet("three operators", device, PEAK, tuple(pools)), nests


def _guided(
    predictor: LoadedPrograms, nests: Mapping[str, str], pools: PoolSet, operator: int
) -> MakeInnerTuner:
    """The search under one predictor; it is the same for every operator of a network."""
    device, _, level = pools.target.rpartition(" ")
    tuners = ProgramGuide(predictor, ProgramTarget(device, level)).tuners(SEARCH)
    return lambda space, seed: tuners(NestPool(space, nests), seed)


def _page(rows: Sequence[CurveRow], pools: PoolSet, options: ProgramGuides) -> str:
    head, lines = table(rows, options.batch)
    given = f"{options.trials} trials in batches of {options.batch}"
    sizes = [len(each.seconds) for each in pools.pools]
    seeds = len({row.seed for row in rows})
    return (
        f"# Guides of program tuning at equal trials\n\nThree operators ({', '.join(OPERATORS)}) "
        f"on {pools.target}, {min(sizes)} to {max(sizes)} measured candidates each; "
        f"{given}, {seeds} seeds. Predictors learned the other tasks "
        f"of {DATA}: CDMPP {options.members} networks of {options.updates:,} updates, the transfer "
        "tuner about as many; each is fine-tuned on the trials of the operator, when 16, 32, … "
        f"have a time. {COLUMNS}\n\n{markdown_table(head, lines)}\n"
        f"![Speed against trials]({options.stem.name}.svg)\n"
    )
