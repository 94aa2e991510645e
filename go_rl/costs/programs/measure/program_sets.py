"""`ProgramSet`: which programs a data set holds, the same ones on every processor, in an order that
is useful half-done.

Tasks are dealt out by operators and networks in turn, in the order of a seeded hash. First comes
each task without a schedule, the loops as they are. Then rounds go over all tasks, a drawing of
`ProgramSet.draws` random schedules each; a round then draws further programs of the heavy tasks
until these have their share. Nothing of it depends on the processor, on TVM or on what was
measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from types import MappingProxyType

from go_rl.core.errors import nearest
from go_rl.costs.programs.workloads import TaskError, TensorTask, network_tasks
from go_rl.costs.programs.workloads.drawn_programs import Drawing
from go_rl.costs.programs.workloads.task import FUSED_OPS
from go_rl.graphs.zoo.index import zoo_graph


@dataclass(frozen=True)
class ProgramSet:
    """Tasks of networks, and how many schedules of each."""

    networks: tuple[str, ...]
    """Graphs of the zoo."""
    heavy: int = 50
    """Heavy tasks."""
    others: int = 400
    """Other tasks."""
    heavy_drawings: int = 8
    """Drawings of a heavy task in each round."""
    rounds: int = 9
    draws: int = 16
    """Schedules of a drawing."""
    codegen: str = "x86-64-v3"
    """Level of x86-64: one for each processor is enough for so many programs, and this one runs on
    all since Haswell (2013) and Zen (2017)."""
    heavy_flops: tuple[float, float] = (5e6, 2.5e8)
    """Least and most FLOP of a heavy task."""
    most_flops: float = 5e8
    """Most FLOP of other tasks: a slow schedule of more takes seconds."""
    seed: int = 3
    epilogues: tuple[tuple[str, ...], ...] = ()
    """Epilogues that products and convolutions get in turn, and then there is nothing but these;
    none: operators as they are."""

    def tasks(self) -> tuple[dict[TensorTask, str], dict[TensorTask, str]]:
        """Return the heavy tasks and the others, each with the first network that has it.

        Raises:
            ZooError: there is no such network.
        """
        found: dict[TensorTask, str] = {}
        for name in self.networks:
            for task in network_tasks(zoo_graph(name)):
                if task.flops <= self.most_flops:
                    found.setdefault(task, name)
        if self.epilogues:
            found = self._fused(found)
        dealt = _dealt(found, self.seed)
        least, most = self.heavy_flops
        heavy = [t for t in dealt if t.op in FUSED_OPS and least <= t.flops <= most][: self.heavy]
        others = [t for t in dealt if t not in set(heavy)][: self.others]
        return {t: found[t] for t in heavy}, {t: found[t] for t in others}

    def drawings(self) -> Iterator[Drawing]:
        """Yield what is to be measured, in order."""
        heavy, others = self.tasks()
        every = _dealt(heavy | others, self.seed)
        for task in every:
            yield Drawing.plain(task, self.codegen)
        for number in range(self.rounds):
            first = number * self.heavy_drawings
            for task in every:
                yield self._of(task, first if task in heavy else number)
            for more in range(1, self.heavy_drawings):
                for task in heavy:
                    yield self._of(task, first + more)

    def _fused(self, found: Mapping[TensorTask, str]) -> dict[TensorTask, str]:
        """Return the products and convolutions among tasks, each with one of the epilogues; those
        of several matrices at once, which have none in networks, are left out."""
        some = [t for t in _dealt(found, self.seed) if t.op in FUSED_OPS and t.sizes[0] == 1]
        epilogues = cycle(self.epilogues)
        return {replace(t, steps=next(epilogues)): found[t] for t in some}

    def _of(self, task: TensorTask, seed: int) -> Drawing:
        return Drawing(task, self.codegen, self.draws, seed)


NETWORKS = (
    "resnet18", "resnet50", "mobilenet-v1", "mobilenet-v2", "mobilenet-v3-small", "densenet121",
    "efficientnet-b0", "inception-v3", "xception", "nasnet-mobile", "hrnet-w18", "convnext-tiny",
    "unet", "bert-tiny", "bert-mini", "gpt2-small", "vit-tiny", "swin-tiny", "t5-small",
    "conformer-s",
)  # fmt: skip
EPILOGUES = (
    ("bias",), ("bias", "relu"), ("bias", "gelu_tanh"), ("bias", "add"), ("bias", "silu"),
    ("bias", "add", "relu"), ("bias", "gelu"), ("relu",), ("bias", "elu"), ("add",),
)  # fmt: skip
PROGRAM_SETS: Mapping[str, ProgramSet] = MappingProxyType(
    {
        "programs-3": ProgramSet(NETWORKS),
        "programs-4": ProgramSet(
            NETWORKS, heavy=60, others=140, heavy_drawings=4, epilogues=EPILOGUES, seed=4
        ),
        "programs-5": ProgramSet(
            NETWORKS, heavy=60, others=140, heavy_drawings=4, most_flops=1e9, codegen="x86-64-v4",
            epilogues=EPILOGUES, seed=5,
        ),
    }
)  # fmt: skip
"""Data sets that are measured on several processors; see docs/programs.md."""


def program_set(name: str) -> ProgramSet:
    """Return a set by its name.

    Raises:
        TaskError: there is none.
    """
    if name not in PROGRAM_SETS:
        raise TaskError(f"no data set {name!r} is known{nearest(name, PROGRAM_SETS)}")
    return PROGRAM_SETS[name]


def _dealt(found: Mapping[TensorTask, str], seed: int) -> list[TensorTask]:
    """Return the tasks by operators in turn, those of an operator by networks in turn."""

    def place(task: TensorTask) -> str:
        return hashlib.sha256(f"{seed} {task.workload}".encode()).hexdigest()

    groups: dict[str, dict[str, list[TensorTask]]] = {}
    for task in sorted(found, key=place):
        groups.setdefault(task.op, {}).setdefault(found[task], []).append(task)
    return _in_turn([_in_turn(list(networks.values())) for networks in groups.values()])


def _in_turn(groups: Sequence[Sequence[TensorTask]]) -> list[TensorTask]:
    """Return the first of each group, the second of each, and so on."""
    most = max(map(len, groups), default=0)
    return [group[turn] for turn in range(most) for group in groups if turn < len(group)]
