"""Hardware from a user's words, and that of this machine."""
