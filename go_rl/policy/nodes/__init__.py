"""Node policy, GO's own: every unit chooses among its options."""
