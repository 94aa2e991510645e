"""Devices that exchange tensors through host memory: max-load and latency."""
