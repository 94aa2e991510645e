"""`TvmSpace`: MetaSchedule's design spaces of one operator, sampled and mutated."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32

from go_rl.costs.programs.features import LEAF_NUMBERS
from go_rl.costs.programs.nests import LoopNest, NestError
from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule, nest_from_tvm
from go_rl.costs.programs.workloads.drawn_programs import scalar_space
from go_rl.runtime.records import canonical_json
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.tvm.codegen import CodeTarget

DRAWS_A_CANDIDATE = 4
"""Random decisions, at most, for each candidate asked for: some are not legal, some are equal."""
MUTATIONS = 8
"""Mutations, at most, until one is legal and differs."""
MUTATE = "s_tir.meta_schedule.MutatorApply"
PACKED = 0.5
"""Share of random candidates that have the weights in a layout of their own."""
KEEP_LAYOUT = 0.9
"""Chance that a mutated candidate packs weights if and only if the one before does."""
REWRITE, PACKS = "s_tir.meta_schedule.RewriteLayout", "TransformLayout"
"""The step of post-processing that packs weights, and an instruction that it leaves."""
KEPT = 4096
"""Feature vectors that are kept."""
KEY_LENGTH = 24
SEEDS = 2**31 - 1
ILLEGAL = (RuntimeError, IndexError)
"""Errors of TVM where a trace does not fit: ``ScheduleError`` and ``InternalError`` are the
first."""


def scheduled(module: Any, document: Any) -> Any:
    """Return the schedule of a module that a document tells.

    Args:
        module: an unscheduled operator, called ``main``.
        document: of a `Candidate`; None: the loops as they are, TVM's default on a CPU.
    """
    import_meta_schedule()
    from tvm.s_tir.schedule import Schedule as TvmSchedule  # pyright: ignore[reportMissingImports]
    from tvm.s_tir.schedule import Trace  # pyright: ignore[reportMissingImports]

    schedule = TvmSchedule(module, error_render_level="none")
    if document is not None:
        Trace.apply_json_to_schedule(document, schedule)
    return schedule


def with_packed_weights(module: Any) -> Any:
    """Return a scheduled operator whose operands have the layout that its schedule reads weights
    in. Without it, the operator brings them into that layout at each call."""
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock  # pyright: ignore[reportMissingImports]

    return RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)


class TvmSpace:
    """Candidates of one operator (`go_rl.tuning.loop.nouns.CandidateSpace`).

    A candidate's document is its trace, post-processing included, as TVM's JSON.

    Args:
        module: the operator without a schedule.
        code: what it is compiled for.
    """

    def __init__(self, module: Any, code: CodeTarget) -> None:
        meta = import_meta_schedule()
        self._module = module
        self._context = meta.TuneContext(
            module, target=code.tvm(), space_generator=scalar_space(), rand_state=1,
            num_threads=1,
        )  # fmt: skip
        self._sketches = list(self._context.generate_design_space())
        self._mutators = [(m, float(p)) for m, p in self._generator.mutator_probs.items()]
        self._features: OrderedDict[str, np.ndarray] = OrderedDict()

    def draw(self, count: int, rng: np.random.Generator) -> list[Candidate]:
        from tvm.s_tir.schedule import Trace  # pyright: ignore[reportMissingImports]

        found: dict[str, Candidate] = {}
        for _ in range(DRAWS_A_CANDIDATE * count):
            if len(found) == count:
                break
            sketch = self._sketches[int(rng.integers(len(self._sketches)))]
            packed = bool(rng.random() < PACKED)
            made = self._replayed(Trace(sketch.trace.insts, {}), packed, rng)
            if made is not None:
                found.setdefault(made.key, made)
        return list(found.values())

    def neighbour(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        from tvm_ffi import get_global_func  # pyright: ignore[reportMissingImports]

        mutate = get_global_func(MUTATE)  # `Mutator.apply` takes no seed
        trace = scheduled(self._module, candidate.document).trace
        chances = np.array([chance for _, chance in self._mutators])
        packs = _packs(trace)
        for _ in range(MUTATIONS):
            number = int(rng.choice(len(chances), p=chances / chances.sum()))
            mutator, seed = self._mutators[number][0], int(rng.integers(1, SEEDS))
            mutated = mutate(mutator, trace, seed)
            packed = packs == bool(rng.random() < KEEP_LAYOUT)
            made = None if mutated is None else self._replayed(mutated, packed, rng)
            if made is not None and made.key != candidate.key:
                return made
        return None

    def features(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S numbers"]:
        """Return TVM's own ``PerStoreFeature``, which `go_rl.costs.programs.features` equals,
        summed over statements."""
        missing = {s.key: s for s in candidates if s.key not in self._features}
        if missing:
            self._extract(list(missing.values()))
        rows = [self._features[candidate.key] for candidate in candidates]
        while len(self._features) > KEPT:
            self._features.popitem(last=False)
        return np.array(rows, np.float32).reshape(-1, LEAF_NUMBERS)

    def nests(self, candidates: Sequence[Candidate]) -> list[LoopNest | None]:
        return [_nest(scheduled(self._module, each.document).mod) for each in candidates]

    def adapted(self, document: Any) -> Candidate | None:
        """Return the candidate with the decisions of another. Tiles that do not divide a loop of
        this operator become one tile (TVM's ``SamplePerfectTile``)."""
        try:
            trace = scheduled(self._module, document).trace
        except (*ILLEGAL, ValueError, TypeError):
            return None  # other blocks or loops
        return self._replayed(trace, _packs(trace), np.random.default_rng(0))

    @property
    def _generator(self) -> Any:
        return self._context.space_generator

    def _replayed(self, trace: Any, packed: bool, rng: np.random.Generator) -> Candidate | None:
        """Apply a trace, with random decisions where it has none, weights packed or as they are;
        None: it is not legal."""
        from tvm.s_tir.schedule import Schedule as TvmSchedule  # pyright: ignore[reportMissingImports]

        made = TvmSchedule(
            self._module, seed=int(rng.integers(1, SEEDS)), error_render_level="none"
        )
        try:
            trace.apply_to_schedule(made, remove_postproc=True)
            made.enter_postproc()
            steps = (each for each in self._generator.postprocs if packed or not _rewrites(each))
            if not all(each.apply(made) for each in steps):
                return None
        except ILLEGAL:
            return None
        return candidate_of(made.trace)

    def _extract(self, candidates: Sequence[Candidate]) -> None:
        meta = import_meta_schedule()
        from tvm.s_tir.meta_schedule.arg_info import ArgInfo  # pyright: ignore[reportMissingImports]
        from tvm.s_tir.meta_schedule.feature_extractor import PerStoreFeature  # pyright: ignore[reportMissingImports]

        operands = ArgInfo.from_entry_func(self._module, True)
        measurable = [
            meta.MeasureCandidate(scheduled(self._module, each.document), operands)
            for each in candidates
        ]
        found = PerStoreFeature().extract_from(self._context, measurable)
        for candidate, rows in zip(candidates, found, strict=True):
            self._features[candidate.key] = rows.numpy().sum(axis=0).astype(np.float32)


def _nest(module: Any) -> LoopNest | None:
    try:
        return nest_from_tvm(module, other_types=True)
    except NestError:
        return None


def _rewrites(step: Any) -> bool:
    return str(step).startswith(REWRITE) or type(step).__name__ == "RewriteLayout"


def _packs(trace: Any) -> bool:
    """Whether a trace brings the weights into a layout of their own."""
    return any(str(each.kind.name) == PACKS for each in trace.insts)


def candidate_of(trace: Any) -> Candidate:
    """Return the candidate that a trace of TVM is."""
    document = _plain(trace.as_json())
    digest = hashlib.sha256(canonical_json(document).encode()).hexdigest()
    return Candidate(digest[:KEY_LENGTH], document)


def _plain(value: Any) -> Any:
    """TVM's JSON, whose numbers are nodes, as Python's."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if hasattr(value, "value"):
        return _plain(value.value)
    if hasattr(value, "items"):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value]
