"""Cost of operators, kernels and tensor programs: features, data, timing and models of each."""
