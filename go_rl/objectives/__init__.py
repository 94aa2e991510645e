"""What methods need of a problem: workspaces, reductions, proven bounds, reference plans."""
