"""The makespan: workspace, choices, units and bounds."""
