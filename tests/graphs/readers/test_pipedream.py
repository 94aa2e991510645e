import pytest

from go_rl.core import FREE
from go_rl.graphs.readers import load

PROFILE = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"
TEXT = "\n".join(
    [
        "node1 -- Input0 -- " + PROFILE.format("0.000", "0.000", "0.0", "0.000"),
        "node2 -- Conv2d(3, 64, stride=(1, 1)) -- " + PROFILE.format("1.5", "3.0", "100.0", "40.0"),
        "node3 -- LSTM(2048, 1024) -- "
        + PROFILE.format("2.0", "4.0", "[30.0; 1.0; 1.0]", "8.0")
        + ", stage_id=1",
        "node4 -- Add(inplace) -- " + PROFILE.format("0.0", "0.5", "16.0", "0.0"),
        "\tnode1 -- node2",
        "\tnode2 -- node3",
        "\tnode2 -- node4",
        "\tnode3 -- node4",
        "",
    ]
)


def test_the_training_graph_mirrors_the_forward_one(loaded):
    graph = loaded(TEXT, training=True)
    names = graph.names
    edges = {
        (names[u], names[v]): size
        for u, v, size in zip(
            graph.senders.tolist(), graph.receivers.tolist(), graph.edge_bytes.tolist(), strict=True
        )
    }
    assert set(names) == {
        "node1", "node2", "node3", "node4",
        "node2_backward", "node3_backward", "node4_backward",
    }  # fmt: skip
    assert edges[("node4_backward", "node3_backward")] == 32
    assert edges[("node4_backward", "node2_backward")] == 100
    assert edges[("node3", "node3_backward")] == 32
    assert ("node2_backward", "node1") not in edges
    at = graph.index
    assert graph.colocation[at["node3"]] == graph.colocation[at["node3_backward"]] != FREE
    assert graph.seconds["accelerator"][at["node3_backward"]] == pytest.approx(0.004)
    assert graph.weight_bytes.sum() == 48
    assert graph.output_bytes[at["node4_backward"]] == 132
    assert graph.is_backward.sum() == 3
    out = graph.edge_output[graph.senders == at["node4_backward"]]
    assert sorted(out.tolist()) == [0, 1], "two different gradients leave the addition"


BAD = [
    ("node9 -- Op() -- forward_compute_time=1\n", "no backward_compute_time"),
    (TEXT + "\tnode4 -- node2\n", "cycle"),
    (TEXT + "\tnode4 -- node8\n", "'node8', which is absent"),
    (TEXT + "\tnode4 -- node4\n", "feeds itself"),
    (TEXT + "node4 -- Op -- " + PROFILE.format(1, 1, 1, 1), "defined twice"),
    (TEXT + "hello\n", ":9: 'hello' is no node or edge"),
    (TEXT.replace("1.5", "nan"), "'node2', forward_compute_time is 'nan'"),
    (TEXT.replace("1.5", "-1.5"), "finite number >= 0"),
    (TEXT.replace("1.5", "fast"), "finite number >= 0"),
    (TEXT.replace("[30.0; 1.0; 1.0]", "[]"), "activation_size is"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_lines_are_named(refused, text, message):
    refused(text, message)


def test_the_real_files(data_dir):
    sizes = {p.stem: load(p).num_nodes for p in (data_dir / "pipedream").glob("[a-z]*.txt")}
    assert sizes["alexnet"] == 23
    assert sizes["nasnetamobile"] == 921
    assert load(data_dir / "pipedream" / "gnmt.txt", training=True).is_backward.sum() == 45
