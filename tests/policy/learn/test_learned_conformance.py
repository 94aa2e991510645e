"""The learning optimizers under the conformance suite of all optimizers."""

import pytest
from objectives.conformance import RingConformance, under_test
from policy.tiny import TINY_ORDERS, tiny_agent

from go_rl.policy.agent import new_agent
from go_rl.policy.orders.order_policy_search import OrderPolicySearch
from go_rl.policy.policy_search import PolicySearch

pytestmark = pytest.mark.usefixtures("unchecked_types")


class TestPolicy(RingConformance):
    slack_seconds = 90.0
    which = under_test(
        lambda: PolicySearch(tiny_agent()),
    )


class TestOrderPolicy(RingConformance):
    slack_seconds = 90.0
    which = under_test(
        lambda: OrderPolicySearch(new_agent(TINY_ORDERS, 0)),
    )
