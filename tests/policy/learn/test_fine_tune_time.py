"""Learning on one graph stops when not even a quick batch would end in time."""

import pytest
from policy.tiny import SMALL_LESSON, TINY_NODES
from reference.step_networks import operators, priced

from go_rl.core import Budget, Progress
from go_rl.policy.agent import new_agent
from go_rl.policy.learn import fine_tune
from go_rl.policy.learn.fine_tune import FineTuned


@pytest.mark.slow
def test_no_batch_begins_that_would_take_longer_than_what_is_left(monkeypatch):
    """Batches take 9 (the first compiles), 2, 1, 2 and 2 seconds; then half a second is left."""
    seconds, batches, updates = [9.0, 2.0, 1.0, 2.0, 2.0], [], []
    collect, update = fine_tune.collect, fine_tune.update
    now = [0.0]

    def slowly(*given, **named):
        now[0] += seconds[len(batches)]
        batches.append(now[0])
        return collect(*given, **named)

    def counted(*given, **named):
        updates.append(now[0])
        return update(*given, **named)

    monkeypatch.setattr(Progress, "wall_seconds", property(lambda _: now[0]))
    monkeypatch.setattr(fine_tune, "collect", slowly)
    monkeypatch.setattr(fine_tune, "update", counted)
    learner = FineTuned(new_agent(TINY_NODES, 0), config=SMALL_LESSON)
    problem = priced(operators(3), "p100x2", decisions=("placement",))
    plan = learner.optimize(problem, Budget(seconds=16.5), 0)
    assert batches == [9.0, 11.0, 12.0, 14.0, 16.0]
    assert updates == [9.0, 11.0, 12.0, 14.0]
    assert plan.samples == 1 + 8 + 5 * 8
