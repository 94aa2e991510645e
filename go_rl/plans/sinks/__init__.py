"""A plan in the notations of other tools."""

from go_rl.plans.sinks.sinks import SINKS, moved_string, render_sink, sink_notes, write_sink

__all__ = ["SINKS", "moved_string", "render_sink", "sink_notes", "write_sink"]
