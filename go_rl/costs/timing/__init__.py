"""Real seconds of kernels and tensor programs: the timing rule, workers, data sets."""
