"""The replay by hand: schedules, links and engines. A byte takes a second on a link."""

from __future__ import annotations

import numpy as np
import pytest
from reference.step_problems import decided, step_problem

from go_rl.core import Engine, OpKind, PlanError, Problem, Status
from go_rl.core.decisions import Decisions
from go_rl.simulate.makespan.pricing import MakespanPricer
from go_rl.simulate.makespan.replay import lay_out

INPUT, CONSTANT, MATMUL = OpKind.INPUT, OpKind.CONSTANT, OpKind.MATMUL
ELEMENTWISE, OTHER = OpKind.ELEMENTWISE, OpKind.OTHER


def schedule(problem: Problem, device, priority=None, leader=None) -> dict:
    """(start, end) of the pieces of each kernel by its leader, of transfers by (from, to)."""
    plans, pricer = decided(device, priority, leader), MakespanPricer(problem)
    _, _, trace = pricer.trace(plans)
    nodes, devices = problem.graph.num_nodes, problem.hardware.num_chips
    whole = np.arange(nodes)
    jobs = lay_out(
        pricer.arrays,
        plans.device[0].astype(np.int64),
        whole * 0 if plans.priority is None else plans.priority[0],
        whole if plans.kernel_leader is None else plans.kernel_leader[0],
        np.zeros(nodes),
    )
    links, found = len(pricer.arrays.engines), {}
    for start, end, job in zip(trace.start, trace.end, trace.job, strict=True):
        name = int(job) if job < nodes else divmod(int(jobs.pool[job]) - links, devices)
        found.setdefault(name, []).append((float(start), float(end)))
    return found


def makespan(problem: Problem, device, priority=None, leader=None) -> float:
    seconds, _ = MakespanPricer(problem).price(decided(device, priority, leader))
    return float(seconds[0])


def test_one_node_takes_its_seconds():
    assert schedule(step_problem([3.0]), [0]) == {0: [(0.0, 3.0)]}
    assert makespan(step_problem([3.0]), [0]) == 3.0


def test_without_edges_devices_work_at_once_and_a_device_works_in_topological_order():
    problem = step_problem([1.0, 2.0, 4.0], devices=3)
    assert makespan(problem, [0, 1, 2]) == 4.0
    assert schedule(problem, [1, 1, 1]) == {0: [(0.0, 1.0)], 1: [(1.0, 3.0)], 2: [(3.0, 7.0)]}


def test_a_chain_pays_for_each_change_of_device():
    problem = step_problem([2.0, 3.0, 1.0], [(0, 1, 5.0), (1, 2, 7.0)], 2)
    assert makespan(problem, [0, 0, 0]) == 6.0
    assert schedule(problem, [0, 1, 1]) == {
        0: [(0.0, 2.0)], (0, 1): [(2.0, 7.0)], 1: [(7.0, 10.0)], 2: [(10.0, 11.0)],
    }  # fmt: skip
    assert makespan(problem, [0, 1, 0]) == 18.0


def test_a_fork_and_its_join_on_one_device_and_on_two():
    edges = [(0, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)]
    problem = step_problem([1.0, 4.0, 2.0, 1.0], edges, 2)
    assert makespan(problem, [0, 0, 0, 0]) == 8.0
    assert schedule(problem, [0, 0, 1, 0]) == {
        0: [(0.0, 1.0)], 1: [(1.0, 5.0)], (0, 1): [(1.0, 2.0)], 2: [(2.0, 4.0)],
        (1, 0): [(4.0, 5.0)], 3: [(5.0, 6.0)],
    }  # fmt: skip


def test_priority_decides_which_of_two_ready_nodes_goes_first():
    """Node 1 feeds the long node 2 elsewhere: run first, it hides behind nothing."""
    problem = step_problem([1.0, 1.0, 5.0], [(1, 2, 1.0)], 2)
    assert makespan(problem, [0, 0, 1]) == 8.0
    assert makespan(problem, [0, 0, 1], [1, 1, 1]) == 8.0
    assert makespan(problem, [0, 0, 1], [-5, -4, -9]) == 7.0


