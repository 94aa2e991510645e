"""The five environments as agents use them: seeds, masks, rewards, and the vector form."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import SyncVectorEnv
from reference.random_rings import random_ring
from reference.ring_rules import copied_by, partitions
from reference.step_problems import random_step
from runner.suite import Suite

import go_rl.envs
from go_rl.core import DECISIONS, Problem, Status
from go_rl.objectives.ring.workspace import ring_workspace
from go_rl.verify.kernel_rules import legal_kernels
from go_rl.verify.makespan_value import replayed
from go_rl.verify.rules import legal
from go_rl.verify.value import plan_value

COUNT = 2_000
DECISIONS_OF = {
    "Partition": (),
    "Placement": ("placement",),
    "Schedule": ("schedule",),
    "Fusion": ("fusion",),
    "Joint": DECISIONS,
}
FORMS = {"Partition": ("node", "relative", "fix", "sample")}
MASKED = ("node", "relative")
CHECK_EVERY = 10
"""One trial in so many runs Gymnasium's checker, which resets and steps many times."""
VECTOR_STEPS = 12
CLOSE = 1e-6


def trial(index: int) -> str | None:
    """Environment ``index % 5`` in one of its forms, on one or two problems."""
    name = list(DECISIONS_OF)[index % len(DECISIONS_OF)]
    turn = index // len(DECISIONS_OF)
    forms = FORMS.get(name, ("node", "all"))
    problems = [problem_for(name, 2 * turn + i) for i in range(1 + turn % 2)]
    chips = min(problem.hardware.num_devices for problem in problems)
    problems = [p for p in problems if p.hardware.num_devices == chips]
    fields = {
        "problem": problems,
        "action": forms[turn % len(forms)],
        "observation": ("dict", "graph")[turn // 2 % 2],
    }
    wrong = [
        *episodes(name, fields, turn),
        *vector_differences(name, fields, turn),
        *(checker(name, fields) if turn % CHECK_EVERY == 0 else ()),
    ]
    return f"{name}, {fields['action']}: {'; '.join(wrong)}" if wrong else None


def problem_for(name: str, seed: int) -> Problem:
    """A random problem of up to eight nodes, its memory not checked."""
    if name == "Partition":
        return replace(random_ring(seed, 7, 3), memory=False)
    decisions = DECISIONS_OF[name]
    problem = random_step(seed, 8, decisions=decisions, memory_bytes=None)
    if problem.hardware.num_devices == 1 or "placement" in decisions:
        return problem
    return replace(problem, fixed=dict.fromkeys(range(problem.graph.num_nodes), 0))


def episodes(name: str, fields: dict[str, Any], seed: int) -> Iterator[str]:
    """Play an episode on two copies, masks obeyed; they are equal, and the checker agrees."""
    pair = [gymnasium.make(f"go_rl/{name}-v1", **fields).unwrapped for _ in range(2)]
    results: list[Any] = [env.reset(seed=seed) for env in pair]
    pair[0].action_space.seed(seed)
    if not data_equivalence(*results, exact=True):
        yield "two copies reset to different states"
    for _ in range(100):
        info = results[0][-1]
        mask = info["action_mask"] if fields["action"] in MASKED else None
        action = pair[0].action_space.sample(mask=mask)
        results = [env.step(action) for env in pair]
        if not data_equivalence(*results, exact=True):
            yield "two copies of one seed differ"
        if results[0][2]:
            yield from judged(name, fields["problem"], *results[0][1::3])
            return
    yield "no end after 100 steps"


def judged(name: str, problems: list[Problem], reward: Any, info: dict[str, Any]) -> Iterator[str]:
    """What the checker says of the end of an episode."""
    problem, status = problems[info["graph"]], info["status"]
    if name == "Partition" and status is not Status.OK:
        copied = copied_by(ring_workspace(problem).solver.instance.replicated)
        if next(partitions(problem, copied), None) is not None:
            yield f"ended {status} although the masks were obeyed and plans exist"
    if not status.ok:
        return
    value = (ring_value if name == "Partition" else step_value)(problem, info)
    if value is None:
        yield "ended ok with a plan that the checker refuses"
    elif abs(value - info["seconds"]) > CLOSE * value:
        yield f"says {info['seconds']!r} s, the checker {value!r}"
    elif info["seconds"] > 0:
        share = info["reference_seconds"] / info["seconds"]
        wanted = share if name == "Partition" else -np.sqrt(1 / share)
        if share > 0 and not np.isclose(reward, wanted, rtol=CLOSE):
            yield f"the reward is {reward!r}, not {wanted!r}"


def ring_value(problem: Problem, info: dict[str, Any]) -> float | None:
    """The checker's seconds of a partition; None: it refuses."""
    device = np.asarray(info["device"][: problem.graph.num_nodes], np.int16)
    pricer = ring_workspace(problem).pricer
    home, copies = pricer.place(device)[0], pricer.replicas(device)
    return None if legal(problem, home, copies) else plan_value(problem, home, copies)


def step_value(problem: Problem, info: dict[str, Any]) -> float | None:
    """The checker's seconds of a step; None: it refuses."""
    count = problem.graph.num_nodes
    device = np.asarray(info["device"][:count], np.int16)
    chosen = [
        np.asarray(info[key][:count], np.int64) if name in problem.decisions else None
        for name, key in (("schedule", "priority"), ("fusion", "fusion_group"))
    ]
    if legal(problem, device, {}) or legal_kernels(problem, device, *chosen):
        return None
    return replayed(problem, device, *chosen).seconds


def vector_differences(name: str, fields: dict[str, Any], seed: int) -> Iterator[str]:
    """The vector form does what Gymnasium's own makes of the single one."""
    vector = gymnasium.make_vec(f"go_rl/{name}-v1", num_envs=3, **fields)
    one = partial(lambda: gymnasium.make(f"go_rl/{name}-v1", **fields).unwrapped)
    single = SyncVectorEnv([one] * 3, autoreset_mode=vector.metadata["autoreset_mode"])
    single.action_space.seed(seed)
    results: list[Any] = [env.reset(seed=seed) for env in (single, vector)]
    for step in range(VECTOR_STEPS):
        if not data_equivalence(*results, exact=True):
            yield f"the vector form differs after {step} steps"
            return
        action = single.action_space.sample()
        results = [env.step(action) for env in (single, vector)]


def checker(name: str, fields: dict[str, Any]) -> Iterator[str]:
    """Gymnasium's own checker; what it raises is the failure."""
    check_env(gymnasium.make(f"go_rl/{name}-v1", **fields).unwrapped)
    yield from ()


SUITE = Suite(
    name="environments",
    proves=f"the five environments of {go_rl.envs.__name__} repeat from seeds, lead masked agents "
    "to legal plans, pay what the checker computes, and are the same as vectors",
    unit="episodes",
    count=COUNT,
    trial=trial,
)
