"""Run mutants and print what failed: ``python -m mutation KIND START COUNT [leftovers]``;
``python -m mutation record`` writes the plan that is mutated."""

from __future__ import annotations

import collections
import sys

from mutation.kinds import record_plan
from mutation.trial import run_mutants

BATCH = 500


def main(kind: str, start: int, count: int, leftovers: bool) -> None:
    """Print each failure as it is found, then how many there were of each sort."""
    places: collections.Counter[str] = collections.Counter()
    for first in range(start, start + count, BATCH):
        many = min(BATCH, start + count - first)
        for failure in run_mutants(kind, first, many, leftovers=leftovers):
            place = f"{failure.outcome.value} {failure.detail[:90]}"
            if places[place] < 3:
                print(f"{kind} {failure.number}: {failure.outcome.value}: {failure.detail}")
            places[place] += 1
        print(f"{kind}: {first + many - start} tried, {places.total()} failed", flush=True)
    for place, number in places.most_common():
        print(f"{number:6} {place}")


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        record_plan()
        sys.exit()
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), "leftovers" in sys.argv[4:])
