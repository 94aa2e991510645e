"""The environment of the ring."""
