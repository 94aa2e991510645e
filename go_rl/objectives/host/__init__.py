"""Max-load and latency: blocks, bounds and reference plans."""
