"""A tiny policy and tiny graphs, shared by the tests of policy and training: equal configurations
and sizes share their compilations."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from reference.small_rings import ring_problem
from reference.step_problems import step_problem

from go_rl.core import OpGraph, OpKind, Problem
from go_rl.graphs.readers.archive import save_graph
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.index import generated_name
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS
from go_rl.policy.agent import Actions, Agent, new_agent
from go_rl.policy.config import (
    DispatchPolicyConfig,
    NodesPolicyConfig,
    OrdersPolicyConfig,
    PolicyConfig,
    RingPolicyConfig,
)
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.learn.config import FINE_TUNING, PPOConfig
from go_rl.policy.makespan_plans import MakespanPlans
from go_rl.policy.observations.buckets import Padded, pad
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.policy.ring.observation import RING_COLUMNS, RING_HARDWARE

SIZES = {"hidden": 8, "sage_layers": 1, "attention_layers": 1, "heads": 2, "segment": 16}
TINY = RingPolicyConfig(**SIZES, decoder_width=8, iterations=2)
NO_ATTENTION = {**SIZES, "attention_layers": 0}
"""Policies share the encoder: that of the ring attends, and the others compile less."""
TINY_NODES = NodesPolicyConfig(**NO_ATTENTION, decoder_width=8, directions=2)
TINY_DISPATCH = DispatchPolicyConfig(**NO_ATTENTION, prototypes=16)
TINY_ORDERS = OrdersPolicyConfig(**NO_ATTENTION, prototypes=4)
SMALL_LESSON = replace(
    FINE_TUNING["nodes"], batch=8, first=8,
    ppo=PPOConfig(learning_rate=3e-3, epochs=4, entropy=1e-3),
)  # fmt: skip
"""What is drawn, judged and remembered comes in eights: programs of one shape."""


@cache
def tiny_agent() -> Agent:
    """Untrained; decoders of an untrained policy ignore the graph."""
    return new_agent(TINY, 0)


@cache
def tiny_makespan_agent() -> Agent:
    """Untrained."""
    return new_agent(TINY_DISPATCH, 0)


def drawn_plans(agent: Agent, decoder: MakespanPlans, noise: np.ndarray, seed: int) -> Actions:
    """Decisions of an agent, neither decoded nor priced."""
    key = jax.random.key(seed)
    return decoder.draw(agent, agent.encode(decoder.padded), "plan", noise, key)


@cache
def two_chains() -> DispatchPlans:
    """Two independent chains of matrix products on two devices; transfers are expensive."""
    edges = [(i, i + 2, 2.0) for i in range(6)]
    problem = step_problem([3.0] * 8, edges, 2, kinds=[OpKind.MATMUL] * 8, decisions=("placement",))
    return DispatchPlans(MakespanWorkspace(problem))


def lively(config: PolicyConfig, spread: float = 0.3) -> Agent:
    """Random weights everywhere, so that every input shows in the output."""
    agent = new_agent(config, 0)
    leaves, tree = jax.tree.flatten(agent.params)
    rng = np.random.default_rng(1)
    moved = [x + jnp.asarray(spread * rng.standard_normal(x.shape), jnp.float32) for x in leaves]
    return agent.having(jax.tree.unflatten(tree, moved))


@cache
def lively_agent() -> Agent:
    """A policy of the ring."""
    return lively(TINY)


def equal(one: Any, two: Any) -> bool:
    """Whether two trees of arrays are the same, bit for bit."""
    one, two = jax.tree.leaves(one), jax.tree.leaves(two)
    return len(one) == len(two) and all(
        np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(one, two, strict=True)
    )


def chain(nodes: int = 8, chips: int = 4, **options) -> Problem:
    """A chain of equal nodes."""
    return ring_problem(nodes, [(i, i + 1) for i in range(nodes - 1)], chips, **options)


def lattice(seed: int = 0, nodes: int = 12, chips: int = 4, **options) -> Problem:
    """A random directed acyclic graph with uneven work."""
    rng = np.random.default_rng(seed)
    edges = [(u, v) for v in range(nodes) for u in range(v) if rng.random() < 0.25]
    seconds = rng.integers(1, 9, nodes).astype(float).tolist()
    return ring_problem(nodes, edges, chips, seconds=seconds, **options)


def random_graph(seed: int, units: int, chips: int = 3) -> PolicyGraph:
    """Random features and edges; places are those of random topological orders."""
    rng = np.random.default_rng(seed)
    pairs = [(u, v) for v in range(units) for u in range(max(0, v - 5), v) if rng.random() < 0.3]
    senders, receivers = np.array(pairs or np.zeros((0, 2)), np.int32).T
    places = np.stack([(np.arange(units) + rng.random(units)) / units for _ in REFERENCE_ORDERS], 1)
    share = rng.random(units)
    return PolicyGraph(
        features=rng.standard_normal((units, RING_COLUMNS.features)).astype(np.float32),
        places=places.astype(np.float32),
        share=(share / share.sum()).astype(np.float32),
        senders=senders,
        receivers=receivers,
        hardware=rng.random(len(RING_HARDWARE)).astype(np.float32),
        num_devices=chips,
    )


def small_padded(seed: int = 0, units: int = 24) -> Padded:
    """A random graph in the smallest bucket."""
    return pad(random_graph(seed, units))


@cache
def network(layers: int) -> OpGraph:
    """A training iteration, about ten nodes a layer."""

    def loss(weights, x):
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return (x * x).sum()

    def iteration(weights, x):
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(loss)(weights, x))

    weights = [jax.ShapeDtypeStruct((32, 32), jnp.float32)] * layers
    return trace_jax(iteration, weights, jax.ShapeDtypeStruct((4, 32), jnp.float32))


def small_generated(folder: Path, layers: Mapping[int, int]) -> Path:
    """Write a folder in which networks of so many layers stand for the generated graphs of seeds;
    tracing those takes seconds."""
    folder.mkdir(parents=True)
    for seed, depth in layers.items():
        save_graph(network(depth), folder / f"{generated_name(seed)}.npz")
    return folder
