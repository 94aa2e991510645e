"""Launches of operators: their prices, replay, and attention."""

import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import go_rl
from go_rl import load
from go_rl.costs.devices import find_device
from go_rl.costs.operators.launches import Launches, eager_launches
from go_rl.costs.operators.launches.launch import Launch, operator_rows
from go_rl.costs.operators.launches.launch_prices import STREAMED_SHARE, launch_prices, total_bounds
from go_rl.costs.operators.launches.launch_replay import (
    Operators,
    ReplayError,
    issued_ahead,
    replay,
)
from go_rl.costs.operators.predictor import Interval


class Counting:
    """A predictor of one millisecond for everything, which keeps what it is asked."""

    def __init__(self):
        self.asked = []

    def interval(self, inputs):
        count = len(inputs.rows)
        self.asked.append(count)
        one = np.full(count, 1e-3)
        half = 0.5 * one
        return Interval(one, half, 2 * one, np.zeros(count, bool), 0 * one, 0 * one, one)


def _launches(*each):
    return Launches(
        SimpleNamespace(names=(), element_type=None, weight_bytes=np.zeros(1)),
        each,
        ((),) * len(each),
    )


def _stream(op, rows=8, **others):
    return Launch(op, {"batch": rows, "width": 4}, (), op, **others)


def test_equal_launches_are_predicted_once():
    counting = Counting()
    launches = eager_launches(load("zoo:bert-tiny"))
    found = launch_prices(launches, find_device("t4"), counting)
    assert counting.asked == [len({launch.key for launch in launches.each})]
    assert counting.asked[0] < len(launches) / 2
    assert found.seconds.sum() == pytest.approx(1e-3 * len(launches))


def test_fused_bytes_come_on_top_and_stand_ins_are_unlike():
    sheet = find_device("t4")
    launches = _launches(
        _stream("ln"), _stream("ln", extra_bytes=3.2e9), _stream("ln", unlike=True)
    )
    found = launch_prices(launches, sheet, Counting())
    extra = 3.2e9 / (STREAMED_SHARE * 320e9)
    np.testing.assert_allclose(found.seconds, [1e-3, 1e-3 + extra, 1e-3])
    np.testing.assert_allclose(found.high, [2e-3, 2e-3 + extra, 2e-3])
    np.testing.assert_allclose(found.busy, [1e-3, 1e-3 + extra, 1e-3])
    assert found.unlike.tolist() == [False, False, True]


def test_errors_of_a_group_add_and_of_groups_cancel_in_part():
    """Sides of 0.5 and 1 ms: twice as much in one group, the root of 3 times as much in two."""
    for ops, times in ((("add", "relu"), 2.0), (("softmax", "ln"), np.sqrt(3.0))):
        launches = _launches(*(_stream(op) for op in ops))
        prices = launch_prices(launches, find_device("t4"), Counting())
        low, high = total_bounds(launches, prices, 2e-3)
        assert low == pytest.approx(2e-3 - times * 0.5e-3)
        assert high == pytest.approx(2e-3 + times * 1e-3)
        bounds = total_bounds(launches, prices, 1e-3)
        assert bounds == pytest.approx((low / 2, high / 2)), "in proportion"


def _run(host, start, busy):
    count = len(host)
    chain = tuple((n - 1,) if n else () for n in range(count))
    return issued_ahead(*(np.array(each, np.float64) for each in (host, start, busy)), chain)


def test_long_kernels_hide_the_host():
    """Three kernels of 100: the host is ahead after its first start of 2."""
    found = _run([5, 5, 5], [2, 2, 2], [100, 100, 100])
    assert found.seconds == pytest.approx(2 + 300, abs=1e-5)


def test_short_kernels_wait_for_the_host():
    """Kernels of 1 are issued at 2, 7 and 12; the host is done at 15, after the last kernel."""
    found = _run([5, 5, 5], [2, 2, 2], [1, 1, 1])
    assert found.end[2::3].tolist() == pytest.approx([3, 8, 13], abs=1e-5)
    assert found.seconds == 15


LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False,
}  # fmt: skip


