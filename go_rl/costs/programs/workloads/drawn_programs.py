"""`draw_programs`: random schedules of a task, by MetaSchedule or `split_schedules`, and its loops
as they are. Needs TVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.costs.programs.workloads.split_schedules import (
    SPLIT_OPS,
    candidates_of,
    split_schedules,
)
from go_rl.costs.programs.workloads.task import TensorTask
from go_rl.costs.programs.workloads.te_workloads import task_module
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.runtime.records import canonical_json

CODEGEN = ("x86-64-v3", "x86-64-v4", "x86-64-v2")
"""Levels of x86-64 that programs are compiled for: targets of the code, not processors."""
AS_IT_IS = -1
"""In place of a random seed: the loops as TVM generates them, without a schedule."""


@dataclass(frozen=True)
class Drawing:
    """Random schedules of a task that are drawn together, or none: `plain`."""

    task: TensorTask
    codegen: str
    """Level of x86-64."""
    draws: int
    """Number of schedules; another number gives other ones."""
    seed: int

    @classmethod
    def plain(cls, task: TensorTask, codegen: str) -> Drawing:
        """Return the one program that has no schedule."""
        return cls(task, codegen, 1, AS_IT_IS)

    @classmethod
    def of_number(
        cls, task: TensorTask, codegen: str, draws: int, number: int
    ) -> tuple[Drawing, int]:
        """Return the drawing, of so many schedules, that has a program, and its number therein.

        Args:
            task: of the program.
            codegen: level of x86-64.
            draws: schedules drawn together.
            number: of the program among all of its task's: ``draw + draws * seed``.
        """
        if number == AS_IT_IS:
            return cls.plain(task, codegen), 0
        return cls(task, codegen, draws, number // draws), number % draws

    def setting(self, draw: int) -> str:
        """Return the setting that the record of a schedule is kept under, by its number from 0."""
        return canonical_json(
            {"codegen": self.codegen, "draw": draw, "draws": self.draws, "seed": self.seed}
        )


def codegen_target(level: str, cores: int = 1) -> Any:
    """Return TVM's target: cores of a level of x86-64."""
    return import_tvm().target.Target({"kind": "llvm", "mcpu": level, "num-cores": cores})


def scalar_space() -> Any:
    """Return MetaSchedule's design space of a CPU without tensor instructions.

    TVM would choose rules by the target's level, and those of x86-64-v4 ask for int8 instructions
    that `import_meta_schedule` leaves out and float32 programs never use.
    """
    schedules, kind = import_meta_schedule(), "llvm"
    return schedules.space_generator.PostOrderApply(
        sch_rules=schedules.schedule_rule.ScheduleRule.create(kind),
        postprocs=schedules.postproc.Postproc.create(kind),
        mutator_probs=schedules.mutator.Mutator.create(kind),
    )


def draw_programs(drawing: Drawing) -> list[Any]:
    """Return candidates (``.sch.mod`` is the scheduled module, ``.sch.trace`` how it came about).

    The same drawing gives the same ones; there may be fewer than asked for. Of the operators
    for which MetaSchedule has few schedules (`SPLIT_OPS`), all but a quarter are `split_schedules`.

    Raises:
        MissingDependencyError: TVM is not installed.
    """
    task, count = drawing.task, drawing.draws
    if drawing.seed == AS_IT_IS:
        module = task_module(task)
        return candidates_of(module, [import_tvm().s_tir.Schedule(module)])
    split = count - count // 4 if task.op in SPLIT_OPS else 0
    others = split_schedules(task, split, drawing.seed) if split else []
    return _meta_schedules(drawing, count - split) + others


def _meta_schedules(drawing: Drawing, count: int) -> list[Any]:
    """Return at most this many candidates of MetaSchedule."""
    if not count:
        return []
    schedules = import_meta_schedule()
    context = schedules.TuneContext(
        task_module(drawing.task), target=codegen_target(drawing.codegen),
        space_generator=scalar_space(), search_strategy="replay-trace",
        rand_state=drawing.seed + 1, num_threads=1,
    )  # fmt: skip
    spaces = context.generate_design_space()
    context.pre_tuning(max_trials=count, num_trials_per_iter=count, design_spaces=spaces)
    found = context.generate_measure_candidates()
    return [] if found is None else list(found)
