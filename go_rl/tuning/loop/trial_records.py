"""Trials in the store of records.

A record's workload is that of the operator, its setting ``{"schedule": key}``; its details hold the
operator's name, what the candidate is built from, and the seconds that the trial took. Records
without a setting are of operators without a schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from go_rl.costs.timing.collector import record_of
from go_rl.costs.timing.config import CollectConfig
from go_rl.runtime.records import AS_IT_COMES, Record, RecordStore, canonical_json
from go_rl.tuning.loop.nouns import Candidate, Trial, TunedOperator

SCHEDULE = "schedule"
OPERATOR, DOCUMENT, SPENT = "operator", "document", "spent"


def trial_record(
    operator: TunedOperator, trial: Trial, outcome: dict[str, Any] | str, config: CollectConfig
) -> Record:
    """Return the record of a trial.

    Args:
        operator: whose candidate it is.
        trial: the trial.
        outcome: how it was timed, or why it was not (`go_rl.costs.timing.rounds.Outcome`).
        config: target and round.
    """
    setting = canonical_json({SCHEDULE: trial.candidate.key})
    about = {
        OPERATOR: operator.name, DOCUMENT: trial.candidate.document, SPENT: round(trial.spent, 4),
    }  # fmt: skip
    return record_of((operator.workload, setting), config, outcome, about)


def known_trials(
    store: RecordStore, target: str, operators: Sequence[TunedOperator]
) -> dict[int, list[Trial]]:
    """Return the trials that a store has of operators, by their number, in the order in which they
    were measured."""
    numbers = {operator.workload: i for i, operator in enumerate(operators)}
    found: dict[int, list[Trial]] = {}
    records = store.find(target, list(numbers), 0)
    for record in sorted(records, key=lambda each: (each.measured_at, each.setting)):
        if record.setting != AS_IT_COMES and DOCUMENT in record.details:
            found.setdefault(numbers[record.workload], []).append(_trial(record))
    return found


def _trial(record: Record) -> Trial:
    key = record.setting.removeprefix(f'{{"{SCHEDULE}":"').removesuffix('"}')
    candidate = Candidate(key, record.details[DOCUMENT])
    return Trial(candidate, record.seconds, float(record.details[SPENT]), record.reason)
