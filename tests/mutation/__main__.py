"""``python -m mutation``, in the folder ``tests``: write the plan and bytecode that are mutated."""

from .kinds import record_bytecode, record_plan

if __name__ == "__main__":
    record_plan()
    record_bytecode()
