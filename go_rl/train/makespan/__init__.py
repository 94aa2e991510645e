"""Training of makespan policies."""
