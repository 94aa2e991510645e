"""Arguments that are no sense at all: one sentence of ours each, never a bare TypeError."""

import pytest

import go_rl
from go_rl.core.errors import GoRLError


@pytest.fixture(scope="module")
def graph():
    return go_rl.load("zoo:gcn-3-layers")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda g: go_rl.list_records(None), "a store of records must be a path, not None"),
        (lambda g: go_rl.merge_stores(None, ["a"]), "a store of records must be a path"),
        (lambda g: go_rl.merge_stores("a", "bc"), "sources must be a list of stores, not 'bc'"),
        (lambda g: go_rl.export_store("a", None), "the exported file must be a path, not None"),
        (lambda g: go_rl.list_records("sqlite:///a?uri=true"), "options of an SQLite file"),
        (lambda g: go_rl.zoo_entry(["a"]), "is named by a text"),
        (lambda g: go_rl.predict(g, device=3), "a device's name or data sheet must be a path"),
        (lambda g: go_rl.optimize(g, "ring4", finetune=10**400), "samples must be at most"),
        (lambda g: go_rl.optimize(g, "ring4", seconds=10**400), "seconds must be at most"),
        (lambda g: go_rl.optimize(g, "ring4", samples=1, seed=2**64), "seed must be at most 2"),
        (lambda g: go_rl.optimize(g, "p100x" + "9" * 5000), "devices must number 1 to"),
        (lambda g: go_rl.optimize(g, "ring4", weights="/dev/zero"), "a device or a pipe, and no"),
    ],
)  # fmt: skip
def test_nonsense_is_told_in_words(graph, call, said):
    with pytest.raises(GoRLError, match=said) as caught:
        call(graph)
    assert len(str(caught.value)) < 2_000


def test_a_plan_is_saved_under_a_path_only(graph):
    plan = go_rl.optimize(graph, "ring4", method="linear-dp", samples=2).best
    with pytest.raises(GoRLError, match="a plan's file must be a path, not None"):
        plan.save(None)
