"""Proximal policy optimisation in one file, on `go_rl/Partition-v1`: JAX, flax and optax alone.

    python examples/one_file_ppo.py --steps 40000

The agent partitions a small graph of the zoo, or any model file, node by node: each node stays on
the chip that was reached or advances to the next one, and a shaped reward says at once what a move
costs. Throughput is over that of the compiler heuristic. In the manner of CleanRL (Huang et al.,
JMLR 2022): nothing is hidden in a library, and the parts are what one would change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import flax.linen as nn
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax

from go_rl.core import GoRLError
from go_rl.envs import CurrentNode  # importing it registers the environment

EPISODES, STEPS = 4, 128
"""Episodes side by side, and steps of each between two updates."""
EPOCHS, MINIBATCHES = 10, 4
GAMMA, LAMBDA = 1.0, 0.5
"""Discount, and the decay of generalised advantage estimation."""
CLIP, VALUE_SHARE, ENTROPY_SHARE, MAX_NORM, RATE = 0.2, 0.5, 0.01, 0.5, 1e-3
MAX_CHANGE = 0.03
"""Divergence of the policy from that of the rollout at which its epochs end."""
FORBIDDEN = -1e9
"""Logit of a move that the mask forbids."""


class Rollout(NamedTuple):
    """Steps in the order in which they were taken; [STEPS, EPISODES] each."""

    seen: Any
    mask: Any
    action: Any
    log_prob: Any
    value: Any
    reward: Any
    ended: Any
    valid: Any
    """False where the environment started again, and the action did nothing."""


class Agent(nn.Module):
    """Two networks of two layers: the policy and the value of what is seen."""

    actions: int

    @nn.compact
    def __call__(self, seen: Any, mask: Any) -> tuple[Any, Any]:
        """Return log-probabilities [..., actions] and values [...]."""
        policy = self.layers(seen, self.actions, 0.01)
        return nn.log_softmax(jnp.where(mask, policy, FORBIDDEN)), self.layers(seen, 1, 1.0)[..., 0]

    def layers(self, hidden: Any, outputs: int, scale: float) -> Any:
        for _ in range(2):
            hidden = nn.tanh(nn.Dense(64, kernel_init=nn.initializers.orthogonal(2**0.5))(hidden))
        return nn.Dense(outputs, kernel_init=nn.initializers.orthogonal(scale))(hidden)


def made(graph: str, hardware: str) -> Any:
    """Return `EPISODES` environments side by side, each seen by `CurrentNode`."""
    return gymnasium.make_vec(
        "go_rl/Partition-v1", EPISODES, "sync", wrappers=(CurrentNode,), graph=graph,
        hardware=hardware, action="relative", reward="shaped-speed-up",
    )  # fmt: skip


def advantages(rollout: Rollout, last_value: Any) -> np.ndarray:
    """Return the generalised advantage estimates of a rollout (Schulman et al., ICLR 2016)."""
    found, ahead, next_value = np.zeros_like(rollout.value), 0.0, last_value
    for t in reversed(range(len(found))):
        goes_on = 1.0 - rollout.ended[t]
        delta = rollout.reward[t] + GAMMA * goes_on * next_value - rollout.value[t]
        ahead = delta + GAMMA * LAMBDA * goes_on * ahead
        found[t], next_value = ahead, rollout.value[t]
    return found


def loss(weights: Any, agent: Agent, part: Rollout, advantage: Any) -> tuple[Any, Any]:
    """Return the clipped loss of a minibatch (Schulman et al., 2017, equations 7 and 9), and the
    divergence of the policy from that of the rollout."""
    log_probs, value = agent.apply(weights, part.seen, part.mask)
    chosen = jnp.take_along_axis(log_probs, part.action[:, None], 1)[:, 0]
    ratio = jnp.exp(chosen - part.log_prob)
    free = part.valid & (part.mask.sum(1) > 1)  # a single move that is allowed teaches nothing
    goal = advantage - jnp.mean(advantage, where=free)
    goal = goal / (jnp.std(advantage, where=free) + 1e-8)
    gain = jnp.minimum(ratio * goal, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * goal)
    entropy = -jnp.where(part.mask, jnp.exp(log_probs) * log_probs, 0.0).sum(1)
    missed = jnp.mean((value - part.value - advantage) ** 2, where=part.valid)
    total = VALUE_SHARE * missed - jnp.mean(gain + ENTROPY_SHARE * entropy, where=free)
    return total, jnp.mean(ratio - 1 - jnp.log(ratio), where=free)


def train(
    env: Any, steps: int, seed: int, ended: Callable[[int, float], None]
) -> Iterator[Callable[[Any, Any], Any]]:
    """Train; yield the policy before and after: a function that draws actions by what is seen and
    the masks. ``ended`` is told of each episode: steps taken by then, and its throughput."""
    random, key = np.random.default_rng(seed), jax.random.key(seed)
    agent = Agent(int(env.single_action_space.n))
    seen, infos = env.reset(seed=seed)
    weights = agent.init(key, seen, infos["action_mask"])
    updates = -(-steps // (EPISODES * STEPS))
    rate = optax.linear_schedule(RATE, 0.0, updates * EPOCHS * MINIBATCHES)
    optimiser = optax.chain(optax.clip_by_global_norm(MAX_NORM), optax.adam(rate, eps=1e-5))
    state = optimiser.init(weights)
    evaluated = jax.jit(agent.apply)

    @jax.jit
    def improved(weights: Any, state: Any, part: Rollout, advantage: Any) -> tuple[Any, Any, Any]:
        slope, change = jax.grad(loss, has_aux=True)(weights, agent, part, advantage)
        update, state = optimiser.update(slope, state)
        return optax.apply_updates(weights, update), state, change

    def drawn(weights: Any, seen: Any, masks: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        log_probs, values = (np.asarray(part) for part in evaluated(weights, seen, masks))
        actions = (log_probs + random.gumbel(size=log_probs.shape)).argmax(1)
        return actions, log_probs[np.arange(len(actions)), actions], values

    yield lambda seen, masks, first=weights: drawn(first, seen, masks)[0]
    starts, taken = np.zeros(EPISODES, np.bool_), 0
    for _ in range(updates):
        rows = []
        for _ in range(STEPS):
            masks = np.array(infos["action_mask"], np.bool_)
            action, log_prob, value = drawn(weights, seen, masks)
            now = seen.copy(), masks, action, log_prob, value
            seen, reward, over, _, infos = env.step(action)
            rows.append((*now, reward.astype(np.float32), over.astype(np.float32), ~starts))
            starts, taken = over, taken + EPISODES
            for i in np.flatnonzero(over):
                ended(taken, infos["reference_seconds"][i] / infos["seconds"][i])
        rollout = Rollout(*map(np.stack, zip(*rows, strict=True)))
        last = np.asarray(evaluated(weights, seen, np.array(infos["action_mask"], np.bool_))[1])
        flat = jax.tree.map(
            lambda part: part.reshape(-1, *part.shape[2:]), (rollout, advantages(rollout, last))
        )
        for _ in range(EPOCHS):
            changes = []
            for rows_of in np.split(random.permutation(EPISODES * STEPS), MINIBATCHES):
                part = jax.tree.map(lambda each, rows=rows_of: each[rows], flat)
                weights, state, change = improved(weights, state, *part)
                changes.append(float(change))
            if np.mean(changes) > MAX_CHANGE:
                break
    yield lambda seen, masks: drawn(weights, seen, masks)[0]


def throughputs(env: Any, policy: Callable[[Any, Any], Any], episodes: int) -> list[float]:
    """Return the throughput over the heuristic's of episodes of a policy; 0 of a failure."""
    found: list[float] = []
    seen, infos = env.reset()
    while len(found) < episodes:
        seen, _, over, _, infos = env.step(policy(seen, np.array(infos["action_mask"], np.bool_)))
        found += [infos["reference_seconds"][i] / infos["seconds"][i] for i in np.flatnonzero(over)]
    return found


def main() -> None:
    """Train, and compare with the agent before it has learned."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="zoo:vae-3-layers", help="model file or zoo:NAME")
    parser.add_argument("--hardware", default="ring4")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.steps < 1 or args.seed not in range(2**31):
        parser.error("--steps must be >= 1, --seed >= 0 and below 2^31")
    env, curve = made(args.graph, args.hardware), []
    policies = train(env, args.steps, args.seed, lambda *point: curve.append(point))
    for label, policy in zip(("untrained", "trained"), policies, strict=True):
        found = throughputs(made(args.graph, args.hardware), policy, 30)
        print(f"{label}: throughput over the heuristic {np.mean(found):.3f} +- {np.std(found):.3f}")


if __name__ == "__main__":
    try:
        main()
    except GoRLError as error:  # its message is a sentence for the user
        sys.exit(str(error))
