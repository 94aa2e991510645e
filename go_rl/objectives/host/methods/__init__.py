"""Methods for max-load and latency."""
