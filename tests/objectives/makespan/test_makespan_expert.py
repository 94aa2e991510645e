"""The human expert's rules: where each family's layers go, and what follows them."""

from reference.step_networks import priced, scoped

from go_rl.core import OpGraph, OpKind
from go_rl.graphs.cutting.layers import layer_names
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.methods.expert import expert_devices
from go_rl.objectives.makespan.workspace import makespan_workspace


def expert_by_scope(graph: OpGraph, devices: str) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    device = expert_devices(makespan_workspace(priced(graph, devices, decisions=("placement",))))
    for scope, where in zip(layer_names(graph), device.tolist(), strict=True):
        found.setdefault(scope, set()).add(where)
    return found


def test_the_expert_puts_recurrent_layers_on_devices_in_turn():
    """Layer i of 4 on i * 2 // 4; the loss with the softmax, both directions with each other."""
    graph = scoped(
        "RNNLM/Embed_0/gather", "RNNLM/split", *(f"RNNLM/LSTMCell_{i}.run/dot" for i in range(4)),
        "RNNLM/Dense_0/dot", "RNNLM/log", "RNNLM/neg", "RNNLM/Dense_0/dot.b",
        *(f"RNNLM/LSTMCell_{i}.run/dot.b" for i in (3, 2, 1, 0)), "RNNLM/concatenate",
        "RNNLM/Embed_0/scatter", backward=7,
    )  # fmt: skip
    device = expert_devices(makespan_workspace(priced(graph, decisions=("placement",))))
    assert device.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]


def test_the_expert_places_gnmt():
    """Two encoder layers, the first in both directions; two decoder layers; four devices."""
    root = "GNMT/GNMT._encoded/LSTMCell_{}.run"
    bottom = "GNMT/GNMT._decoded/GNMT._bottom"
    found = expert_by_scope(zoo_graph("gnmt-2-layers-training"), "p100x4")
    where = {
        "GNMT/Embed_0": 0, "GNMT/Embed_1": 0, root.format(0): 0, root.format(1): 0,
        root.format(2): 2, f"{bottom}/Dense_0": 0, bottom: 0, f"{bottom}/LSTMCell_3": 0,
        "GNMT/GNMT._decoded/LSTMCell_4.run": 2, "GNMT/Dense_2": 3,
    }  # fmt: skip
    assert {scope: found[scope] for scope in where} == {s: {d} for s, d in where.items()}


def test_the_expert_cuts_a_transformer_between_layers():
    found = expert_by_scope(zoo_graph("transformer-xl-4-layers-training"), "p100x2")
    for layer in range(4):
        half = {layer // 2}
        assert found[f"TransformerXL/RelativeAttention_{layer}/query"] == half
        assert found[f"TransformerXL/FeedForward_{layer}/Dense_0"] == half
        assert found[f"TransformerXL/LayerNorm_{2 * layer + 1}"] == half
    assert found["TransformerXL/Embed_0"] == {0}
    assert found["TransformerXL/Embed_0.attend"] == {1}


def test_the_expert_cuts_wavenet_and_amoebanet_into_ranges():
    wave = expert_by_scope(zoo_graph("wavenet-2x18-training"), "p100x2")
    for number in range(56):  # layer i has convolutions 3 i + 1 to 3 i + 3
        scope = (
            "WaveNet/WaveNet._gated/Conv_" if number % 3 == 1 and number < 53 else "WaveNet/Conv_"
        )
        assert wave[f"{scope}{number}"] == {int(number > 27)}
    cells = expert_by_scope(zoo_graph("amoebanet-d-6-192"), "p100x2")
    numbers = sorted({int(s.split("/")[1][5:]) for s in cells if "/Cell_" in s})
    for scope, found in cells.items():
        if "/Cell_" in scope:
            assert found == {int(scope.split("/")[1][5:]) * 2 // len(numbers)}
    assert cells["AmoebaNetD/Conv_0"] == {0}
    assert cells["AmoebaNetD/Dense_0"] == {1}


def test_the_expert_spreads_the_branches_of_an_inception():
    """Four branches of the first block on four devices; stem and joints on the first."""
    found = expert_by_scope(zoo_graph("inception-v3-training"), "p100x4")
    branches = (("conv2d_8", "conv2d_9", "conv2d_10"), ("conv2d_6", "conv2d_7"),
                ("average_pooling2d", "conv2d_11"), ("conv2d_5",))  # fmt: skip
    homes = [set().union(*(found[scope] for scope in branch)) for branch in branches]
    assert sorted(map(sorted, homes)) == [[0], [1], [2], [3]]
    assert homes[0] == {0}  # the heaviest
    assert found["conv2d_4"] == found["mixed0"] == found["mixed10"] == {0}


def test_an_unknown_network_is_cut_into_contiguous_layers_of_equal_work():
    graph = scoped(*(f"net/block_{i}/op" for i in range(6)))
    device = expert_devices(makespan_workspace(priced(graph, "p100x3", decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 2, 2]
    flat = scoped("a", "b", "c", "d", "c.b", "a.b", backward=2,
                  edges=[(0, 1), (1, 2), (2, 3), (3, 4), (2, 4), (4, 5), (0, 5)])  # fmt: skip
    device = expert_devices(makespan_workspace(priced(flat, decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 1, 0]


def test_weights_are_updated_where_they_are_used():
    builder = GraphBuilder("tied")
    for name, key in (("net/one/dot", "w"), ("net/two/dot", "v"), ("new w", "w"), ("new v", "v")):
        builder.add_node(
            Node(name, "Op", OpKind.MATMUL, flops=1e9, bytes_accessed=1e8, weight_bytes=1e6,
                 weight_arrays={key: 1e6})
        )  # fmt: skip
    graph = builder.build()
    device = expert_devices(makespan_workspace(priced(graph, decisions=("placement",))))
    where = dict(zip(graph.names, device.tolist(), strict=True))
    assert where == {"net/one/dot": 0, "net/two/dot": 1, "new w": 0, "new v": 1}
