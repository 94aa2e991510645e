"""Options of commands, as dataclasses."""
