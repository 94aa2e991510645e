"""The replayer: literal times, streams, cores, an obvious twin, what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from go_rl.costs.operators.launches.launch_replay import Operators, ReplayError, replay


def _operators(duration, before, device=None, gap=0.0):
    device = [0] * len(duration) if device is None else device
    return Operators(np.array(duration, float), tuple(before), np.array(device, np.int64), gap)


def _twin(duration, before, device, gap):
    """The same rule, by looking at all operators each time."""
    count, done, time, end = len(duration), set(), [0.0] * (max(device) + 1), {}
    while len(done) < count:
        ready = {
            u: max((end[b] for b in before[u]), default=0.0)
            for u in range(count) if u not in done and set(before[u]) <= done
        }  # fmt: skip
        chosen = min({device[u] for u in ready}, key=lambda d: (time[d], d))
        u = min((u for u in ready if device[u] == chosen), key=lambda u: (ready[u], u))
        time[chosen] = max(time[chosen], ready[u]) + duration[u] + gap
        end[u] = time[chosen]
        done.add(u)
    return max(time)


@given(st.data())
def test_it_agrees_with_its_twin(data):
    count = data.draw(st.integers(1, 9))
    duration = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    before = [
        tuple(data.draw(st.sets(st.integers(0, u - 1), max_size=3))) if u else ()
        for u in range(count)
    ]
    device = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    found = replay(_operators(duration, before, device, 0.25)).seconds
    assert found == _twin(duration, before, device, 0.25)
    assert found <= sum(duration) + 0.25 * count
    assert found >= max(sum(d for d, at in zip(duration, device, strict=True) if at == own)
                        for own in device)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [(), ()]), "equally many"),
        (([-1.0], [()]), "not negative"),
        (([np.inf], [()]), "finite"),
        (([1.0], [(1,)]), "is not there"),
        (([1.0], [()], [-1]), "numbered from 0"),
        (([1.0], [()], [0], -1.0), "gap must not be negative"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ReplayError, match=message):
        _operators(*arguments)


def test_circles_are_refused():
    with pytest.raises(ReplayError, match="in a circle"):
        replay(_operators([1.0, 1.0], [(1,), (0,)]))
