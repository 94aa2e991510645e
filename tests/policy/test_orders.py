"""The orders policy of rings: prototypes first, plans as `OrderSearch` cuts them, training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY_ORDERS, tiny_agent
from reference.layered import layered_ring

from go_rl import load
from go_rl.compare.portfolio.portfolio import run
from go_rl.core import Budget, OpGraph, PolicyError, Problem
from go_rl.graphs.readers.archive import save_graph
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.objectives.ring.methods.order_search import COARSE, OrderSearch
from go_rl.objectives.ring.order_weights import WIDTH, first_weights
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.learn.config import OrdersTrainConfig
from go_rl.policy.learn.prototypes.choice import having_prototypes
from go_rl.policy.learn.prototypes.problems import training_problems
from go_rl.policy.learn.prototypes.run import pretrain_prototypes
from go_rl.policy.orders.order_policy_search import OrderPolicySearch
from go_rl.policy.orders.orders_plans import OrdersPlans
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.prototypes.plans import preferred
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.verify.check_plan import check_plan


def ring() -> Problem:
    return layered_ring(1, 24, 4, "strict")


def given(weights: np.ndarray) -> Agent:
    """An untrained policy with these prototypes, in their order."""
    return having_prototypes(new_agent(TINY_ORDERS, 0), weights)


def test_seconds_are_those_of_the_plans():
    """Up to the step of the bisection; cuts need no repair where memory is ample."""
    plans = OrdersPlans(ring())
    weights = first_weights(4, 0)
    seconds = plans.seconds(weights)
    priced = plans.price({"weights": weights}, 0).priced.seconds
    assert ((priced <= seconds * (1 + 1e-9)) & (seconds <= priced * (1 + COARSE))).all()
    most = float(np.median(seconds))
    some = plans.seconds(weights, most)
    assert np.isfinite(some).any()
    assert some[np.isfinite(some)] == pytest.approx(seconds[np.isfinite(some)], rel=COARSE)


def test_prototypes_come_first_and_the_search_goes_on_from_them():
    problem, weights = ring(), first_weights(6, 3)[[5, 4, 1, 0]]
    agent, plans = given(weights), OrdersPlans(problem)
    assert preferred(agent, plans) == pytest.approx(weights)
    few = OrderPolicySearch(agent).optimize(problem, Budget(samples=4), 0)
    assert few.value <= plans.seconds(weights).min() * (1 + 1e-9)
    more = OrderPolicySearch(agent).optimize(problem, Budget(samples=60), 0)
    same = OrderSearch(weights).optimize(problem, Budget(samples=60), 0)
    assert check_plan(more, problem).ok
    assert (more.value, more.optimizer) == (same.value, "order-policy")
    assert more.value <= few.value


def test_the_policy_alone_and_its_control_arms_draw_from_it():
    problem, agent = ring(), given(first_weights(4, 0))
    plan = PolicySearch(agent).optimize(problem, Budget(samples=4), 0)
    assert check_plan(plan, problem).ok
    arm = OrderPolicySearch(agent, control="untrained").optimize(problem, Budget(samples=8), 0)
    assert arm.optimizer == "order-policy (untrained)"


def test_auto_takes_user_weights_of_orders():
    agent = given(np.zeros((4, WIDTH), np.float32))
    names = [plan.optimizer for plan in run(ring(), budget=Budget(samples=400), agent=agent).plans]
    assert "order-policy" in names
    assert "order-search" not in names


def test_weights_of_another_policy_are_refused_and_auto_knows_better():
    with pytest.raises(PolicyError, match="an orders policy, not of a ring policy"):
        OrderPolicySearch(tiny_agent()).optimize(ring(), Budget(samples=2), 0)
    plans = run(ring(), budget=Budget(samples=400), agent=tiny_agent()).plans
    names = [plan.optimizer for plan in plans]
    assert {"order-search", "policy"} <= set(names)
    assert "order-policy" not in names


def branches(width: int) -> OpGraph:
    """Two branches of unlike lengths that meet."""

    def function(weights, x):
        one, other = x, x
        for i, weight in enumerate(weights):
            one = jnp.tanh(one @ weight)
            other = jax.nn.relu(other @ weight) if i % 2 else other
        return one + other

    shapes = [jax.ShapeDtypeStruct((width, width), jnp.float32)] * 6
    return trace_jax(function, shapes, jax.ShapeDtypeStruct((4, width), jnp.float32))


def test_training_makes_weights_that_are_read_again(tmp_path):
    graphs = []
    for width in (32, 48, 64):
        graphs.append(str(tmp_path / f"branches-{width}.npz"))
        save_graph(branches(width), graphs[-1])
    config = OrdersTrainConfig(
        graphs=tuple(graphs), hardware=("ring6", "ring16"), rollouts=32, candidates=3, judged=3,
        choices=23, problems=1, best_of=(1, 2), held_out=0.4, policy=TINY_ORDERS,
    )  # fmt: skip
    weights = pretrain_prototypes(config, tmp_path / "run")
    assert weights.card["training"]["hardware"] == ("ring6", "ring16")
    found = load_weights(tmp_path / "run" / "weights.npz").agent
    problem = ring()
    plan = OrderPolicySearch(found).optimize(problem, Budget(samples=8), 0)
    assert check_plan(plan, problem).ok


def test_weights_of_orders_keep_their_form(tmp_path):
    path = tmp_path / "mine.npz"
    save_weights(Weights(given(first_weights(4, 1)), "mine", {}), path)
    assert load_weights(path).agent.config == TINY_ORDERS


def test_generated_networks_teach_by_their_inference_functions():
    few, many = (training_problems(OrdersTrainConfig(generated=n, zoo=False)) for n in (3, 8))
    assert many[:3] == few
    assert many[0].graph == "generated-2-0-inference"
    assert many[0].name.endswith(".strict.analytical")
    graph = load(f"zoo:{many[4].graph}")
    assert not graph.is_backward.any()
