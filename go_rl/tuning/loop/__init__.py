"""Tuning loop, for kernels and tensor programs: slots, schedulers, beliefs, journal, stop rules."""
