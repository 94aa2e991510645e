"""The store of real measurements, keyed by workload and target."""

from go_rl.runtime.records.database import RECORDS, database_of
from go_rl.runtime.records.record import AS_IT_COMES, Record, canonical_json
from go_rl.runtime.records.record_file import export_records, load_records
from go_rl.runtime.records.store import RecordStore

__all__ = [
    "AS_IT_COMES",
    "RECORDS",
    "Record",
    "RecordStore",
    "canonical_json",
    "database_of",
    "export_records",
    "load_records",
]
