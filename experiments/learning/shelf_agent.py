"""An agent of the shelf on a real model: sb3-contrib's MaskablePPO partitions the zoo's U-Net.

Run: ``python -m experiments.learning.shelf_agent [--steps 30000] [--seeds 3]``, with the extra
``agents``. A run that was cut off goes on with the next seed (``results/shelf_agent.csv``).

Four arms with the same agent, hyper-parameters and episode steps: absolute actions (a chip) or
relative ones (stay, advance), each with the reward at the end alone or shaped. The agent sees a
summary of the observation (`CurrentNode`): the whole of it in a row is thousands of numbers, most
of which never change. Controls: the agent before it has learned, moves drawn uniformly from the
masks, the compiler heuristic (1 by definition), and linear-dp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.page_text import NOTHING, table_lines
from experiments.statistics import with_range
from go_rl.core import Budget, MissingDependencyError
from go_rl.envs import CurrentNode  # importing it registers the environment
from go_rl.objectives.methods import LinearDP
from go_rl.report.figures import LINE_COLOURS, new_figure

GRAPH, HARDWARE = "unet", "ring4"
WINDOWS = 15
"""Points of a curve."""
EVALUATED = 10
"""Episodes drawn from a policy that is evaluated."""
ARMS = {
    "absolute": ("node", "speed-up"),
    "relative": ("relative", "speed-up"),
    "absolute, shaped": ("node", "shaped-speed-up"),
    "relative, shaped": ("relative", "shaped-speed-up"),
}
"""Form of the actions and the reward of each arm."""
AGENT = {
    "n_steps": 512, "batch_size": 128, "n_epochs": 10, "gamma": 1.0, "gae_lambda": 0.5,
    "target_kl": 0.03,
}  # fmt: skip
"""Hyper-parameters that are not Stable-Baselines3's defaults, the same for all arms."""
FIRST_RATE = 1e-3
"""Learning rate, which falls linearly to 0."""
UNIFORM = "uniform"
"""Policy that draws from the mask."""
PRICED = 100
"""Plans that linear-dp prices at most."""


@dataclass(frozen=True)
class ShelfAgent(Experiment):
    """Options of this experiment."""

    steps: int = 30_000
    """Episode steps of each run."""
    seeds: int = 3
    """Runs of each arm."""

    def run(self) -> None:
        """Make the rows that are missing; write the page and its figure."""
        table = self.kept_rows(Row)
        for seed in range(1, self.seeds + 1):  # 0 was used to choose the hyper-parameters
            for arm in ARMS:
                if not table.has(arm, seed, "drawn", self.steps):
                    for row in rows_of(arm, seed, self.steps):
                        table.add(row)
        self.save_figure(figure(table.rows, ARMS))
        self.write_page(page(table.rows, self))


@dataclass(frozen=True)
class Row:
    """Mean throughput over some episodes of one run."""

    arm: str
    """Name in `ARMS`."""
    seed: int
    when: str
    """``uniform``: random moves; ``learning``: episodes of training; ``greedy``, ``drawn``: the
    policy's likeliest actions, or actions drawn from it."""
    steps: int
    """Episode steps learned by then; at the end of a window."""
    throughput: float
    """Mean over the heuristic's."""


def environment(arm: str) -> gymnasium.Env[Any, Any]:
    """Return the environment of an arm, observed by `CurrentNode`."""
    action, reward = ARMS[arm]
    env = gymnasium.make("go_rl/Partition-v1", graph=f"zoo:{GRAPH}", hardware=HARDWARE,
                         action=action, reward=reward)  # fmt: skip
    return CurrentNode(env)


def rows_of(arm: str, seed: int, steps: int) -> list[Row]:
    """Train an agent; return its rows, the last one of them when it has learned."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
        from sb3_contrib import MaskablePPO  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingDependencyError(
            "this experiment needs sb3-contrib: pip install sb3-contrib"
        ) from error
    torch.set_num_threads(1)  # a network this small gains nothing from more
    env, ended = environment(arm), []
    agent = MaskablePPO("MlpPolicy", env, device="cpu", seed=seed,
                        learning_rate=lambda left: FIRST_RATE * left, **AGENT)  # fmt: skip
    rows = [Row(arm, seed, UNIFORM, 0, float(np.mean(drawn_uniformly(env, seed))))]
    rows += evaluated(agent, env, arm, seed, 0)
    agent.learn(steps, callback=noting(ended))
    rows += windows(arm, seed, ended)
    print(rows[-1], flush=True)
    return rows + evaluated(agent, env, arm, seed, steps)


def noting(ended: list[tuple[int, float]]) -> Callable[[dict[str, Any], dict[str, Any]], bool]:
    """Return a callback of Stable-Baselines3 that notes steps and throughput of each episode."""

    def note(known: dict[str, Any], _: dict[str, Any]) -> bool:
        for info in known["infos"]:
            if "seconds" in info:
                ended.append((known["self"].num_timesteps, throughput(info)))
        return True

    return note


def windows(arm: str, seed: int, ended: Sequence[tuple[int, float]]) -> list[Row]:
    """Return the rows of the episodes of training, in `WINDOWS` equal parts."""
    return [
        Row(arm, seed, "learning", int(part[-1][0]), float(np.mean(part[:, 1])))
        for part in np.array_split(np.array(ended), WINDOWS)
    ]


def throughput(info: dict[str, Any]) -> float:
    """Return the throughput over the heuristic's of a plan; 0 of a failure."""
    return info["reference_seconds"] / info["seconds"]


