"""Ray workers give the same batches as this process, and say which problem they died on."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from go_rl.train.baseline import RunningBaseline

from go_rl.core import TrainingError, load_hardware, rule_set
from go_rl.cost import ProblemOptions, make_problem
from go_rl.policy.agent import new_agent
from go_rl.policy.config import PolicyConfig
from go_rl.train.collect import Case
from go_rl.train.config import SampleConfig
from go_rl.train.workers import collector, local_collector
from go_rl.zoo import zoo_graph

ray = pytest.importorskip("ray", reason="Ray is an optional extra: pip install 'go_rl[ray]'")


def _cases() -> list[Case]:
    options = ProblemOptions(rules=rule_set("strict"), memory=False)
    names = ("ncf", "vae-3-layers")
    return [Case(n, make_problem(zoo_graph(n), load_hardware("ring6"), options)) for n in names]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ray_and_this_process_agree_bit_for_bit():
    agent = new_agent(PolicyConfig(hidden=8, heads=2, decoder_width=4), 0)
    config, found = SampleConfig(3, 3), []
    for run in (local_collector(), collector("ray")):
        baseline = RunningBaseline()
        batches = [run(agent, _cases(), config, baseline, [1, 2]) for _ in range(2)]
        found.append((batches, baseline.mean, baseline.variance))
    (here, *learned_here), (there, *learned_there) = found
    assert learned_here == learned_there
    for ours, theirs in zip(chain(*here), chain(*there), strict=True):
        for task in ("order", "placement"):
            np.testing.assert_array_equal(ours.rewards(task), theirs.rewards(task))
        assert ours.batch.placement is not None
        assert theirs.batch.placement is not None
        np.testing.assert_array_equal(
            ours.batch.placement.possible, theirs.batch.placement.possible
        )
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dead_worker_is_named_with_its_problem(monkeypatch):
    from go_rl.train import ray_workers

    def die(self, name, asked):
        import os

        os._exit(1)

    monkeypatch.setattr(ray_workers.RolloutWorker, "answer", die)
    agent = new_agent(PolicyConfig(hidden=8, heads=2, decoder_width=4), 0)
    run = ray_workers.ray_collector(1)
    with pytest.raises(TrainingError, match="worker died while it worked on 'ncf'"):
        run(agent, _cases()[:1], SampleConfig(2, 2), RunningBaseline(), [1])
    ray.shutdown()
