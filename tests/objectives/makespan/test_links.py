"""Links of unlike classes, meshes and tori: tables, routes, HEFT, figures of links, refusals."""

from dataclasses import replace

import numpy as np
import pytest
from reference.link_groups import SHAPES, random_links
from reference.step_problems import random_plans, random_step, step_problem

from go_rl.compare.portfolio.registry import METHODS
from go_rl.core import (
    Budget,
    Hardware,
    HardwareError,
    LinkGroup,
    Links,
    OpKind,
    Problem,
    ProblemError,
    Status,
    Topology,
    load_hardware,
)
from go_rl.core.decisions import Decisions
from go_rl.core.hardware.links import link_table
from go_rl.core.objective import Objective
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer
from go_rl.verify.check_plan import check_plan
from go_rl.verify.makespan_value import replayed
from go_rl.verify.pair_link import pair_link, pair_route

MAKESPAN_METHODS = METHODS[Objective.MAKESPAN]
SLOW = ("hdp", "policy")
"""Methods that compile a network of their own."""
MESH_2X2 = Links(Topology.MESH, 2.0, 0.5, shape=(2, 2))
LINE = Links(Topology.MESH, 2.0, 0.5, shape=(4,))


@pytest.mark.parametrize("topology", [Topology.MESH, Topology.TORUS])
@pytest.mark.parametrize("shape", SHAPES)
def test_routes_are_what_the_fields_say(topology, shape):
    """The checker walks coordinate by coordinate; the table looks up the next device."""
    links, devices = Links(topology, 4.0, 0.5, shape=shape), int(np.prod(shape))
    table = link_table(links, devices)
    channels: dict[tuple[int, int], int] = {}
    for source in range(devices):
        for to in range(devices):
            if source == to:
                continue
            route, at = pair_route(links, source, to), source
            assert table.latency[source, to] == 0.5 * len(route) <= 0.5 * table.most_hops
            for begin, end, _ in route:
                assert (at, table.hop[at, to]) == (begin, end)
                assert (
                    channels.setdefault((begin, end), table.channel[at, to])
                    == (table.channel[at, to])
                )
                at = end
            assert at == to
    assert len(set(channels.values())) == len(channels)
    assert all(channel < table.channels for channel in channels.values())


def linked(problem: Problem, links: Links) -> Problem:
    return replace(problem, hardware=replace(problem.hardware, links=links))


def many(problem: Problem, shape: tuple[int, ...]) -> Problem:
    """The problem with its devices repeated until a mesh of ``shape`` is full."""
    own, count = problem.hardware.devices, int(np.prod(shape))
    devices = sorted((own * count)[:count], key=lambda device: device.is_cpu)
    links = Links(Topology.MESH, 1.0, 0.5, shape=shape)
    return replace(problem, hardware=Hardware("many", tuple(devices), links))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(10, 10), (8, 8, 16)])
def test_more_devices_than_a_word_has_bits(shape):
    """Tied weights and copies of tensors on devices 64 and above count once a device."""
    seen = far = 0
    for seed in range(12):
        problem = many(random_step(seed), shape)
        device, priority, leader = random_plans(seed, problem, 1)
        status, makespan, trace = MakespanPricer(problem).trace(Decisions(device, priority, leader))
        if status is not Status.UNSUPPORTED:
            checked = replayed(problem, device[0], priority[0], leader[0])
            assert makespan == pytest.approx(checked.seconds, rel=1e-12)
            assert trace.peak.tolist() == pytest.approx(checked.peak_bytes, rel=1e-9)
            seen, far = seen + 1, far + (device >= 64).sum()
    assert min(seen, far) > 6


@pytest.mark.parametrize("name", [name for name in MAKESPAN_METHODS if name not in SLOW])
def test_every_method_places_on_a_mesh_of_many_devices(name):
    problem = many(sends(MESH_2X2, [(0, 3), (1, 2)], [8.0, 1.0]), (9, 9))
    plan = MAKESPAN_METHODS[name]().optimize(problem, Budget(samples=20), 0)
    assert check_plan(plan, problem).ok


def sends(links: Links, ends: list[tuple[int, int]], sizes: list[float]) -> Problem:
    """Producers of one second whose results go to readers of one second elsewhere."""
    count = len(ends)
    edges = [(i, count + i, size) for i, size in enumerate(sizes)]
    problem = step_problem([1.0] * 2 * count, edges, 4, kinds=[OpKind.MATMUL] * 2 * count)
    return linked(problem, links)


def seconds(links: Links, ends: list[tuple[int, int]], sizes: list[float]) -> float:
    """Iteration of `sends`; the lower transfer goes first where two want one link."""
    device = [a for a, _ in ends] + [b for _, b in ends]
    problem = sends(links, ends, sizes)
    return float(MakespanPricer(problem).price(Decisions(np.array([device], np.int16)))[0][0])


@pytest.mark.parametrize(
    ("links", "ends", "sizes", "expected"),
    [
        # One link: 8 bytes at 2 a second and half a second of latency.
        (LINE, [(0, 1)], [8.0], 1 + 4 + 0.5 + 1),
        # Three links: the bytes count once, the latency three times.
        (LINE, [(0, 3)], [8.0], 1 + 4 + 3 * 0.5 + 1),
        # Back along other links, at the same time.
        (LINE, [(0, 3), (3, 0)], [8.0, 8.0], 1 + 4 + 3 * 0.5 + 1),
        # Both need 1 -> 2: tensor 1 from 1 s to 5 s, tensor 0 from there, then 2 -> 3.
        (LINE, [(0, 3), (1, 2)], [8.0, 8.0], 1 + 4 + 4 + 0.5 + 0.5 + 1),
        # Dimension 0 first: 0 -> 2 -> 3 and 1 -> 3 meet nowhere before device 3.
        (MESH_2X2, [(0, 3), (1, 3)], [8.0, 2.0], 1 + 4 + 2 * 0.5 + 1),
        # 2 -> 3 is taken from 1 s to 5 s; what comes from 0 waits there from 1.5 s on.
        (MESH_2X2, [(0, 3), (2, 3)], [2.0, 8.0], 1 + 4 + 1 + 0.5 + 1),
        # On a torus of four in a line, 0 and 3 are neighbours.
        (replace(LINE, topology=Topology.TORUS), [(0, 3)], [8.0], 1 + 4 + 0.5 + 1),
    ],
)
def test_by_hand(links, ends, sizes, expected):
    """Readers on one device run one after the other, where they would overlap."""
    assert seconds(links, ends, sizes) == expected


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
        ({"groups": [{"name": "a", "devices": [[0, 1]], "bandwidth": 0}]}, "must be a number from"),
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


@pytest.mark.parametrize(
    ("objective", "links", "devices", "message"),
    [
        (Objective.MAX_LOAD, MESH_2X2, 4, "is a mesh: choose"),
        (Objective.LATENCY, MESH_2X2, 4, "is a mesh: choose"),
        (Objective.RING, MESH_2X2, 4, "has mesh links: choose"),
        (Objective.MAX_LOAD, TWO_HOSTS, 4, "knows one class of links"),
        (Objective.MAX_LOAD, Links(Topology.FULL, 1.0), 65,
         "works with at most 64 devices, and 'boxes' has 65"),
    ],
)  # fmt: skip
def test_an_objective_that_cannot_express_the_hardware_says_so(objective, links, devices, message):
    problem = linked(step_problem([1.0, 1.0], devices=devices), links)
    with pytest.raises(ProblemError, match=f"objective .*{message}"):
        replace(problem, objective=objective)
