"""A plan carried out of go_rl: one program a stage, and a manifest of what goes where."""
