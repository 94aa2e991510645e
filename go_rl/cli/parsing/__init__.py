"""The words of a command line: read, or refused in one sentence."""
