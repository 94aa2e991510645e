"""Back ends: where schedules of tensor programs are built and timed."""