def test_an_idle_engine_does_not_wait_for_something_more_urgent():
    problem = step_problem([1.0, 2.0, 9.0], [(0, 1, 1.0)], 2)
    assert schedule(problem, [1, 0, 0], [0, 9, 0])[2] == [(0.0, 9.0)]
    assert makespan(problem, [1, 0, 0], [0, 9, 0]) == 11.0


def test_a_tensor_is_sent_once_to_a_device_with_two_readers():
    problem = step_problem([1.0, 2.0, 3.0], [(0, 1, 4.0), (0, 2, 4.0)], 3)
    found = schedule(problem, [0, 1, 1])
    assert found[0, 1] == [(1.0, 5.0)]
    assert makespan(problem, [0, 1, 1]) == 10.0
    apart = schedule(problem, [0, 1, 2])
    assert (apart[0, 1], apart[0, 2]) == ([(1.0, 5.0)], [(1.0, 5.0)])


def test_the_largest_edge_of_a_tensor_is_its_size():
    problem = step_problem([1.0, 1.0, 1.0], [(0, 1, 4.0), (0, 2, 6.0)], 2)
    assert schedule(problem, [0, 1, 0])[0, 1] == [(1.0, 7.0)]


def test_transfers_of_one_link_queue_by_the_most_urgent_reader_there():
    edges = [(0, 1, 3.0, 0), (0, 2, 2.0, 1), (0, 3, 3.0, 0)]
    problem = step_problem([1.0, 1.0, 1.0, 1.0], edges, 2)
    by_number = schedule(problem, [0, 1, 1, 1])
    assert by_number[0, 1] == [(1.0, 4.0), (4.0, 6.0)]
    assert (by_number[1], by_number[3], by_number[2]) == (
        [(4.0, 5.0)], [(5.0, 6.0)], [(6.0, 7.0)],
    )  # fmt: skip
    assert schedule(problem, [0, 1, 1, 1], [0, 0, 1, 0])[0, 1] == [(1.0, 3.0), (3.0, 6.0)]
    assert schedule(problem, [0, 1, 1, 1], [0, 0, 1, 2])[0, 1] == [(1.0, 4.0), (4.0, 6.0)]
    at_home = schedule(problem, [0, 1, 1, 0], [0, 0, 1, 2])
    assert at_home[0, 1] == [(1.0, 3.0), (3.0, 6.0)]


def test_opposite_directions_are_two_links():
    problem = step_problem([1.0, 1.0, 1.0, 1.0], [(0, 2, 4.0), (1, 3, 4.0)], 2)
    found = schedule(problem, [0, 1, 1, 0])
    assert (found[0, 1], found[1, 0]) == ([(1.0, 5.0)], [(1.0, 5.0)])
    assert makespan(problem, [0, 1, 1, 0]) == 6.0


def test_a_link_is_free_again_before_its_tensor_arrives():
    edges = [(0, 1, 3.0, 0), (0, 2, 2.0, 1), (0, 3, 0.0, 2)]
    problem = step_problem([1.0, 1.0, 1.0, 1.0], edges, 2, latency=10.0)
    found = schedule(problem, [0, 1, 1, 1])
    assert found[0, 1] == [(1.0, 4.0), (4.0, 6.0), (6.0, 6.0)]
    assert (found[1], found[2], found[3]) == ([(14.0, 15.0)], [(16.0, 17.0)], [(17.0, 18.0)])


def test_bandwidth_divides():
    problem = step_problem([1.0, 1.0], [(0, 1, 6.0)], 2, bandwidth=4.0, latency=0.5)
    assert makespan(problem, [1, 0]) == 1.0 + 1.5 + 0.5 + 1.0


