"""``go-rl finetune``: plan folder and weights that the next command takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import jax
import numpy as np
import pytest
from policy.tiny import TINY, tiny_agent

import go_rl
from go_rl.api.learner_options import LearnerOptions
from go_rl.core import Budget, Objective, SearchError
from go_rl.policy.makespan.agent import new_step_agent
from go_rl.policy.makespan.weights import StepWeights, load_step_weights, save_step_weights
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.search import Greedy, StepDefault
from go_rl.train.config import FineTuneConfig, StepFineTuneConfig
from go_rl.train.fine_tune import FineTuned
from go_rl.train.makespan.learning import StepFineTuned

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
        {"hardware": "ring4", "package": "ring4", "rules": "strict"},
        Greedy,
    ),
    Kind(
        "makespan",
        ("--hardware", "p100x2", "--decide", "placement,fusion"),
        {
            "hardware": "p100x2",
            "package": "p100x2",
            "decisions": ["placement", "fusion"],
            "tasks": ["placement", "fusion"],
        },
        StepDefault,
    ),
)


def loader(kind: Kind):
    """Reads weights of the kind."""
    return load_weights if kind.name == "ring" else load_step_weights


def start(kind: Kind) -> None:
    """Write tiny untrained weights to ``start.npz``."""
    if kind.name == "ring":
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
    found = command(
        "finetune", MODEL, *kind.flags, *few, "--weights", "start.npz", "--out", "tuned"
    )
    assert found.code == 0, found.err
    assert "finetuned" in found.out
    assert f"next: go-rl optimize {MODEL} " in found.out
    assert "--weights tuned/weights.npz" in found.out
    assert command("check", "tuned/plan.json", MODEL).code == 0
    used = command("optimize", MODEL, *kind.flags, "--method", kind.baseline().name,
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
        ("makespan --weights partition-1.0", "kind 'go_rl-step-policy'"),
        ("ring --weights graph-1.0", "kind 'go_rl-policy'"),
        ("makespan --samples 0", "samples must be >= 1"),
        ("makespan --seed -1", "seed must be >= 0"),
        ("makespan --batch 1", "batch must be >= 2"),
        ("makespan --decide placment", "did you mean 'placement'"),
        ("makespan --hardware ring4", "needs fully connected devices"),
        ("makespan --widen 2", "widen has no meaning for objective makespan"),
        ("makespan --placement-entropy 0.1", "placement_entropy has no meaning for objective"),
        ("makespan --decoder placement", "decoder has no meaning for objective makespan"),
        ("makespan --rules strict", "rules has no meaning for objective makespan, only for ring"),
        ("ring --remembered 3", "remembered has no meaning for objective ring"),
        ("ring --decide fusion", "objective ring decides placement only, not fusion"),
    ],
)
def test_bad_input_is_one_clear_error(command, tmp_path, arguments, message):
    found = command("finetune", MODEL, "--objective", *arguments.split(), "--out", "tuned")
    assert found.code == 2
    assert message in " ".join(found.err.split())
    assert not (tmp_path / "tuned").exists()


def test_options_of_a_search_are_refused():
    with pytest.raises(SearchError, match="finetune has no option 'method'"):
        go_rl.finetune(MODEL, method="annealing")
    with pytest.raises(SearchError, match=r"finetune has no option 'rule'; did you mean 'rules'"):
        go_rl.finetune(MODEL, rule="strict")
    with pytest.raises(SearchError, match="policies work on objectives ring, makespan, not max-lo"):
        go_rl.finetune(MODEL, objective="max-load")
    with pytest.raises(SearchError, match="config must be a FineTuneConfig for objective ring"):
        go_rl.finetune(MODEL, config=StepFineTuneConfig())


def test_learner_options_change_the_objective_s_own_configuration():
    assert LearnerOptions().config_for(Objective.RING) == FineTuneConfig()
    assert LearnerOptions().config_for(Objective.MAKESPAN) == StepFineTuneConfig()
    chosen = LearnerOptions(batch=4, learning_rate=0.5, remembered=0)
    made = chosen.config_for(Objective.MAKESPAN)
    assert isinstance(made, StepFineTuneConfig)
    assert (made.batch, made.ppo.learning_rate, made.remembered) == (4, 0.5, 0)
    assert made.ppo.epochs == StepFineTuneConfig().ppo.epochs
