"""A plan in the notations of other tools."""

from go_rl.plans.sinks.sinks import SINKS, is_text, moved_string, render_sink, write_sink

__all__ = ["SINKS", "is_text", "moved_string", "render_sink", "write_sink"]