def test_a_gap_keeps_the_engine_and_the_consumers_waiting():
    problem = step_problem([1.0, 2.0, 3.0], [(0, 2, 1.0)], 2, gap=[4.0, 0.0, 0.5])
    assert schedule(problem, [0, 0, 1]) == {
        0: [(0.0, 5.0)], 1: [(5.0, 7.0)], (0, 1): [(5.0, 6.0)], 2: [(6.0, 9.5)],
    }  # fmt: skip


def test_a_kernel_has_the_largest_gap_and_the_highest_priority_of_its_nodes():
    kinds = [ELEMENTWISE] * 3
    problem = step_problem([1.0, 2.0, 8.0], [(0, 1, 1.0)], kinds=kinds, gap=[3.0, 5.0, 0.0])
    fused = schedule(problem, [0, 0, 0], [0, 7, 2], [0, 0, 2])
    assert fused == {0: [(0.0, 8.0)], 2: [(8.0, 16.0)]}
    assert schedule(problem, [0, 0, 0], [0, 1, 2], [0, 0, 2])[2] == [(0.0, 8.0)]


def test_two_streams_run_two_at_a_time():
    problem = step_problem([2.0, 3.0, 2.0], engines=(Engine("stream", 2),))
    assert schedule(problem, [0] * 3) == {0: [(0.0, 2.0)], 1: [(0.0, 3.0)], 2: [(2.0, 4.0)]}
    _, _, trace = MakespanPricer(problem).trace(decided([0] * 3))
    assert trace.slot.tolist() == [0, 1, 0]


def test_a_split_operator_runs_in_equal_parts_each_with_the_gap():
    engines = (Engine("core", 3, split=True),)
    problem = step_problem([6.0, 3.0], engines=engines, gap=[0.5, 0.0])
    assert schedule(problem, [0, 0]) == {0: [(0.0, 2.5)] * 3, 1: [(2.5, 3.5)] * 3}
    assert schedule(problem, [0, 0], [0, 1]) == {1: [(0.0, 1.0)] * 3, 0: [(1.0, 3.5)] * 3}


MATRIX = (Engine("matrix", 1, ("matmul",)), Engine("rest"))


def test_kinds_of_operators_have_engines_of_their_own():
    problem = step_problem([4.0, 3.0, 2.0], kinds=[MATMUL, ELEMENTWISE, OTHER], engines=MATRIX)
    assert schedule(problem, [0] * 3) == {0: [(0.0, 4.0)], 1: [(0.0, 3.0)], 2: [(3.0, 5.0)]}


def test_a_kernel_runs_on_the_engine_of_its_matrix_product_else_of_its_lowest_node():
    kinds = [ELEMENTWISE, MATMUL, ELEMENTWISE, MATMUL]
    problem = step_problem([1.0, 4.0, 2.0, 3.0], [(1, 2, 1.0)], kinds=kinds, engines=MATRIX)
    fused = schedule(problem, [0] * 4, leader=[0, 1, 1, 3])
    assert fused == {0: [(0.0, 1.0)], 1: [(0.0, 6.0)], 3: [(6.0, 9.0)]}
    engines = (Engine("mover", 1, ("movement",)), Engine("rest"))
    kinds = [OpKind.MOVEMENT, ELEMENTWISE, OpKind.MOVEMENT]
    light = step_problem([1.0, 1.0, 1.0], [(0, 1, 1.0)], kinds=kinds, engines=engines)
    assert schedule(light, [0] * 3, leader=[0, 0, 2]) == {0: [(0.0, 2.0)], 2: [(2.0, 3.0)]}


def test_zero_seconds_are_a_moment_and_nothing_is_reserved_in_it():
    chain = step_problem([0.0, 0.0, 0.0], [(0, 1, 0.0), (1, 2, 0.0)], 2)
    assert makespan(chain, [0, 1, 0]) == 0.0
    problem = step_problem([0.0, 5.0, 3.0], [(0, 1, 0.0)])
    assert schedule(problem, [0] * 3, [5, 9, 1])[1] == [(0.0, 5.0)]
    assert schedule(problem, [0] * 3, [0, 9, 1])[1] == [(3.0, 8.0)]


