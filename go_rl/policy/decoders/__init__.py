"""One decoder for each decision."""
