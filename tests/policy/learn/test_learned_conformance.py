"""The learning optimizers under the conformance suite of all optimizers."""

import pytest
from objectives.conformance import RingConformance, under_test
from policy.tiny import tiny_agent

from go_rl.policy.learn.config import FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch

pytestmark = pytest.mark.usefixtures("unchecked_types")


LESSON = FineTuneConfig(batch=16, first=16)


class TestPolicy(RingConformance):
    slack_seconds = 90.0
    which = under_test(
        lambda: PolicySearch(tiny_agent(), "order"),
        lambda: FineTuned(tiny_agent(), "placement", LESSON),
    )
