"""`Problem`, rule sets, budgets and progress."""

from dataclasses import replace

import numpy as np
import pytest
from small_problems import build_problem, ring_of

from go_rl.core import RULE_SETS, Budget, ProblemError, Progress, Rules, load_hardware, rule_set


def test_rule_sets_by_name():
    assert rule_set("strict") == Rules(replicate=False, relay=False)
    assert rule_set("default") == Rules(replicate=True, relay=True)
    assert {name: rule_set(name).triangle for name in RULE_SETS} == {
        "strict": True,
        "replicate": True,
        "relay": False,
        "default": False,
    }
    assert [rule_set(name).name for name in RULE_SETS] == list(RULE_SETS)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"hardware": load_hardware("p100x4")}, "objective ring needs hardware with ring links"),
        (
            {"hardware": load_hardware("ring4"), "all_chips": True},
            "has 4 chips and the graph only 3",
        ),
        ({"fixed": {3: 0}}, "fixed node 3 is not a node of 'small'"),
        ({"fixed": {-1: 0}}, "fixed node -1 is not"),
        ({"fixed": {1: 3}}, "node 'b' is fixed to chip 3; chips are 0..2"),
    ],
)
def test_what_does_not_fit_is_refused(fields, words):
    problem = build_problem("abc", [], ring_of(3))
    with pytest.raises(ProblemError) as error:
        replace(problem, **fields)
    assert words in str(error.value)


def test_as_many_samples_are_priced_at_once_as_there_are_seconds_for():
    limited, free = Progress(Budget(seconds=100.0)), Progress(Budget(samples=10))
    assert [limited.affordable(s, 8) for s in (np.inf, 1000.0, 1.0, 0.0)] == [1, 1, 8, 8]
    assert 1 < limited.affordable(30.0, 8) <= 3
    assert free.affordable(np.inf, 8) == 8


def test_progress_keeps_the_best_curve():
    progress = Progress(Budget(samples=10))
    assert [progress.record(v, n) for v, n in ((3.0, 4), (5.0, 1), (2.0, 4))] == [True, False, True]
    assert [(p.samples, p.seconds) for p in progress.curve] == [(4, 3.0), (9, 2.0)]
    assert (progress.samples, progress.best, progress.remaining_samples) == (9, 2.0, 1)
    assert not progress.spent
    progress.record(np.inf)
    assert progress.spent
