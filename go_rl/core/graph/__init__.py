"""The operator graph: its arrays, its operators' kinds and its invariants."""
