"""The loop of all tuning, of kernels too: which operator next, which schedules of it, measured
where; and the tuning of tensor programs."""
