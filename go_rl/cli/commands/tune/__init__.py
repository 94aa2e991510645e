"""``go-rl tune``: one file for each command."""
