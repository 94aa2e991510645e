"""`pretrain_prototypes`: searches, prototypes, choice, offsets; each goes on from where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import CheckpointError
from go_rl.core.files.whole_file import whole_file, write_text, writing
from go_rl.core.printable import reason
from go_rl.graphs.zoo.index import GENERATED_VERSION, ZOO_VERSION
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.learn.config import CONFIG_FILE, WEIGHTS_FILE, PrototypeTrainConfig
from go_rl.policy.learn.problems.curriculum import CACHE
from go_rl.policy.learn.prototypes.choice import Example, having_prototypes, learn_choice
from go_rl.policy.learn.prototypes.cover import (
    PriceTable,
    candidates,
    even_shares,
    greedy_cover,
    regrets,
    spread_choice,
)
from go_rl.policy.learn.prototypes.forms import FORMS
from go_rl.policy.learn.prototypes.kept import Kept
from go_rl.policy.learn.prototypes.offsets import learn_offsets
from go_rl.policy.learn.prototypes.problems import (
    ProblemSource,
    PrototypeProblem,
    split_problems,
    training_problems,
)
from go_rl.policy.learn.prototypes.searches import Searched, SearchFolder, search_all
from go_rl.policy.learn.run_state.effort import EffortLog
from go_rl.policy.observations.buckets import Padded, pad
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.policy.prototypes.plans import PrototypePlans
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.runtime.array_file import UNREADABLE, read_arrays

FINDS = "finds"
"""Folder of the searches, in that of the run."""
CHOSEN = "chosen.npz"
"""Weights after the choice has been learned."""
CHOOSING, MOVING = "choosing.msgpack", "moving.msgpack"
"""File names of the checkpoints of choice and of offsets."""
KEPT = 64
"""Problems that stay in memory while offsets are learned."""
Report = Callable[[int, str], None]


def pretrain_prototypes(
    config: PrototypeTrainConfig, folder: Path, report: Report | None = None
) -> Weights:
    """Train a policy of prototypes; a run found in the folder is resumed.

    Args:
        config: what to do.
        folder: of the run; the weights are in ``weights.npz`` at last.
        report: called with the updates done and a sentence.

    Raises:
        TrainingError: nothing can be learned from, or a number is not finite.
        CheckpointError: the folder is damaged, or cannot be written.
        GoRLError: an own model cannot be read.
    """
    return _Run(config, folder, report or (lambda update, sentence: None)).trained()


class _Run:
    """One run in its folder."""

    def __init__(self, config: PrototypeTrainConfig, folder: Path, report: Report) -> None:
        _own_folder(folder, config)
        self.config, self.folder = config, folder
        self.form = FORMS[config.kind]
        self._report = report
        self.effort = EffortLog(folder, config)
        finds = folder / FINDS if config.finds is None else Path(config.finds)
        self.finds = SearchFolder(finds)
        self.source = ProblemSource(config, finds / CACHE)
        self.priced: dict[str, Float64[np.ndarray, "K"]] = {}
        """Seconds of the prototypes on problems on which they were candidates."""

    def tell(self, sentence: str, done: int = 0) -> None:
        self.effort.count()
        self._report(done, sentence)

    def trained(self) -> Weights:
        problems = training_problems(self.config)
        found = search_all(
            problems, self.source, self.finds, self.form, self.config.rollouts, self.tell,
            self.effort.count,
        )  # fmt: skip
        known = {p.name: one for p, one in zip(problems, found, strict=True) if one.rollouts}
        able = [p for p in problems if p.name in known]
        taught, held_out = split_problems(able, self.config.held_out)
        path = self.folder / CHOSEN
        if path.exists():
            chosen = load_weights(path, self.config.policy.objective)
            agent, curve = (
                chosen.agent,
                [(int(at), float(score)) for at, score in chosen.card["choice"]],
            )
        else:
            prototypes = self._prototypes(taught, known)
            agent = having_prototypes(new_agent(self.config.policy, self.config.seed), prototypes)
            examples = self._examples(taught, held_out, known, prototypes)
            kept = Kept(self.folder / CHOOSING)
            agent, curve = learn_choice(agent, *examples, self.config, kept, self.tell)
            save_weights(Weights(agent, self.config.name, {"choice": curve}), path)
            kept.remove()
        agent = self._with_offsets(agent, taught)
        weights = Weights(agent, self.config.name, self._card(curve, len(able)))
        save_weights(weights, self.folder / WEIGHTS_FILE)
        return weights

    def _prototypes(
        self, taught: Sequence[PrototypeProblem], known: dict[str, Searched]
    ) -> Float32[np.ndarray, "K W"]:
        config = self.config
        found = [known[p.name] for p in taught]
        given = self.form.given
        tried = candidates(taught, found, given, config.candidates, config.seed)
        judges = self._some(taught, config.judged)
        table = self._table("candidates", tried)
        best = np.array([known[p.name].seconds[0] for p in judges])
        seconds = table.completed(judges, self.source, best, self.tell, "candidates on problems")
        regret = regrets(seconds, best)
        kept = range(len(given) if len(given) < config.policy.prototypes else 0)
        cover = greedy_cover(regret, even_shares(judges), config.policy.prototypes, kept)
        for k in sorted({*config.best_of, len(cover)}):
            mean = float(even_shares(judges) @ regret[:, cover[:k]].min(axis=1))
            self.tell(f"cover: regret {mean:.4f} of the best of {k}")
        if len(cover) == config.policy.prototypes:
            self.priced = dict(zip([p.name for p in judges], seconds[:, cover], strict=True))
        missing = config.policy.prototypes - len(cover)
        more = np.random.default_rng(config.seed).standard_normal((missing, tried.shape[1]))
        return np.concatenate([tried[cover], more.astype(np.float32)])

    def _examples(
        self, taught: Sequence[PrototypeProblem], held_out: Sequence[PrototypeProblem],
        known: dict[str, Searched], prototypes: Float32[np.ndarray, "K W"],
    ) -> tuple[list[Example], list[Example]]:  # fmt: skip
        table = self._table("prototypes", prototypes)
        table.take(self.priced)
        count = self.config.examples
        if count is not None:
            taught = self._some(taught, count)
            held_out = self._some(held_out, max(1, count // 4))
        both = [*taught, *held_out]
        best = np.array([known[p.name].seconds[0] for p in both])
        seconds = table.completed(
            both, self.source, best, self.tell, "prototypes on problems", self._see
        )
        regret = regrets(seconds, best)
        share = np.concatenate([even_shares(taught), even_shares(held_out)])
        rows = [
            Example(self._padded(p), regret[i].astype(np.float32), float(share[i]))
            for i, p in enumerate(both)
        ]
        return rows[: len(taught)], rows[len(taught) :]

    def _some(self, problems: Sequence[PrototypeProblem], count: int) -> Sequence[PrototypeProblem]:
        """At most so many, those on which candidates were judged among them."""
        return [problems[i] for i in spread_choice(problems, count, self.config.seed + 1)]

    def _table(self, name: str, deviations: Float32[np.ndarray, "C W"]) -> PriceTable:
        return PriceTable(self.folder / CACHE / f"{name}.npz", deviations, self.effort.count)

    def _see(self, problem: PrototypeProblem, plans: PrototypePlans) -> None:
        path = self._seen(problem)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.savez_compressed(file, **vars(plans.observed))

    def _seen(self, problem: PrototypeProblem) -> Path:
        return self.finds.folder / CACHE / "seen" / f"{problem.name}.npz"

    def _padded(self, problem: PrototypeProblem) -> Padded:
        path = self._seen(problem)
        if not path.exists():
            self._see(problem, self.source.searched(problem))
        return pad(_observation(path))

    def _with_offsets(self, agent: Agent, taught: Sequence[PrototypeProblem]) -> Agent:
        if not self.config.updates:
            return agent

        @lru_cache(KEPT)
        def plans(i: int) -> PrototypePlans:
            return self.source.searched(taught[i])

        makers = [lambda i=i: plans(i) for i in range(len(taught))]
        kept = Kept(self.folder / MOVING)
        found = learn_offsets(agent, makers, even_shares(taught), self.config, kept, self.tell)
        kept.remove()
        return found

    def _card(self, curve: Sequence[tuple[int, float]], problems: int) -> dict[str, Any]:
        return {
            "zoo": ZOO_VERSION, "generated": GENERATED_VERSION, "problems": problems,
            "training": asdict(replace(self.config, finds=None)),
            "choice": [list(point) for point in curve], "jax": jax.__version__,
            **self.effort.card(),
        }  # fmt: skip


def _own_folder(folder: Path, config: PrototypeTrainConfig) -> None:
    """Make the folder, and write the configuration, unless it is of another run.

    Raises:
        CheckpointError: it is, or cannot be written.
    """
    path = folder / CONFIG_FILE
    with writing(folder, CheckpointError):
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            config.check_goes_on(folder, path.read_text("utf-8", errors="replace"), path)
        write_text(path, config.to_json() + "\n")


def _observation(path: Path) -> PolicyGraph:
    try:
        found = read_arrays(path)
        return PolicyGraph(**{**found, "num_devices": int(found["num_devices"])})
    except (*UNREADABLE, TypeError) as error:
        raise CheckpointError(f"{path}: is no observation ({reason(error)}); delete it") from error
