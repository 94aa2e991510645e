"""The operator graph: its arrays, its invariants, and algorithms on graphs."""
