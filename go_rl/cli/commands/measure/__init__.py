"""``go-rl measure``: one file for each command."""
