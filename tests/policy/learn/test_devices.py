"""Two devices learn what one learns: run in processes of their own, as JAX counts devices once."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys
import jax, numpy as np
from go_rl.core import load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.policy.agent import new_agent
from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.learn.collect import TrainingCase, Credit, collect
from go_rl.policy.learn.config import PPOConfig
from go_rl.policy.learn.devices import on_all_devices, split_samples
from go_rl.policy.learn.ppo import new_learner, update
from go_rl.graphs.zoo import zoo_graph

options = ProblemOptions(rules=rule_set("strict"), memory=False)
problem = make_problem(zoo_graph("ncf"), load_hardware("ring6"), options)
case = TrainingCase("ncf", RingPlans(problem))
agent = new_agent(RingPolicyConfig(hidden=8, heads=2, decoder_width=4), 0)
config = PPOConfig(epochs=2)
batch = collect(agent, case, {"placement": 4}, Credit(), 0).batch
learner = on_all_devices(new_learner(agent.params, config))
shared = split_samples(batch)
pieces = len(shared.groups["placement"].advantage.sharding.device_set)
learner, _ = update(agent.policy, config, learner, [shared])
total = [float(np.asarray(x, np.float64).sum()) for x in jax.tree.leaves(learner.params)]
json.dump({"devices": jax.device_count(), "pieces": pieces, "sums": total}, sys.stdout)
"""


def _learn(devices: int) -> dict:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(answer.stdout)


@pytest.mark.slow
def test_two_devices_share_the_samples_and_learn_the_same():
    one, two = _learn(1), _learn(2)
    assert (one["devices"], two["devices"], two["pieces"]) == (1, 2, 2)
    np.testing.assert_allclose(two["sums"], one["sums"], rtol=1e-4, atol=1e-4)
