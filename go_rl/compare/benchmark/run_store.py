"""`Run`: one method on one problem with one seed; and the file that keeps finished runs."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from go_rl.core import Budget, Objective, Plan, TrainingError, load_hardware
from go_rl.core.evaluation import finite
from go_rl.core.files.whole_file import write_text, writing
from go_rl.core.objective import OF_LINKS

FILE = "runs.jsonl"
REJECTED = "rejected"
"""Status of a plan that the independent checker refuses."""
UNUSABLE = "error"
"""Status of a method that cannot work on the problem."""
OK = "ok"


class Setting(NamedTuple):
    """Hardware, rules and decisions of problems; means are over the graphs of one setting."""

    hardware: str
    rules: str
    decide: str = ""
    """Connected devices: what is decided, with commas between; empty on a ring."""
    all_chips: bool = False
    """Ring: every chip must be used."""

    @property
    def objective(self) -> Objective:
        """Objective of the methods that are compared."""
        return OF_LINKS[load_hardware(self.hardware).links.topology]

    @property
    def title(self) -> str:
        """Text of a heading."""
        if self.decide:
            return f"{self.hardware}, decides {self.decide}"
        return f"{self.hardware}, rules {self.rules}{', every chip used' * self.all_chips}"


class ProblemName(NamedTuple):
    """A problem of a comparison."""

    graph: str
    hardware: str
    rules: str
    memory: str
    """``on``, ``off`` or ``auto``, as the user asked."""
    cost: str = "auto"
    """Cost model; of a learned model also which weights."""
    decide: str = ""
    """As in `Setting`."""
    all_chips: bool = False
    """As in `Setting`."""

    @property
    def setting(self) -> Setting:
        """Hardware, and rules or decisions."""
        return Setting(self.hardware, self.rules, self.decide, self.all_chips)


@dataclass(frozen=True)
class Run:
    """The outcome of one method on one problem with one seed. All times are in seconds."""

    problem: ProblemName
    method: str
    seed: int
    budget: tuple[int | None, float | None]
    """Samples and seconds that it was given; None: no limit."""
    digest: str
    """Digest of the graph."""
    nodes: int
    heuristic: float | None
    """T_max of the compiler heuristic; None: it found no plan."""
    value: float | None
    """T_max of the best plan; None: there is none."""
    bound: float
    """Proven lower bound on T_max by this run; 0: none."""
    samples: int
    """Plans priced."""
    seconds: float
    """Time of the run, without compilation."""
    cold_seconds: float | None
    """Time of a short first run that compiles; None: nothing to compile."""
    status: str
    """A `Status`, ``rejected`` or ``error``."""
    detail: str
    """A sentence for any status but ``ok``."""
    curve: tuple[tuple[int, float, float], ...]
    """Samples, seconds and T_max at each improvement."""
    weights: str = ""
    """Digest of the weights that a learned method started from."""
    decoder_calls: int | None = None
    """Calls of what completes plans (`go_rl.runtime.decoder_calls`); None: not counted."""

    @property
    def setting(self) -> Setting:
        """Hardware, and rules or decisions."""
        return self.problem.setting

    @property
    def key(self) -> tuple[Any, ...]:
        """Identity of a run: runs with equal keys are the same run."""
        return (*self.problem, self.digest, self.method, self.seed, *self.budget, self.weights)

    def to_json(self) -> dict[str, Any]:
        """Return the run as a JSON object."""
        return asdict(self) | {"problem": self.problem._asdict()}

    @staticmethod
    def from_json(document: dict[str, Any]) -> Run:
        """Read what `to_json` wrote; a malformed one raises KeyError, TypeError or ValueError."""
        values = {f.name: document[f.name] for f in fields(Run)}
        samples, seconds = values["budget"]
        return Run(
            **values
            | {
                "problem": ProblemName(**values["problem"]),
                "budget": (samples, seconds),
                "curve": tuple((int(s), float(w), float(v)) for s, w, v in values["curve"]),
            }
        )


def outcome(plan: Plan, status: str, detail: str) -> dict[str, Any]:
    """Return the fields of a `Run` that a plan decides; without a usable plan there is no value."""
    usable = status == OK
    points = [(p.samples, p.wall_seconds, p.seconds) for p in plan.curve]
    bound = finite(float(plan.bound))
    return {
        "value": finite(float(plan.value)) if usable else None,
        "bound": 0.0 if bound is None else bound,
        "samples": int(plan.samples),
        "seconds": float(plan.wall_seconds),
        "status": status,
        "detail": detail,
        "curve": tuple((int(s), float(w), float(v)) for s, w, v in points) if usable else (),
    }


def no_outcome(detail: str, seconds: float) -> dict[str, Any]:
    """Return the same fields for a method that cannot work on the problem."""
    return {
        "value": None, "bound": 0.0, "samples": 0, "seconds": seconds, "status": UNUSABLE,
        "detail": detail, "curve": (),
    }  # fmt: skip


def budget_key(budget: Budget) -> tuple[int | None, float | None]:
    """Return a budget as `Run` keeps it."""
    return budget.samples, None if budget.seconds is None else float(budget.seconds)


class RunStore:
    """Finished runs, one JSON line each; a last line that was cut off is struck out.

    Raises:
        TrainingError: the folder cannot be written, or a line other than the last is damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / FILE
        with writing(folder, TrainingError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
            self._runs = {run.key: run for run in self._read(text)}
            if text and not text.endswith("\n"):
                self._rewrite()
            self.path.touch()

    def find(self, key: tuple[Any, ...]) -> Run | None:
        """Return a finished run."""
        return self._runs.get(key)

    def add(self, run: Run) -> None:
        """Append a finished run; it is on the disk when this returns."""
        with writing(self.path, TrainingError), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(run.to_json(), allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._runs[run.key] = run

    def _read(self, text: str) -> list[Run]:
        lines = text.splitlines()
        if text and not text.endswith("\n"):
            lines = lines[:-1]
        runs = []
        for i, line in enumerate(lines, 1):
            try:
                runs.append(Run.from_json(json.loads(line)))
            except (ValueError, KeyError, TypeError) as error:
                raise TrainingError(
                    f"{self.path}: line {i} is not a finished run ({error!r}); delete the line to "
                    "have it run again, or choose another folder"
                ) from error
        return runs

    def _rewrite(self) -> None:
        lines = [json.dumps(run.to_json(), allow_nan=False) + "\n" for run in self._runs.values()]
        write_text(self.path, "".join(lines))
