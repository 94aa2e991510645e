"""Fixtures of the tests of the checker."""

from small_problems import plan_of, problem_of, small_boxes, small_ring

__all__ = ["plan_of", "problem_of", "small_boxes", "small_ring"]
