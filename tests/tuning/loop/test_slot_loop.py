"""The slot loop: slots, lapses, the end of operators, and runs that were killed."""

import numpy as np
import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.journal import FileJournal
from go_rl.tuning.loop.schedulers import scheduler_of
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.pools.replay import ReplayBackend
from tests.tuning.toy_pools import InOrder, paths_of, pool, pool_set

FALLING = [8e-3, 4e-3, 2e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3]


def tune(pools, name="round-robin", journal=None, listener=None, known=None, **config):
    given = {"seconds": 100.0, "batch": 2, "patience": 3, "slot": 2.0, **config}
    scheduler = scheduler_of(name, paths=paths_of(pools))
    return tune_operators(
        ReplayBackend(pools), scheduler, InOrder, SlotConfig(**given), journal=journal,
        listener=listener, known=known,
    )  # fmt: skip


def test_an_operator_without_a_candidate_that_works_is_given_up():
    """The other goes on, and the network's latency is without it."""
    pools = pool_set(
        pool("conv2d a", 3, 1e7, [np.nan] * 6), pool("conv2d b", 2, 1e7, [4e-3, 2e-3, 1e-3, 1e-3])
    )
    for scheduler in ("round-robin", "dynamic-round-robin", "rounds", "ansor"):
        state = tune(pools, scheduler)
        assert [each.given_up for each in state.operators] == [True, False]
        assert len(state.operators[0].curve) == 3  # the patience of these tests
        assert state.latency == pytest.approx(2e-3)
        assert state.untuned_latency < np.inf


def test_no_candidate_that_works_of_any_operator_is_an_error():
    pools = pool_set(pool("conv2d a", 1, 1e7, [np.nan, np.nan, np.nan, np.nan]))
    with pytest.raises(TuningError, match="conv2d a: none of 3 candidates works"):
        tune(pools)
    with pytest.raises(TuningError, match="no tunable operator"):
        tune(pool_set())


def test_no_more_trials_are_made_than_asked_for_and_more_may_be_asked_for(tmp_path):
    pools = pool_set(pool("conv2d a", 1, 1e7, FALLING), pool("conv2d b", 1, 1e7, FALLING))

    def once(trials, folder="a"):
        journal = FileJournal(tmp_path / f"{folder}.jsonl", {"seed": 0})
        return tune(pools, "dynamic-round-robin", journal, trials=trials)

    assert [once(trials, str(trials)).trials for trials in (1, 2, 5)] == [1, 2, 5]
    first, again = once(7), once(7)
    assert (first.trials, again.summary()) == (7, first.summary())
    assert once(9).trials == 9
    with pytest.raises(TuningError, match="trials must be >= 1, not 0"):
        SlotConfig(trials=0)


def many_pools():
    rng = np.random.default_rng(5)
    return pool_set(*(
        pool(f"conv2d {k}", k + 1, 1e7, 1e-4 + 1e-2 * rng.random(60) ** 3, 0.1 + 0.1 * k)
        for k in range(4)
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace(b'"version":1', b'"version":2'), "of version 2"),
        (lambda text: text.replace(b'"seed":3', b'"seed":4', 1), "another run .*differs in seed"),
        (lambda text: b"what\n" + text, "line 1 does not say"),
        (lambda text: text.replace(b'"phase":"slot"', b'"phase":"sl"', 1), "line .* is damaged"),
    ],
)
def test_journals_that_are_not_of_this_run_are_refused(tmp_path, change, said):
    path, pools = tmp_path / "journal.jsonl", many_pools()
    about = {"seed": 3}
    tune(pools, journal=FileJournal(path, about), seconds=5.0)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(TuningError, match=said):
        FileJournal(path, about)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seconds": 0.0}, "seconds must be finite and > 0"),
        ({"seconds": float("inf")}, "seconds must be finite and > 0"),
        ({"batch": 0}, "batch must be >= 1"),
        ({"patience": 0}, "patience must be >= 1"),
        ({"seed": -1}, "seed must be >= 0"),
        ({"slot": 0.0}, "slot must be finite and > 0"),
    ],
)
def test_configurations_out_of_range_are_refused(given, said):
    with pytest.raises(TuningError, match=said):
        SlotConfig(**given)
