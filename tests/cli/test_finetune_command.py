"""``go-rl finetune`` and ``finetune-step``: plan folder and weights that the next command takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest
from go_rl.policy.makespan.agent import new_step_agent
from go_rl.policy.makespan.weights import StepWeights, load_step_weights, save_step_weights
from go_rl.train.makespan.learning import StepFineTuned
from policy.tiny import TINY, tiny_agent

import go_rl
from go_rl.core import Budget, SearchError
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.search import DefaultPlacement, Greedy
from go_rl.train.fine_tune import FineTuned

MODEL = "zoo:vae-3-layers"


@dataclass(frozen=True)
class Kind:
    """One of the two commands, and what goes with it."""

    name: str
    flags: tuple[str, ...]
    card: dict[str, object]
    use: str
    baseline: type


KINDS = (
    Kind(
        "finetune",
        ("--hardware", "ring4", "--rules", "strict"),
        {"package": "ring4", "rules": "strict"},
        "partition",
        Greedy,
    ),
    Kind(
        "finetune-step",
        ("--hardware", "p100x2", "--tasks", "placement,fusion"),
        {"package": "p100x2", "tasks": ["placement", "fusion"]},
        "optimize",
        DefaultPlacement,
    ),
)


def loader(kind: Kind):
    """Reads weights of the kind."""
    return load_weights if kind.name == "finetune" else load_step_weights


def start(kind: Kind) -> None:
    """Write tiny untrained weights to ``start.npz``."""
    if kind.name == "finetune":
        save_weights(Weights(tiny_agent(), "tiny-1.0", {}), "start.npz")
    else:
        save_step_weights(StepWeights(new_step_agent(TINY, 0), "tiny-1.0", {}), "start.npz")


@pytest.fixture
def quick(monkeypatch) -> None:
    """Learning is tested elsewhere: here it prices one plan and moves every parameter by 1."""
    for method, kind in zip((FineTuned, StepFineTuned), KINDS, strict=True):

        def learn(self, problem, budget, seed, baseline=kind.baseline):
            plan = baseline().optimize(problem, Budget(samples=1), seed)
            moved = jax.tree.map(lambda x: x + 1, self.agent.params)
            return replace(plan, optimizer=self.name), replace(self.agent, params=moved)

        monkeypatch.setattr(method, "learn", learn)


def check_folder(command, kind: Kind, samples: int):
    """Run the command; return the weights before and after."""
    start(kind)
    few = ("--samples", samples, "--batch", 8, "--first", 2)
    found = command(kind.name, MODEL, *kind.flags, *few, "--weights", "start.npz", "--out", "tuned")
    assert found.code == 0, found.err
    assert "finetuned" in found.out
    assert f"next: go-rl {kind.use} {MODEL} " in found.out
    assert "--weights tuned/weights.npz" in found.out
    assert command("check", "tuned/plan.json", MODEL).code == 0
    used = command(kind.use, MODEL, *kind.flags, "--method", kind.baseline().name,
                   "--samples", 2, "--json", "--weights", "tuned/weights.npz")  # fmt: skip
    assert used.code == 0, used.err
    weights = loader(kind)("tuned/weights.npz")
    assert weights.name == "tiny-1.0+vae-3-layers"
    wanted = kind.card | {"fine-tuned from": "tiny-1.0", "samples": samples}
    assert {name: weights.card[name] for name in wanted} == wanted
    return (jax.tree.leaves(w.agent.params) for w in (loader(kind)("start.npz"), weights))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_plan_and_weights_that_the_next_command_takes(command, quick, kind):
    before, after = check_folder(command, kind, 12)
    assert all(np.array_equal(a + 1, b) for a, b in zip(before, after, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_learning_moves_the_weights(command, kind):
    before, after = check_folder(command, kind, 12)
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("finetune-step", "--weights", "partition-1.0"), "kind 'go_rl-step-policy'"),
        (("finetune", "--weights", "graph-1.0"), "kind 'go_rl-policy'"),
        (("finetune-step", "--samples", "0"), "samples must be >= 1"),
        (("finetune-step", "--seed", "-1"), "seed must be >= 0"),
        (("finetune-step", "--batch", "1"), "batch must be >= 2"),
        (("finetune-step", "--tasks", "placment"), "did you mean 'placement'"),
        (("finetune-step", "--hardware", "ring4"), "needs fully connected devices"),
    ],
)
def test_bad_input_is_one_clear_error(command, tmp_path, arguments, message):
    name, *flags = arguments
    found = command(name, MODEL, *flags, "--out", "tuned")
    assert found.code == 2
    assert message in " ".join(found.err.split())
    assert not (tmp_path / "tuned").exists()


def test_options_of_a_search_are_refused():
    with pytest.raises(SearchError, match="fine_tune_step has no option 'method'"):
        go_rl.fine_tune_step(MODEL, method="annealing")
    with pytest.raises(SearchError, match=r"fine_tune has no option 'rule'; did you mean 'rules'"):
        go_rl.fine_tune(MODEL, rule="strict")
