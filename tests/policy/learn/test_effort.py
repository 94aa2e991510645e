"""What training took: counted over interruptions, and read from cards of every age."""

import pytest

from go_rl.core import CheckpointError
from go_rl.policy.effort import UNRECORDED, Effort, effort_of, effort_sentence
from go_rl.policy.learn.config import RingTrainConfig
from go_rl.policy.learn.run_state.effort import FILE, EffortLog
from go_rl.policy.weights import load_weights, shipped_weights

CONFIG = RingTrainConfig(attempts=3)


def test_a_resumed_run_goes_on_counting(tmp_path):
    first = EffortLog(tmp_path, CONFIG)
    first.count(100)
    once = effort_of(first.card())
    second = EffortLog(tmp_path, CONFIG)
    second.count(20)
    twice = effort_of(second.card())
    assert once is not None
    assert twice is not None
    assert (once.samples, twice.samples, twice.attempts) == (100, 120, 3)
    assert twice.core_hours >= once.core_hours


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(CheckpointError, match=r"effort.json: is damaged"):
        EffortLog(tmp_path, CONFIG)


@pytest.mark.parametrize("name", sorted({*shipped_weights()} - {"dispatch-2.5", "partition-1.1"}))
def test_shipped_files_without_a_record_say_so(name):
    card = load_weights(name).card
    assert effort_of(card) is None
    assert effort_sentence(card) == UNRECORDED


def test_the_sentence():
    card = Effort(1.25, 57_600, 2).to_card()
    assert effort_sentence(card) == (
        "effort of training: 1.25 core-hours, 57,600 samples, 2 attempts"
    )
    assert effort_sentence({"effort": {"core_hours": "much"}}) == UNRECORDED
