"""Max-load and latency, where devices exchange through host memory: simulator, bounds, methods."""
