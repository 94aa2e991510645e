"""Several processes, and several devices, learn what one does."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from policy.tiny import equal

from go_rl.core import TrainingError
from go_rl.policy.learn.processes.config import ProcessConfig
from go_rl.policy.learn.processes.group import Group
from go_rl.policy.weights import load_weights

TRAIN = Path(__file__).parent / "processes_program.py"
EXCHANGE = Path(__file__).parent / "exchange_program.py"
ROOT = Path(__file__).parents[3]


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return taken.getsockname()[1]


class Pair:
    """Two processes of a program; what they said, and their exit codes."""

    def __init__(self, program: Path, *words: str, cache: Path | None = None) -> None:
        address = f"localhost:{free_port()}"
        self.processes = [
            start(program, *words[:1], address, "2", str(i), *words[1:], cache=cache)
            for i in (1, 0)
        ][::-1]
        self.said = [each.communicate(timeout=240)[1] for each in self.processes]
        self.codes = [each.returncode for each in self.processes]


def start(program: Path, *words: str, cache: Path | None = None) -> subprocess.Popen[str]:
    """Start a program; compiled code is kept in ``cache``."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    env = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    if cache is not None:
        env |= {"JAX_COMPILATION_CACHE_DIR": str(cache)}
        env |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
    return subprocess.Popen(
        [sys.executable, str(program), *words], env=env, stderr=subprocess.PIPE, text=True
    )


def test_one_process_or_those_of_a_launcher():
    assert not ProcessConfig().several
    assert ProcessConfig(launcher="slurm").several


@pytest.mark.slow
def test_a_launcher_that_is_not_there_is_named():
    code = (
        "from go_rl.policy.learn.processes.config import ProcessConfig as P\n"
        "from go_rl.policy.learn.processes.join import joined\n"
        "with joined(P(launcher='slurm'), P()): pass"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    path = env | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    said = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True)
    assert "no environment of the launcher 'slurm'" in said.stderr


@pytest.mark.slow
def test_two_processes_exchange_values_and_errors():
    pair = Pair(EXCHANGE)
    assert pair.codes == [2, 2], pair.said
    assert "values ['zero', 'one'], first zero, shared [0, 10, 20, 30, 40]" in pair.said[0]
    assert "values ['zero', 'one'], first zero, shared [0, 10, 20, 30, 40]" in pair.said[1]
    assert "go-rl: process 1 of 2: no more paper" in pair.said[0]
    assert "go-rl: no more paper" in pair.said[1]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Compiled code, shared by the runs."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def alone(tmp_path_factory, cache):
    """The folder of a run in one process."""
    folder = tmp_path_factory.mktemp("alone")
    process = start(TRAIN, str(folder), "none", "1", "0", cache=cache)
    assert process.communicate(timeout=240)[1] is not None
    assert process.returncode == 0
    return folder


def same(one: Path, two: Path) -> bool:
    """Whether two runs wrote the same log and, bit for bit, the same weights."""
    first, second = (load_weights(each / "weights.npz").agent.params for each in (one, two))
    return (
        equal(first, second) and (one / "log.jsonl").read_text() == (two / "log.jsonl").read_text()
    )


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(alone, cache, tmp_path):
    pair = Pair(TRAIN, str(tmp_path), cache=cache)
    assert pair.codes == [0, 0], pair.said
    assert same(alone, tmp_path)


@pytest.mark.slow
def test_a_killed_process_ends_the_other_and_the_run_goes_on(alone, cache, tmp_path):
    pair = Pair(TRAIN, str(tmp_path), "killed", cache=cache)
    assert pair.codes == [2, -9], pair.said
    assert "another process has ended or cannot be reached" in pair.said[0]
    again = start(TRAIN, str(tmp_path), "none", "1", "0", cache=cache)  # also in one process
    again.communicate(timeout=240)
    assert again.returncode == 0
    assert same(alone, tmp_path)


def test_more_processes_than_problems_are_refused(tmp_path):
    from policy.learn.toys import CONFIG

    from go_rl.policy.learn.pretrain import pretrain

    with pytest.raises(TrainingError, match="raise problems to at least 2"):
        pretrain(replace(CONFIG, problems=1), tmp_path, group=Group(0, 2))


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
