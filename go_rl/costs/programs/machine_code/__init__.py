"""Machine code of tensor programs: instructions, how often each runs, bounds of the time."""