def evaluated(
    agent: Any, env: gymnasium.Env[Any, Any], arm: str, seed: int, steps: int
) -> list[Row]:
    """Return the rows of a policy: with its likeliest actions, and with actions drawn."""
    rows = []
    for when, episodes in (("greedy", 1), ("drawn", EVALUATED)):

        def likely(seen: Any, masks: np.ndarray, greedy: bool = when == "greedy") -> int:
            return int(agent.predict(seen, action_masks=masks, deterministic=greedy)[0])

        found = [played(likely, env) for _ in range(episodes)]
        rows.append(Row(arm, seed, when, steps, float(np.mean(found))))
    return rows


def played(choose: Callable[[Any, np.ndarray], int], env: gymnasium.Env[Any, Any]) -> float:
    """Return the throughput of one episode by a choice from what is seen and the mask."""
    seen, _ = env.reset()
    while True:
        action = choose(seen, env.get_wrapper_attr("action_masks")())
        seen, _, ended, _, info = env.step(action)
        if ended:
            return throughput(info)


def drawn_uniformly(env: gymnasium.Env[Any, Any], seed: int) -> list[float]:
    """Return the throughput of episodes whose actions are drawn uniformly from the masks."""
    random = np.random.default_rng(seed)
    return [
        played(lambda _, masks: int(random.choice(np.flatnonzero(masks))), env)
        for _ in range(3 * EVALUATED)
    ]


def values(rows: Sequence[Row], arm: str, when: str, steps: int) -> list[float]:
    """Return the throughput of each seed."""
    return [r.throughput for r in rows if (r.arm, r.when, r.steps) == (arm, when, steps)]


def curves(rows: Sequence[Row], arm: str) -> tuple[np.ndarray, np.ndarray]:
    """Return [W] mean steps at the ends of the windows and [S, W] throughput of each seed."""
    seeds = sorted({row.seed for row in rows if row.arm == arm})
    each = [[r for r in rows if (r.arm, r.when, r.seed) == (arm, "learning", s)] for s in seeds]
    steps = np.mean([[row.steps for row in run] for run in each], axis=0)
    return steps, np.array([[row.throughput for row in run] for run in each])


def figure(rows: Sequence[Row], arms: Iterable[str]) -> Figure:
    """Return the curves: the mean of the seeds, and from the least to the greatest."""
    drawing = new_figure(7.5, 4.5)
    axes = drawing.subplots()
    axes.axhline(1.0, color="black", lw=1, ls=":", label="compiler heuristic")
    for arm, colour in zip(arms, LINE_COLOURS, strict=False):
        steps, found = curves(rows, arm)
        axes.plot(steps, found.mean(axis=0), color=colour, label=arm)
        axes.fill_between(steps, found.min(axis=0), found.max(axis=0), color=colour, alpha=0.15)
    axes.set_xlabel("episode steps")
    axes.set_ylabel("throughput over the heuristic's")
    axes.set_ylim(0.0, 1.1)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0.0, 0.88))
    return drawing


def page(rows: Sequence[Row], options: ShelfAgent) -> str:
    """Return the page."""
    heads = ["agent", "seeds", "uniform", "untrained, drawn", "first episodes", "last episodes",
             "trained, drawn", "trained, greedy"]  # fmt: skip
    lines = []
    for arm in ARMS:
        learned = curves(rows, arm)[1]
        cells = [
            values(rows, arm, UNIFORM, 0), values(rows, arm, "drawn", 0), learned[:, 0],
            learned[:, -1], values(rows, arm, "drawn", options.steps),
            values(rows, arm, "greedy", options.steps),
        ]  # fmt: skip
        lines.append([arm, str(len(learned)), *(with_range(found, ".3f") for found in cells)])
    same = [NOTHING] * (len(heads) - 2)
    lines += [
        ["compiler heuristic", *same, "1.000"],
        ["linear-dp", *same, f"{dynamic(environment('absolute')):.3f}"],
    ]
    given = ", ".join(f"{name} {setting:g}" for name, setting in AGENT.items())
    return (
        f"# An agent of the shelf\n\nMaskablePPO of sb3-contrib partitions `zoo:{GRAPH}` on "
        f"`{HARDWARE}`: {options.steps} episode steps, MlpPolicy, learning "
        f"rate {FIRST_RATE:g} falling to 0, {given}, the same for all. Throughput over the "
        "compiler heuristic's: mean of the seeds (least to greatest). *Uniform*: actions drawn "
        f"from the masks. *First*, *last episodes*: of training, in {WINDOWS} equal windows. "
        f"*Drawn*: {EVALUATED} episodes of the policy; *greedy*: its likeliest actions. The "
        "hyper-parameters were chosen on seed 0 of *relative, shaped*, in a few runs; that seed is "
        "not shown.\n\n"
        + "\n".join(table_lines(heads, lines))
        + f"\n\n![Throughput against episode steps; bands from the least to the greatest seed]"
        f"({options.stem.name}.svg)\n"
    )


def dynamic(env: gymnasium.Env[Any, Any]) -> float:
    """Return the throughput of linear-dp's plan over the heuristic's."""
    plan_env: Any = env.unwrapped
    case = plan_env.cases[0]
    plan = LinearDP().optimize(case.problem, Budget(PRICED), 0)
    return case.workspace.reference_seconds / plan.value


if __name__ == "__main__":
    ShelfAgent.main()
