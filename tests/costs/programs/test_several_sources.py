"""Programs of several sources under one numbering."""

from dataclasses import replace

import numpy as np
import pytest

from go_rl.core import TrainingError
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.reading import join_examples, read_examples
from go_rl.costs.programs.measure.data import ProgramTarget
from tests.costs.programs.made_up import made_up_programs
from tests.costs.programs.with_nests import with_nests_and_traces


@pytest.fixture
def first() -> ProgramExamples:
    """Eight programs of four tasks: nests and traces differ, on two targets."""
    made = with_nests_and_traces(8, 4)
    nests = tuple(f"nest {i}" for i in range(8))
    return replace(made, inputs=replace(made.inputs, nests=nests), name="first")


def on_another(examples: ProgramExamples, factor: float) -> ProgramExamples:
    """The last four programs in reverse, tasks and nests numbered otherwise, on a device with the
    second target alone."""
    some = examples.take(np.arange(7, 3, -1))
    inputs = some.inputs
    back = replace(
        inputs,
        task=3 - inputs.task,
        tasks=inputs.tasks[::-1],
        networks=(("other",),) * 4,
        nest=7 - inputs.nest,
        nests=inputs.nests[::-1],
        target=np.zeros(4, np.int64),
        targets=(ProgramTarget("another", "x86-64-v4"),),
        devices=inputs.devices[1:] + 1,
    )
    return replace(some, inputs=back, seconds=factor * some.seconds, name="second")


def titles(examples: ProgramExamples) -> list[tuple[str, str, str, str]]:
    """Task, target, nest and trace of each program, by name."""
    inputs = examples.inputs
    return [
        (str(inputs.tasks[t]), inputs.targets[g].title, inputs.nests[n], inputs.traces[s])
        for t, g, n, s in zip(inputs.task, inputs.target, inputs.nest, inputs.trace, strict=True)
    ]


def test_equal_tasks_nests_and_schedules_have_one_number(first):
    second = on_another(first, 3.0)
    both = join_examples([first, second])
    inputs = both.inputs
    assert titles(both) == titles(first) + titles(second)
    assert (len(inputs.tasks), len(inputs.nests), len(inputs.targets)) == (4, 8, 3)
    assert both.seconds.tolist() == [*first.seconds, *second.seconds]
    assert inputs.task[8:].tolist() == [3, 2, 1, 0]
    assert inputs.nest[8:].tolist() == [7, 6, 5, 4]
    assert inputs.networks[0] == tuple(sorted({*first.inputs.networks[0], "other"}))
    assert np.array_equal(inputs.devices[2], second.inputs.devices[0], equal_nan=True)
    asts = second.inputs.asts
    assert np.array_equal(inputs.asts.take(np.arange(8, 12)).vectors, asts.vectors)
    assert both.name == "first + second"


def test_a_program_of_two_sources_on_one_target_is_their_median(first):
    again = replace(first.take(np.array([5, 2])), seconds=3 * first.seconds[[5, 2]])
    both = join_examples([first, again])
    expected = first.seconds.copy()
    expected[[2, 5]] *= 2
    assert both.seconds == pytest.approx(expected)
    assert titles(both) == titles(first)
    assert dict(both.dropped)["of several sources"] == 2


def test_unknown_tasks_and_nests_stay_apart():
    made = made_up_programs(8, 4)
    both = join_examples([made, made])
    assert len(both.seconds) == 16
    assert both.inputs.nests == ()
    assert both.inputs.task.tolist() == [*made.inputs.task, *(4 + made.inputs.task)]
    assert not set(both.inputs.nest[:8].tolist()) & set(both.inputs.nest[8:].tolist())


def test_nests_that_one_source_lacks_are_known_of_none(first):
    both = join_examples([first, made_up_programs(8, 4)])
    assert both.inputs.nests == both.inputs.traces == ()
    assert len(both.seconds) == 16


def test_what_was_dropped_is_summed(first):
    parts = [replace(first, dropped=(("noisy", n), ("too slow", 1))) for n in (2, 5)]
    dropped = dict(join_examples(parts).dropped)
    assert (dropped["noisy"], dropped["too slow"]) == (7, 2)


def test_a_data_set_twice_is_itself(first):
    assert read_examples(["programs-1"]).name == "programs-1"
    with pytest.raises(TrainingError, match="no source of programs is given"):
        read_examples([])