def _attention(launches):
    return [dict(launch.sizes) for launch in launches.each if launch.op == "attention"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    path = tmp_path_factory.mktemp("llama") / "config.json"
    path.write_text(json.dumps(LLAMA))
    return path


def test_a_named_attention_tells_heads_groups_keys_and_mask(llama):
    """Causal over 96 tokens: 8 heads of 32 numbers, 4 of which share one head of keys."""
    launches = eager_launches(go_rl.load(llama, dims={"batch": 3, "sequence": 96}))
    sizes = {"batch": 3, "heads": 8, "groups": 4, "queries": 96, "keys": 96, "depth": 32,
             "causal": 1}  # fmt: skip
    assert _attention(launches) == [sizes, sizes]
    assert not launches.unlike.any()


def test_pieces_become_one_launch_on_request_only():
    graph = go_rl.load("zoo:bert-tiny")
    apart, fused = eager_launches(graph), eager_launches(graph, fuses_attention=True)
    count = Counter(launch.op for launch in apart.each)
    assert not _attention(apart)
    assert len(_attention(fused)) == count["softmax"] == 2
    left = Counter(launch.op for launch in fused.each)
    assert left["softmax"] == left["bmm"] == 0
    assert count["bmm"] == 4
    products = [launch for launch in apart.each if launch.op == "bmm"]
    assert _attention(fused)[0] == {
        "batch": 8, "heads": 2, "groups": 1,
        "queries": products[0].sizes["rows"], "keys": products[0].sizes["columns"],
        "depth": products[0].sizes["depth"], "causal": 0,
    }  # fmt: skip
    read = {node for launch in fused.each for node in launch.nodes}
    assert read == {node for launch in apart.each for node in launch.nodes}


def test_what_attention_does_is_counted_once():
    """Two products of 2 · 4 · 6 · 10 · 8 FLOP; queries, keys, values and result once."""
    sizes = {"batch": 2, "heads": 4, "groups": 2, "queries": 6, "keys": 10, "depth": 8}
    plain, causal = (
        operator_rows([Launch("attention", {**sizes, "causal": each}, (0,), "attention")])
        for each in (0, 1)
    )
    assert plain.flops()[0] == 4 * 2 * 4 * 6 * 10 * 8
    assert causal.flops()[0] == plain.flops()[0] * 5.5 / 10
    assert plain.least_bytes()[0] == 4 * 2 * (2 * 4 * 8) * (6 + 10 / 2)


def _operators(duration, before, device=None, gap=0.0):
    device = [0] * len(duration) if device is None else device
    return Operators(np.array(duration, float), tuple(before), np.array(device, np.int64), gap)


def _twin(duration, before, device, gap):
    """The same rule, by looking at all operators each time."""
    count, done, time, end = len(duration), set(), [0.0] * (max(device) + 1), {}
    while len(done) < count:
        ready = {
            u: max((end[b] for b in before[u]), default=0.0)
            for u in range(count) if u not in done and set(before[u]) <= done
        }  # fmt: skip
        chosen = min({device[u] for u in ready}, key=lambda d: (time[d], d))
        u = min((u for u in ready if device[u] == chosen), key=lambda u: (ready[u], u))
        time[chosen] = max(time[chosen], ready[u]) + duration[u] + gap
        end[u] = time[chosen]
        done.add(u)
    return max(time)


@given(st.data())
def test_it_agrees_with_its_twin(data):
    count = data.draw(st.integers(1, 9))
    duration = data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    before = [
        tuple(data.draw(st.sets(st.integers(0, u - 1), max_size=3))) if u else ()
        for u in range(count)
    ]
    device = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    found = replay(_operators(duration, before, device, 0.25)).seconds
    assert found == _twin(duration, before, device, 0.25)
    assert found <= sum(duration) + 0.25 * count
    assert found >= max(sum(d for d, at in zip(duration, device, strict=True) if at == own)
                        for own in device)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [(), ()]), "equally many"),
        (([-1.0], [()]), "not negative"),
        (([np.inf], [()]), "finite"),
        (([1.0], [(1,)]), "is not there"),
        (([1.0], [()], [-1]), "numbered from 0"),
        (([1.0], [()], [0], -1.0), "gap must not be negative"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ReplayError, match=message):
        _operators(*arguments)


def test_circles_are_refused():
    with pytest.raises(ReplayError, match="in a circle"):
        replay(_operators([1.0, 1.0], [(1,), (0,)]))
