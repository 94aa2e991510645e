"""``go-rl train``: one file for each command."""
