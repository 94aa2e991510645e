"""Policies of the makespan."""
