import contextlib
import dataclasses
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_graphs import graph_of

import go_rl
from go_rl.core import OpGraph, OpKind, ReadError
from go_rl.graphs.readers import load, load_graph, save_graph
from go_rl.graphs.readers.archive import ARRAYS
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node


def _random_graph(seed: int) -> OpGraph:
    random = np.random.default_rng(seed)
    builder = GraphBuilder(f"graph {seed}", {"k": seed, "é": [1.5, None]})
    count = int(random.integers(1, 9))
    profiled = seed % 2 == 0
    for i in range(count):
        node = Node(
            name=(i, str(i), f"é {i}\n")[random.integers(3)],
            op_type="Opé"[: random.integers(4)],
            kind=OpKind(int(random.integers(10))),
            flops=10 ** random.uniform(0, 18),
            weight_bytes=float(random.integers(1 << 40)),
            output_shape=tuple(random.integers(0, 9, random.integers(4)).tolist()),
            source="a/b:12"[: random.integers(7)],
            seconds={"cpu": random.random(), "tpu": float("inf")} if profiled else {},
            transfer_seconds=1.0 if profiled else None,
        )
        builder.add_node(node)
    for v in range(1, count):
        builder.add_edge(int(random.integers(v)), v, random.random(), int(random.integers(3)))
    return builder.build()


@given(seed=st.integers(0, 1 << 30))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_round_trip(tmp_path, seed):
    graph = _random_graph(seed)
    path = tmp_path / "graph.weights"
    save_graph(graph, path)
    again = load(path)
    assert again.digest == graph.digest
    for field in dataclasses.fields(OpGraph):
        before, after = getattr(graph, field.name), getattr(again, field.name)
        if field.name == "seconds":
            assert set(before) == set(after)
        elif isinstance(before, np.ndarray):
            np.testing.assert_array_equal(before, after)
            assert before.dtype == after.dtype
        else:
            assert before == after
    assert [type(n) for n in again.names] == [type(n) for n in graph.names]
    assert list(tmp_path.iterdir()) == [path], "nothing is left aside"


@pytest.fixture
def saved(tmp_path):
    nodes = (Node(i, "Op", OpKind.OTHER, flops=float(i)) for i in range(50))
    path = tmp_path / "toy.npz"
    save_graph(graph_of(nodes, name="toy"), path)
    return path


def _rewrite(path, changes):
    with np.load(path) as archive:
        content = {k: archive[k] for k in archive.files} | changes
    with path.open("wb") as file:
        np.savez_compressed(file, **{k: v for k, v in content.items() if v is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flops": np.ones(50)}, "digest"),
        ({"flops": np.full(50, np.nan)}, "flops is a finite number"),
        ({"flops": np.ones(49)}, "damaged go_rl graph"),
        ({"flops": None}, "damaged"),
        ({"manifest": np.frombuffer(b'{"format": "go_rl-graph-9"}', np.uint8)}, "go_rl-graph-9"),
        (
            {"manifest": np.frombuffer(b'{"format": "go_rl-policy-3"}', np.uint8)},
            "no graph: format",
        ),
        ({"manifest": np.frombuffer(b"[]", np.uint8)}, "without the manifest"),
        ({"manifest": np.frombuffer(b'{"format": "go_rl-graph-2"}', np.uint8)}, "damaged"),
        ({"senders": np.array([3], np.int32)}, "damaged go_rl graph"),
    ],
)
def test_changed_content_is_refused(saved, changes, message):
    _rewrite(saved, changes)
    with pytest.raises(ReadError, match=message):
        load(saved)


def test_a_flipped_byte_anywhere_never_passes_unseen(saved):
    whole = saved.read_bytes()
    digest = load_graph(saved).digest
    for place in range(0, len(whole), 211):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(ReadError):
            assert load_graph(saved).digest == digest


def test_truncated_and_foreign_zips(saved, tmp_path):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ReadError, match="truncated or damaged"):
        load(saved)
    other = tmp_path / "other.npz"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.npy", b"")
    with pytest.raises(ReadError, match="not a go_rl graph"):
        load(other)


def test_no_pickle_is_ever_loaded(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, manifest=np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(ReadError):
        load(path)


FAR = 2**31 - 1


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"tied_node": [0, 1], "tied_array": [FAR, FAR], "tied_bytes": [1.0]}, "tied_array is"),
        ({"tied_node": [FAR, FAR], "tied_array": [0, 0], "tied_bytes": [1.0]}, "tied_node is"),
        ({"senders": [0, 1], "receivers": [FAR, 2]}, "joins nodes of the graph"),
        ({"senders": [FAR, 1], "receivers": [FAR, 2]}, "joins nodes of the graph"),
        ({"edge_output": [FAR, 0]}, "digest"),
        ({"colocation": [FAR] * 50}, "digest"),
    ],
)
def test_absurd_indices_allocate_nothing(saved, changes, refused):
    """Each once asked for gigabytes, or might."""
    edges = {"senders": [0, 1], "receivers": [1, 2], "edge_bytes": [1.0, 1.0],
             "edge_output": [0, 0]} | changes  # fmt: skip
    _rewrite(saved, {name: np.array(v, ARRAYS[name]) for name, v in edges.items()})
    tracemalloc.start()
    with pytest.raises(ReadError, match=refused):
        load(saved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 26


@pytest.mark.slow
def test_a_legal_graph_of_absurd_classes_and_outputs_is_planned_in_little_memory():
    nodes = (Node(i, "Op", OpKind.OTHER, flops=1e9, colocation=FAR * (i % 2)) for i in range(6))
    graph = graph_of(nodes, [(i, i + 1, 8.0, FAR) for i in range(5)])

    def planned() -> list[bool]:
        cases = (("ring2", "greedy"), ("p100x2", "heft"))
        found = [go_rl.optimize(graph, where, method=how, samples=4).best for where, how in cases]
        return [plan.evaluation.status.ok for plan in found]

    planned()  # imports and compiles, which takes minutes while memory is traced
    tracemalloc.start()
    assert planned() == [True, True]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 27
