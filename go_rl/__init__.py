"""go_rl: learned graph optimisation for machine-learning compilers."""
