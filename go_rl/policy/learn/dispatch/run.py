"""`pretrain_dispatch`: searches, prototypes, choice, offsets; each goes on where it was cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float32

from go_rl.core import CheckpointError, Objective
from go_rl.core.files.whole_file import whole_file, write_text
from go_rl.graphs.zoo.index import GENERATED_VERSION, ZOO_VERSION
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.dispatch.features import list_schedulers
from go_rl.policy.learn.config import CONFIG_FILE, WEIGHTS_FILE, DispatchTrainConfig
from go_rl.policy.learn.dispatch.choice import Example, having_prototypes, learn_choice
from go_rl.policy.learn.dispatch.cover import (
    PriceTable,
    candidates,
    even_shares,
    greedy_cover,
    regrets,
    spread_choice,
)
from go_rl.policy.learn.dispatch.kept import Kept
from go_rl.policy.learn.dispatch.offsets import learn_offsets
from go_rl.policy.learn.dispatch.problems import (
    DispatchProblem,
    ProblemSource,
    split_problems,
    training_problems,
)
from go_rl.policy.learn.dispatch.searches import Searched, SearchFolder, search_all
from go_rl.policy.learn.problems.curriculum import CACHE
from go_rl.policy.learn.run_state.effort import EffortLog
from go_rl.policy.observations.buckets import Padded, pad
from go_rl.policy.observations.policy_graph import PolicyGraph
from go_rl.policy.weights import Weights, load_weights, save_weights
from go_rl.runtime.array_file import UNREADABLE, read_arrays

FINDS = "finds"
"""Folder of the searches, in that of the run."""
CHOSEN = "chosen.npz"
"""Weights after the choice has been learned."""
CHOOSING, MOVING = "choosing.msgpack", "moving.msgpack"
"""Where the learning of choice and of offsets stands."""
KEPT = 64
"""Problems that stay in memory while offsets are learned."""
Report = Callable[[int, str], None]


def pretrain_dispatch(
    config: DispatchTrainConfig, folder: Path, report: Report | None = None
) -> Weights:
    """Train a dispatch policy; a run found in the folder is resumed.

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

    def __init__(self, config: DispatchTrainConfig, folder: Path, report: Report) -> None:
        _own_folder(folder, config)
        self.config, self.folder = config, folder
        self._report = report
        self.effort = EffortLog(folder, config)
        finds = folder / FINDS if config.finds is None else Path(config.finds)
        self.finds = SearchFolder(finds)
        self.source = ProblemSource(config, finds / CACHE)
        self.observed: dict[str, Padded] = {}

    def tell(self, sentence: str, done: int = 0) -> None:
        self.effort.count()
        self._report(done, sentence)

    def trained(self) -> Weights:
        problems = training_problems(self.config)
        found = search_all(
            problems, self.source, self.finds, self.config.rollouts, self.tell, self.effort.count
        )
        known = {p.name: one for p, one in zip(problems, found, strict=True) if one.rollouts}
        able = [p for p in problems if p.name in known]
        taught, held_out = split_problems(able, self.config.held_out)
        path = self.folder / CHOSEN
        if path.exists():
            chosen = load_weights(path, Objective.MAKESPAN)
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
        self, taught: Sequence[DispatchProblem], known: dict[str, Searched]
    ) -> Float32[np.ndarray, "K W"]:
        config = self.config
        found = [known[p.name] for p in taught]
        tried = candidates(taught, found, config.candidates, config.seed)
        chosen = spread_choice(taught, config.judged, config.seed + 1)
        judges = [taught[i] for i in chosen]
        table = self._table("candidates", tried)
        seconds = table.completed(judges, self.source, self.tell, "candidates on problems")
        regret = regrets(seconds, np.array([known[p.name].seconds[0] for p in judges]))
        given = range(min(len(list_schedulers()), config.policy.prototypes))
        cover = greedy_cover(regret, even_shares(judges), config.policy.prototypes, given)
        for k in sorted({*config.best_of, len(cover)}):
            mean = float(even_shares(judges) @ regret[:, cover[:k]].min(axis=1))
            self.tell(f"cover: regret {mean:.4f} of the best of {k}")
        missing = config.policy.prototypes - len(cover)
        more = np.random.default_rng(config.seed).standard_normal((missing, tried.shape[1]))
        return np.concatenate([tried[cover], more.astype(np.float32)])

    def _examples(
        self, taught: Sequence[DispatchProblem], held_out: Sequence[DispatchProblem],
        known: dict[str, Searched], prototypes: Float32[np.ndarray, "K W"],
    ) -> tuple[list[Example], list[Example]]:  # fmt: skip
        table = self._table("prototypes", prototypes)
        both = [*taught, *held_out]
        seconds = table.completed(both, self.source, self.tell, "prototypes on problems", self._see)
        regret = regrets(seconds, np.array([known[p.name].seconds[0] for p in both]))
        share = np.concatenate([even_shares(taught), even_shares(held_out)])
        rows = [
            Example(self._padded(p), regret[i].astype(np.float32), float(share[i]))
            for i, p in enumerate(both)
        ]
        return rows[: len(taught)], rows[len(taught) :]

    def _table(self, name: str, deviations: Float32[np.ndarray, "C W"]) -> PriceTable:
        return PriceTable(self.folder / CACHE / f"{name}.npz", deviations, self.effort.count)

    def _see(self, problem: DispatchProblem, plans: DispatchPlans) -> None:
        path = self._seen(problem)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.savez_compressed(file, **vars(plans.observed))

    def _seen(self, problem: DispatchProblem) -> Path:
        return self.finds.folder / CACHE / "seen" / f"{problem.name}.npz"

    def _padded(self, problem: DispatchProblem) -> Padded:
        path = self._seen(problem)
        if not path.exists():
            plans = self.source.plans(problem)
            assert plans is not None
            self._see(problem, plans)
        return pad(_observation(path))

    def _with_offsets(self, agent: Agent, taught: Sequence[DispatchProblem]) -> Agent:
        if not self.config.updates:
            return agent

        @lru_cache(KEPT)
        def plans(i: int) -> DispatchPlans:
            found = self.source.plans(taught[i])
            assert found is not None
            return found

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


def _own_folder(folder: Path, config: DispatchTrainConfig) -> None:
    """Make the folder, and write the configuration, unless it is of another run.

    Raises:
        CheckpointError: it is, or cannot be written.
    """
    path = folder / CONFIG_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            config.check_goes_on(folder, path.read_text(encoding="utf-8"))
        write_text(path, config.to_json() + "\n")
    except OSError as error:
        raise CheckpointError(f"{folder}: cannot be written ({error.strerror})") from error


def _observation(path: Path) -> PolicyGraph:
    try:
        found = read_arrays(path)
        return PolicyGraph(**{**found, "num_devices": int(found["num_devices"])})
    except (*UNREADABLE, TypeError) as error:
        raise CheckpointError(f"{path}: is no observation ({error}); delete it") from error
