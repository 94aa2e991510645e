"""The human expert's rules: where each family's layers go, and what follows them."""

from reference.step_networks import priced, scoped

from go_rl.objectives.makespan.methods.expert import expert_devices
from go_rl.objectives.makespan.workspace import makespan_workspace


def test_an_unknown_network_is_cut_into_contiguous_layers_of_equal_work():
    graph = scoped(*(f"net/block_{i}/op" for i in range(6)))
    device = expert_devices(makespan_workspace(priced(graph, "p100x3", decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 2, 2]
    flat = scoped("a", "b", "c", "d", "c.b", "a.b", backward=2,
                  edges=[(0, 1), (1, 2), (2, 3), (3, 4), (2, 4), (4, 5), (0, 5)])  # fmt: skip
    device = expert_devices(makespan_workspace(priced(flat, decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 1, 0]
