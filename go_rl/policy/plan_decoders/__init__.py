"""From what a policy draws to plans: one decoder for each objective."""
