"""``go-rl finetune``: plan folder and weights that the next command takes."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest
from policy.tiny import tiny_agent, tiny_makespan_agent

import go_rl
from go_rl.api.training.learner_options import LearnerOptions
from go_rl.core import Budget, SearchError
from go_rl.objectives.methods import DefaultPlacement, Greedy
from go_rl.policy.learn.config import FINE_TUNING, FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.weights import Weights, load_weights, save_weights

MODEL = "zoo:vae-3-layers"


@dataclass(frozen=True)
class Kind:
    """An objective, and what goes with it."""

    name: str
    flags: tuple[str, ...]
    card: dict[str, object]
    baseline: type


KINDS = (
    Kind(
        "ring",
        ("--hardware", "ring4", "--rules", "strict"),
        {"hardware": "ring4", "rules": "strict"},
        Greedy,
    ),
    Kind(
        "makespan",
        ("--hardware", "p100x2", "--decide", "placement,fusion"),
        {"hardware": "p100x2", "decisions": ["placement", "fusion"]},
        DefaultPlacement,
    ),
)


def start(kind: Kind) -> None:
    """Write tiny untrained weights to ``start.npz``."""
    agent = tiny_agent() if kind.name == "ring" else tiny_makespan_agent()
    save_weights(Weights(agent, "tiny-1.0", {}), "start.npz")


@pytest.fixture
def quick(monkeypatch) -> None:
    """Learning is tested elsewhere: here it prices one plan and moves every parameter by 1."""

    def learn(self, problem, budget, seed):
        kind = next(kind for kind in KINDS if kind.name == problem.objective)
        plan = kind.baseline().optimize(problem, Budget(samples=1), seed)
        moved = jax.tree.map(lambda x: x + 1, self.agent.params)
        return replace(plan, optimizer=self.name), self.agent.having(moved)

    monkeypatch.setattr(FineTuned, "learn", learn)


def check_folder(command, kind: Kind, samples: int):
    """Run the command; return the weights before and after."""
    start(kind)
    few = ("--samples", samples, *(("--batch", 8, "--first", 2) if kind.name == "ring" else ()))
    found = command(
        "finetune", MODEL, *kind.flags, *few, "--weights", "start.npz", "--out", "tuned"
    )
    assert found.code == 0, found.err
    assert "finetuned" in found.out
    assert f"next: go-rl optimize {MODEL} " in found.out
    assert "--weights tuned/weights.npz" in found.out
    assert command("check", "tuned/plan.json", MODEL).code == 0
    used = command("optimize", MODEL, *kind.flags, "--method", "policy",
                   "--samples", 2, "--json", "--weights", "tuned/weights.npz")  # fmt: skip
    assert used.code == 0, used.err
    weights = load_weights("tuned/weights.npz")
    assert weights.name == "tiny-1.0+vae-3-layers"
    wanted = kind.card | {"fine-tuned from": "tiny-1.0", "samples": samples}
    assert {name: weights.card[name] for name in wanted} == wanted
    return (jax.tree.leaves(w.agent.params) for w in (load_weights("start.npz"), weights))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_plan_and_weights_that_the_next_command_takes(command, quick, kind):
    before, after = check_folder(command, kind, 12)
    assert all(np.array_equal(a + 1, b) for a, b in zip(before, after, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_learning_moves_the_weights(command, kind):
    before, after = check_folder(command, kind, 12)
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_options_of_a_search_are_refused():
    with pytest.raises(SearchError, match=r"give config=LearnerOptions\(learning_rate=0\.1\)"):
        go_rl.finetune(MODEL, "ring4", learning_rate=0.1)
    with pytest.raises(SearchError, match="finetune has no option 'method'"):
        go_rl.finetune(MODEL, method="annealing")
    with pytest.raises(SearchError, match=r"finetune has no option 'rule'; did you mean 'rules'"):
        go_rl.finetune(MODEL, rule="strict")
    with pytest.raises(
        SearchError, match="objective must be one of ring, makespan, not 'max-load'"
    ):
        go_rl.finetune(MODEL, objective="max-load")


def test_a_configuration_of_another_kind_is_refused(unchecked_types):
    with pytest.raises(SearchError, match="config must be a FineTuneConfig, not 'fast'"):
        go_rl.finetune(MODEL, config="fast")  # pyright: ignore[reportArgumentType]


def test_learner_options_change_the_objective_s_own_configuration():
    assert LearnerOptions().config_for("ring") == FineTuneConfig()
    assert LearnerOptions().config_for("dispatch") is None
    chosen = LearnerOptions(batch=4, learning_rate=0.5, remembered=0)
    made = chosen.config_for("nodes")
    assert isinstance(made, FineTuneConfig)
    assert (made.batch, made.ppo.learning_rate, made.remembered) == (4, 0.5, 0)
    assert made.ppo.epochs == FINE_TUNING["nodes"].ppo.epochs
