"""Methods for the ring."""
