"""Links of unlike classes: the table of pairs, the replay, dispatch, HEFT's ranks, the checker."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reference.link_groups import random_links, with_random_links
from reference.step_problems import random_plans, random_step, step_problem

from go_rl.core import (
    Hardware,
    HardwareError,
    LinkGroup,
    Links,
    OpKind,
    ProblemError,
    Status,
    Topology,
    load_hardware,
)
from go_rl.core.decisions import Decisions
from go_rl.core.hardware.links import link_table
from go_rl.core.objective import Objective
from go_rl.objectives.makespan.methods.heft import heft
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.verify.makespan_value import replayed
from go_rl.verify.pair_link import pair_link

TWO_HOSTS = Links(
    Topology.FULL, 1.0, 3.0, (LinkGroup("NVLink", ((0, 1), (2, 3)), 4.0, 1.0),), ((0, 1), (2, 3))
)
"""Two hosts of two devices: four bytes a second within, one between, through one port."""


@pytest.mark.parametrize("seed", range(12))
def test_the_table_of_pairs_is_what_the_fields_say(seed):
    """The checker has its own reading, by names of channels instead of numbers."""
    devices = 3 + seed % 6
    links = random_links(seed, devices)
    table, number = link_table(links, devices), {}
    for source in range(devices):
        for to in range(devices):
            if source != to:
                link = pair_link(links, source, to)
                assert table.bandwidth[source, to] == link.bandwidth
                assert table.latency[source, to] == link.latency
                own = number.setdefault(link.channel, table.channel[source, to])
                assert own == table.channel[source, to] < table.channels
    assert len(set(number.values())) == len(number)


def test_means_are_those_of_a_byte_and_of_a_message():
    table = link_table(TWO_HOSTS, 4)
    assert table.mean_bandwidth == pytest.approx(12 / (4 / 4 + 8 / 1))
    assert table.mean_latency == pytest.approx((4 * 1 + 8 * 3) / 12)
    uniform = link_table(Links(Topology.FULL, 0.1, 0.3), 7)
    assert (uniform.mean_bandwidth, uniform.mean_latency) == (0.1, 0.3)
    assert (uniform.scale[~np.eye(7, dtype=bool)] == 1).all()


def test_the_replay_agrees_with_the_checker():
    seen = 0
    for seed in range(60):
        problem = with_random_links(seed, random_step(seed))
        device, priority, leader = random_plans(seed, problem, 2)
        pricer = MakespanPricer(problem)
        for i in range(2):
            status, makespan, trace = pricer.trace(Decisions(device, priority, leader), i)
            if status is not Status.UNSUPPORTED:
                checked = replayed(problem, device[i], priority[i], leader[i])
                assert makespan == pytest.approx(checked.seconds, rel=1e-12)
                assert trace.peak.tolist() == pytest.approx(checked.peak_bytes, rel=1e-9)
                seen += 1
    assert seen > 60


def chain(links: Links, sizes: list[float]):
    """Producers on device 0 whose results go to devices 1, 2 and 3."""
    count = len(sizes)
    edges = [(i, count + i, size) for i, size in enumerate(sizes)]
    problem = step_problem([1.0] * 2 * count, edges, 4, kinds=[OpKind.MATMUL] * 2 * count)
    return replace(problem, hardware=replace(problem.hardware, links=links))


def seconds(links: Links, device: list[int], sizes: list[float]) -> float:
    problem = chain(links, sizes)
    return float(MakespanPricer(problem).price(Decisions(np.array([device], np.int16)))[0][0])


def test_a_pair_takes_its_own_link_and_hosts_send_in_turns():
    """By hand: 1 s for the producer, bytes over the rate, latency, 1 s for the reader."""
    assert seconds(TWO_HOSTS, [0, 1], [8.0]) == 1 + 8 / 4 + 1 + 1
    assert seconds(TWO_HOSTS, [0, 2], [8.0]) == 1 + 8 / 1 + 3 + 1
    # Producers 0 and 1 end after 1 s on devices 0 and 1; one port carries both results.
    assert seconds(TWO_HOSTS, [0, 1, 2, 3], [8.0, 8.0]) == 1 + 8 + 8 + 3 + 1
    own = replace(TWO_HOSTS, hosts=())
    assert seconds(own, [0, 1, 2, 3], [8.0, 8.0]) == 1 + 8 + 3 + 1


def test_a_bus_carries_one_tensor_at_a_time():
    bus = LinkGroup("PCIe", ((0, 1, 2, 3),), 2.0, 0.0, shared=True)
    assert seconds(Links(Topology.FULL, 1.0, 0.0, (bus,)), [0, 1, 2, 3], [8.0, 8.0]) == 1 + 8 + 1
    own = replace(bus, shared=False)
    assert seconds(Links(Topology.FULL, 1.0, 0.0, (own,)), [0, 1, 2, 3], [8.0, 8.0]) == 1 + 4 + 1


def test_heft_with_queues_on_links_ends_when_it_says():
    """One node an engine and transfer a link: its own clock is that of the replay."""
    problem = chain(TWO_HOSTS, [8.0])
    workspace = MakespanWorkspace(problem)
    found = heft(workspace, queues=True)
    plans = Decisions(found.device[None])
    assert found.finish.max() == MakespanPricer(problem).price(plans)[0][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"topology": "ring"}, "groups are for fully connected devices, not for a ring"),
        ({"hosts": [[0, 1], [1, 2]]}, "device 1 is on two hosts"),
        ({"hosts": [[0, 9]]}, "hosts names device 9; devices are 0..3"),
        ({"hosts": [0, 1]}, "hosts[0] must be a list, not 0"),
        ({"hosts": [[0, 1.5]]}, "hosts[0][1] must be a whole number, not 1.5"),
        ({"groups": {}}, "groups must be a list"),
        ({"groups": [3]}, "groups[0]: must be a JSON object"),
        ({"groups": [{"name": "a", "devices": [[0]], "bandwidth": 1}]}, "at least two devices"),
        ({"groups": [{"name": "a", "devices": [], "bandwidth": 1}]}, "joins no devices"),
        ({"groups": [{"name": "a", "devices": [[0, 1], [1, 2]], "bandwidth": 1}]},
         "device 1 is in it twice"),
        ({"groups": [{"name": "a", "devices": [[0, 1]]}]}, "field 'bandwidth' is missing"),
        ({"groups": [{"name": "a", "devices": [[0, 1]], "bandwidth": 0}]}, "must be a finite"),
        ({"groups": [{"name": "a", "devices": [[0, 4]], "bandwidth": 1}]},
         "group 'a' names device 4"),
        ({"groups": [{"name": "a", "device": [[0, 1]], "bandwidth": 1}]}, "'devices'"),
        ({"groups": [{"name": 3, "devices": [[0, 1]], "bandwidth": 1}]}, "name must be a text"),
    ],
)  # fmt: skip
def test_bad_links_are_one_clear_error(change, message):
    document = load_hardware("two-hosts-v100").to_json()
    document["devices"][0]["count"] = 4
    document["links"] = {"topology": "full", "bandwidth": 1e9} | {
        "groups": [{"name": "PCIe", "devices": [[0, 1]], "bandwidth": 2e9}]
    } | change  # fmt: skip
    with pytest.raises(HardwareError) as raised:
        Hardware.from_json(document, "mine.json")
    assert message in str(raised.value)
    assert str(raised.value).startswith("mine.json")


def test_hardware_with_groups_is_read_as_it_was_written(tmp_path: Path):
    found = load_hardware("two-hosts-v100")
    assert Hardware.from_json(found.to_json()) == found
    assert not found.links.uniform


def test_an_objective_that_cannot_express_groups_says_so():
    problem = step_problem([1.0, 1.0], [], 4)
    hardware = replace(problem.hardware, links=TWO_HOSTS)
    with pytest.raises(ProblemError, match="knows one class of links"):
        replace(problem, hardware=hardware, objective=Objective.MAX_LOAD)
