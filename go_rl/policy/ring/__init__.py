"""Ring policy: an order cut by dynamic programming, or chips through the constraint solver."""
