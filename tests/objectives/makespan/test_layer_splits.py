"""Splits by layers as people make them, on a chain of layers."""

from dataclasses import replace

import pytest
from reference.step_problems import step_problem

from go_rl.core import Budget, Device, OpKind
from go_rl.objectives.makespan.search import MAKESPAN_SEARCH
from go_rl.verify.check_plan import check_plan


def layered(devices: tuple[Device, ...], work: list[float], weights: list[float]):
    """One matrix product a layer; a second kind of device is half as fast."""
    count = len(work)
    seconds = [work, [2 * x for x in work]][: len({device.kind for device in devices})]
    problem = step_problem(
        seconds, [(i, i + 1, 0.0) for i in range(count - 1)], len(devices),
        kinds=[OpKind.MATMUL] * count, names=[f"net/layer_{i}/dot" for i in range(count)],
        weights=weights, chips=list(devices), memory_bytes=10.0,
    )  # fmt: skip
    return replace(problem, decisions=("placement",))


FAST = Device("kind0", 1.0, 10.0, 1.0)
SLOW = Device("kind1", 1.0, 10.0, 1.0)


@pytest.mark.parametrize(
    ("method", "devices", "work", "weights", "expected"),
    [
        ("layers-equal", (FAST, FAST), [1] * 6, [1] * 6, [0, 0, 0, 1, 1, 1]),
        ("layers-equal", (FAST, FAST), [5, 1, 1, 1, 1, 1], [1] * 6, [0, 1, 1, 1, 1, 1]),
        ("layers-by-speed", (FAST, SLOW), [1] * 6, [1] * 6, [0, 0, 0, 0, 1, 1]),
        ("layers-by-speed", (FAST, FAST), [1] * 6, [1] * 6, [0, 0, 0, 1, 1, 1]),
        ("fill-in-order", (FAST, FAST), [1] * 6, [4, 4, 4, 1, 1, 1], [0, 0, 1, 1, 1, 1]),
        ("fill-in-order", (FAST, FAST), [1] * 6, [1] * 6, [0] * 6),
    ],
)
def test_a_split_is_what_its_name_says(method, devices, work, weights, expected):
    problem = layered(devices, [float(x) for x in work], [float(x) for x in weights])
    plan = MAKESPAN_SEARCH.methods[method]().optimize(problem, Budget(samples=10), 0)
    assert plan.device.tolist() == expected
    assert plan.optimizer == method
    assert check_plan(plan, problem).ok


def test_what_fits_nowhere_is_no_plan():
    problem = layered((FAST, FAST), [1.0] * 4, [9.0, 9.0, 9.0, 9.0])
    plan = MAKESPAN_SEARCH.methods["fill-in-order"]().optimize(problem, Budget(samples=10), 0)
    assert not plan.evaluation.status.ok
