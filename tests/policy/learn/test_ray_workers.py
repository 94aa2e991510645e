"""Ray workers give the same batches as this process, and say which problem they died on."""

from itertools import chain

import numpy as np
import pytest

from go_rl.core import TrainingError, load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.zoo import zoo_graph
from go_rl.policy.agent import new_agent
from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.learn.collect import Credit, TrainingCase, collect_share, pricer
from go_rl.policy.learn.processes.group import everything
from go_rl.policy.ring.ring_plans import RingPlans

ray = pytest.importorskip("ray", reason="Ray is an optional extra: pip install 'go_rl[ray]'")


def _cases() -> list[TrainingCase]:
    options = ProblemOptions(rules=rule_set("strict"), memory=False)
    names = ("ncf", "vae-3-layers")
    problems = (make_problem(zoo_graph(n), load_hardware("ring6"), options) for n in names)
    return [TrainingCase(n, RingPlans(p)) for n, p in zip(names, problems, strict=True)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_and_this_process_agree_bit_for_bit():
    agent = new_agent(RingPolicyConfig(hidden=8, heads=2, decoder_width=4), 0)
    sizes, found = {"placement": 3}, []
    cases = list(zip(_cases(), (1, 2), strict=True))
    for run in (pricer("local"), pricer("ray")):
        credit = Credit()
        batches = [
            collect_share(agent, cases, sizes, credit, everything(len(cases)), run).own
            for _ in range(2)
        ]
        found.append((batches, credit.baseline.mean, credit.baseline.variance))
    (here, *learned_here), (there, *learned_there) = found
    assert learned_here == learned_there
    for ours, theirs in zip(chain(*here), chain(*there), strict=True):
        rewards = [x.rollouts["placement"].reward for x in (ours, theirs)]
        np.testing.assert_array_equal(*rewards)
        possible = [
            x.batch.groups["placement"].actions["placement"].possible for x in (ours, theirs)
        ]
        np.testing.assert_array_equal(*possible)
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dead_worker_is_named_with_its_problem(monkeypatch):
    from go_rl.policy.learn import ray_workers

    def die(self, name, proposals, seed):
        import os

        os._exit(1)

    monkeypatch.setattr(ray_workers.RolloutWorker, "price", die)
    agent = new_agent(RingPolicyConfig(hidden=8, heads=2, decoder_width=4), 0)
    run = ray_workers.ray_pricer(1)
    cases = [(_cases()[0], 1)]
    with pytest.raises(TrainingError, match="worker died while it worked on 'ncf'"):
        collect_share(agent, cases, {"placement": 2}, Credit(), everything(1), run)
    ray.shutdown()
