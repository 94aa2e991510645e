"""Links of unlike classes: the table of pairs, the replay, dispatch, HEFT's ranks, the checker."""

from dataclasses import replace

import pytest
from reference.link_groups import random_links
from reference.step_problems import step_problem

from go_rl.core import (
    Hardware,
    HardwareError,
    LinkGroup,
    Links,
    ProblemError,
    Topology,
    load_hardware,
)
from go_rl.core.hardware.links import link_table
from go_rl.core.objective import Objective
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


def test_an_objective_that_cannot_express_groups_says_so():
    problem = step_problem([1.0, 1.0], [], 4)
    hardware = replace(problem.hardware, links=TWO_HOSTS)
    with pytest.raises(ProblemError, match="knows one class of links"):
        replace(problem, hardware=hardware, objective=Objective.MAX_LOAD)
