"""A plan in the notations of other tools."""

from go_rl.plans.sinks.sinks import SINKS, render_sink, write_sink

__all__ = ["SINKS", "render_sink", "write_sink"]
