"""Sizes and switches that make no sense are refused by name; so are graphs without a bucket."""

import pytest

from go_rl.core import PolicyError
from go_rl.policy.config import SEGMENT_UNIT, RingPolicyConfig, check_policy
from go_rl.policy.observations.buckets import BUCKETS, EDGES_PER_NODE, bucket


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 0}, "hidden must be a whole number >= 1, not 0"),
        ({"hidden": 10, "heads": 4}, "hidden 10 must be a multiple of heads 4"),
        ({"sage_layers": -1}, "sage_layers must be a whole number >= 0, not -1"),
        ({"iterations": 0}, "iterations must be a whole number >= 1, not 0"),
        ({"segment": 0}, "segment must be a whole number >= 1, not 0"),
        ({"segment": 96}, f"segment must divide {SEGMENT_UNIT}, not 96"),
    ],
)
def test_a_configuration_is_checked_field_by_field(change, message):
    with pytest.raises(PolicyError, match=f"^policy: {message}"):
        RingPolicyConfig(**change)


def test_an_unknown_policy_is_named():
    with pytest.raises(
        PolicyError, match=r"one of ring, orders, nodes, dispatch, not 'dispach'.*dispatch"
    ):
        check_policy("dispach")


@pytest.mark.parametrize(
    ("units", "edges", "expected"),
    [
        (1, 0, (256, 512)),
        (255, 512, (256, 512)),
        (255, 513, (256, 2048)),
        (256, 0, (640, 1280)),
        (200, 2049, (640, 5120)),
        (262143, 0, (262144, 524288)),
    ],
)
def test_the_smallest_bucket_with_room_for_a_padding_node(units, edges, expected):
    assert bucket(units, edges) == expected


@pytest.mark.parametrize(
    ("units", "edges"), [(262144, 0), (10, BUCKETS[-1] * EDGES_PER_NODE[-1] + 1)]
)
def test_a_graph_larger_than_any_bucket_is_refused_with_a_way_out(units, edges):
    with pytest.raises(PolicyError, match=f"has {units} units and {edges} edges.*linear-dp"):
        bucket(units, edges)
