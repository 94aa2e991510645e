"""The learning optimizers under the conformance suite of all optimizers."""

from __future__ import annotations

import pytest
from objectives.conformance import RingConformance
from policy.tiny import tiny_agent

from go_rl.core import Optimizer, Problem
from go_rl.policy.learn.config import FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch

pytestmark = pytest.mark.usefixtures("unchecked_types")


class TestPolicyByOrder(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return PolicySearch(tiny_agent(), "order")


class TestPolicyByPlacement(RingConformance):
    def make(self, problem: Problem) -> Optimizer:
        return PolicySearch(tiny_agent(), "placement")


class TestFineTunedByOrder(RingConformance):
    slack_seconds = 90.0

    def make(self, problem: Problem) -> Optimizer:
        return FineTuned(tiny_agent(), "order", FineTuneConfig(batch=16, first=16))


class TestFineTunedByPlacement(RingConformance):
    slack_seconds = 90.0

    def make(self, problem: Problem) -> Optimizer:
        return FineTuned(tiny_agent(), "placement", FineTuneConfig(batch=16, first=16))