def test_what_ends_at_one_moment_is_noted_before_anything_starts():
    """At 1 both nodes 2 and 3 become ready: the urgent one goes first, whatever its inputs. A
    transfer of nothing takes no time, but arrives only after the engines have looked for work."""
    two = (Engine("stream", 2, ("movement",)), Engine("rest"))
    kinds = [OpKind.MOVEMENT, OpKind.MOVEMENT, OTHER, OTHER]
    edges = [(0, 2, 0.0), (1, 3, 0.0)]
    problem = step_problem([1.0, 1.0, 4.0, 2.0], edges, 2, kinds=kinds, engines=two)
    near = schedule(problem, [0, 0, 0, 0], [0, 0, 0, 5])
    assert (near[2], near[3]) == ([(3.0, 7.0)], [(1.0, 3.0)])
    far = schedule(problem, [0, 1, 0, 0], [0, 0, 0, 5])
    assert (far[1, 0], far[2], far[3]) == ([(1.0, 1.0)], [(1.0, 5.0)], [(5.0, 7.0)])


@pytest.mark.parametrize("kind", [INPUT, CONSTANT])
def test_what_the_host_feeds_is_free_and_lies_on_every_readers_device(kind):
    edges = [(0, 1, 100.0), (0, 2, 100.0)]
    kinds = [kind, OTHER, OTHER]
    problem = step_problem([9.0, 1.0, 2.0], edges, 3, kinds=kinds, gap=[7.0, 0.0, 0.0])
    for device in ([0, 0, 1], [2, 0, 1]):
        assert schedule(problem, device) == {1: [(0.0, 1.0)], 2: [(0.0, 2.0)]}


def test_a_graph_of_inputs_alone_takes_no_time():
    problem = step_problem([0.0, 0.0], kinds=[INPUT, CONSTANT])
    assert makespan(problem, [0, 0]) == 0.0
    assert schedule(problem, [0, 0]) == {}


def test_a_node_that_a_device_cannot_run_is_unsupported():
    problem = step_problem([[1.0, 1.0], [np.inf, 3.0]], [(0, 1, 8.0)], 2)
    assert MakespanPricer(problem).trace(decided([1, 1]))[:2] == (Status.UNSUPPORTED, np.inf)
    assert makespan(problem, [1, 1]) == np.inf
    assert makespan(problem, [0, 1]) == 1.0 + 8.0 + 3.0


def test_an_evaluation_lists_links_row_by_row():
    """Link a * D + b goes from a to b; two transfers from 0 to 2 carry 3 + 2 bytes."""
    edges = [(0, 1, 3.0, 0), (0, 2, 2.0, 1), (1, 3, 4.0)]
    problem = step_problem([1.0, 2.0, 3.0, 4.0], edges, 3, bandwidth=2.0, latency=5.0)
    found = MakespanPricer(problem).evaluate(decided([0, 2, 2, 1]))
    assert found.device_seconds.tolist() == [1.0, 4.0, 5.0]
    assert found.link_bytes.tolist() == [0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0]
    assert found.link_seconds.tolist() == (found.link_bytes / 2.0).tolist()


def test_a_batch_may_be_empty():
    seconds, codes = MakespanPricer(step_problem([1.0])).price(
        Decisions(np.zeros((0, 1), np.int16))
    )
    assert (len(seconds), len(codes)) == (0, 0)


@pytest.mark.parametrize("nodes", [2, 4])
def test_decisions_for_another_number_of_nodes_never_reach_the_kernel(nodes):
    pricer = MakespanPricer(step_problem([1.0] * 3, [(0, 1, 1.0)], 2))
    plans = decided([0] * nodes, list(range(nodes)), list(range(nodes)))
    for priced in (pricer.price, pricer.trace, pricer.evaluate):
        with pytest.raises(PlanError, match=f"device has {nodes} entries; 'steps' has 3 nodes"):
            priced(plans)
