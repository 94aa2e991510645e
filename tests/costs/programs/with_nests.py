"""Made-up programs with loop nests and schedules, for rivals and the tuner."""

from dataclasses import replace

from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.nests import nest_to_json
from go_rl.costs.programs.nests.nest import Access, ForLoop, LoopNest, NestBuffer, Statement
from go_rl.costs.programs.workloads import TensorTask
from tests.costs.programs.made_up import made_up_programs


def with_nests_and_traces(programs: int = 8, tasks: int = 4) -> ProgramExamples:
    """Return programs of one or two leaves: a loop around the first, and, of programs of two, a
    loop in it around the second; schedules differ by a tile size."""
    examples = made_up_programs(programs, tasks)
    inputs = examples.inputs
    # `made_up_programs` has leaves at 1 and 3: a loop (0), leaf, -1, leaf.
    nests = tuple(nest_to_json(nest_of(count)) for count in inputs.leaves.tolist())
    traces = tuple(trace_of(number) for number in range(programs))
    known = tuple(TensorTask("matmul", (1, 2 + i, 8, 8)) for i in range(tasks))
    return replace(examples, inputs=replace(inputs, nests=nests, traces=traces, tasks=known))


def nest_of(statements: int) -> LoopNest:
    """Return a loop around so many statements, in a row."""
    buffers = tuple(NestBuffer(f"b{i}", (4,)) for i in range(statements))
    body = tuple(Statement(Access(i, (0,))) for i in range(statements))
    return LoopNest(buffers, (ForLoop(4, "serial", body),))


def trace_of(tile: int) -> str:
    """Return a schedule that tiles and vectorises."""
    return (
        "# from tvm import s_tir\n"
        "def apply_trace(sch: s_tir.Schedule) -> None:\n"
        '  b0 = sch.get_sblock(name="matmul", func_name="main")\n'
        f"  v1, v2 = sch.sample_perfect_tile(loop=l0, n=2, max_innermost_factor=64, "
        f"decision=[{2**tile}, 4])\n"
        "  l3, l4 = sch.split(loop=l0, factors=[v1, v2], preserve_unit_iters=True)\n"
        "  sch.vectorize(loop=l4)\n"
    )
