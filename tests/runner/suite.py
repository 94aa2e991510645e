"""`Suite`: many trials of one kind, each decided by its index alone."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    """A claim, how often it is put to the test, and one trial of it."""

    name: str
    """What ``--suite`` and tables call it."""
    proves: str
    """The claim in one sentence, for the table."""
    unit: str
    """What is counted, in the plural, such as ``plans``."""
    count: int
    """Trials at full count; indices are 0 to ``count`` - 1."""
    trial: Callable[[int], str | None]
    """Run the trial of an index; None when the claim holds, else a sentence about what was lost.
    The same index gives the same trial on every machine. What it raises counts as lost, too."""
    each: int = 1
    """Units that one trial counts for."""
    limit_seconds: float = 900.0
    """A trial that takes longer is lost; the first ones compile, on machines that others use."""


@dataclass(frozen=True)
class Failure:
    """A trial that lost."""

    suite: str
    index: int
    what: str
    """What was lost, in words."""

    @property
    def repeat(self) -> str:
        """Command that runs this trial of a counted suite again."""
        return f"python -m tests.counted repeat {self.suite} {self.index}"
