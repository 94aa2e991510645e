"""The human expert's rules: where each family's layers go, and what follows them."""

from reference.step_networks import priced, scoped

from go_rl.core import OpGraph
from go_rl.graphs.cutting.layers import layer_names
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.methods.expert import expert_devices
from go_rl.objectives.makespan.workspace import makespan_workspace


def expert_by_scope(graph: OpGraph, devices: str) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    device = expert_devices(makespan_workspace(priced(graph, devices, decisions=("placement",))))
    for scope, where in zip(layer_names(graph), device.tolist(), strict=True):
        found.setdefault(scope, set()).add(where)
    return found


def test_the_expert_cuts_a_transformer_between_layers():
    found = expert_by_scope(zoo_graph("transformer-xl-4-layers-training"), "p100x2")
    for layer in range(4):
        half = {layer // 2}
        assert found[f"TransformerXL/RelativeAttention_{layer}/query"] == half
        assert found[f"TransformerXL/FeedForward_{layer}/Dense_0"] == half
        assert found[f"TransformerXL/LayerNorm_{2 * layer + 1}"] == half
    assert found["TransformerXL/Embed_0"] == {0}
    assert found["TransformerXL/Embed_0.attend"] == {1}


def test_an_unknown_network_is_cut_into_contiguous_layers_of_equal_work():
    graph = scoped(*(f"net/block_{i}/op" for i in range(6)))
    device = expert_devices(makespan_workspace(priced(graph, "p100x3", decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 2, 2]
    flat = scoped("a", "b", "c", "d", "c.b", "a.b", backward=2,
                  edges=[(0, 1), (1, 2), (2, 3), (3, 4), (2, 4), (4, 5), (0, 5)])  # fmt: skip
    device = expert_devices(makespan_workspace(priced(flat, decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 1, 0]
