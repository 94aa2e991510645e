"""Pictures: what is drawn is what the plan says, for one chip and for sixty-four."""

from itertools import pairwise

import numpy as np
import pytest

from go_rl.core import (
    CurvePoint,
    Evaluation,
    Hardware,
    Objective,
    OpKind,
    Plan,
    Status,
    load_hardware,
    plan_for,
)
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.report.figures import curves_figure, loads_figure, save_loads


def plan_on(hardware: Hardware, optimizer: str = "dp", curve: tuple[CurvePoint, ...] = ()) -> Plan:
    """A plan whose chip i computes for i + 1 ms and sends for half of that."""
    builder = GraphBuilder("one")
    builder.add_node(Node("a", "MatMul", OpKind.MATMUL, flops=1e6))
    problem = make_problem(builder.build(), hardware, ProblemOptions(Objective.RING))
    count = hardware.num_devices
    ramp = np.arange(1.0, count + 1)
    evaluation = Evaluation(
        status=Status.OK,
        seconds=count * 1e-3,
        device_seconds=ramp * 1e-3,
        link_seconds=ramp * 5e-4,
        link_bytes=ramp,
        weight_bytes=ramp * 1e5,
        streamed_bytes=np.zeros(count),
        peak_bytes=ramp * 3e5,
    )
    return plan_for(
        problem, device=np.zeros(1, np.int16), replicas={}, evaluation=evaluation,
        bound=count * 5e-4, optimizer=optimizer, seed=0, samples=100, wall_seconds=2.0, curve=curve,
    )  # fmt: skip


def heights(axes, label):
    bars = next(c for c in axes.containers if c.get_label() == label)
    return [bar.get_height() for bar in bars]


@pytest.mark.parametrize("chips", [1, 64])
def test_bars_and_lines_show_the_evaluation(chips):
    seconds, memory = loads_figure(plan_on(load_hardware(f"ring{chips}")), "net").axes
    ramp = np.arange(1.0, chips + 1)
    assert heights(seconds, "compute") == pytest.approx(ramp)
    assert heights(seconds, "link to the next chip") == pytest.approx(ramp / 2)
    assert [line.get_ydata()[0] for line in seconds.lines] == pytest.approx([chips, chips / 2])
    unit = 1e6 if chips > 4 else 1e3
    assert heights(memory, "weights") == pytest.approx(ramp * 1e5 / unit)
    assert heights(memory, "live tensors at the peak") == pytest.approx(ramp * 2e5 / unit)


@pytest.mark.slow
def test_no_text_lies_on_another():
    for chips in (1, 36, 64):
        figure = loads_figure(plan_on(load_hardware(f"ring{chips}")), "net")
        figure.canvas.draw()
        for axes in figure.axes:
            labels = [t.get_window_extent() for t in axes.get_xticklabels() if t.get_text()]
            assert all(a.x1 < b.x0 for a, b in pairwise(labels))
            box, legend = axes.get_window_extent(), axes.get_legend()
            assert legend is not None
            assert legend.get_window_extent().x0 >= box.x1


def test_curves_end_at_the_best_value_and_the_budget():
    curve = (CurvePoint(1, 0.1, 4e-3), CurvePoint(10, 0.5, 2e-3))
    plans = [
        plan_on(load_hardware("ring2"), "greedy"),
        plan_on(load_hardware("ring2"), "dp", curve),
    ]
    left, right = curves_figure(plans, 1e-3, "net").axes
    (samples,) = (line for line in left.lines if line.get_label() == "dp")
    assert list(samples.get_xdata()) == [1, 10, 100]
    assert list(samples.get_ydata()) == pytest.approx([4.0, 2.0, 2.0])
    assert list(right.lines[0].get_xdata()) == [0.1, 0.5, 2.0]
    assert [line.get_label() for line in left.lines] == ["dp", "proven bound"]


def test_a_model_may_have_any_name(tmp_path):
    """Dollars are no formula, and control characters are escaped."""
    save_loads(plan_on(load_hardware("ring2")), r"$\frac$ " + "\x1b[2J", tmp_path / "loads")
    text = (tmp_path / "loads.svg").read_text()
    assert r"$\frac$ \x1b[2J" in text
