"""Methods for the makespan."""
