"""A critic of graph-level decisions, taught by searches (makespan)."""
