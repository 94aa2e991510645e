"""The ring: workspace, units, bounds and the reference plan."""
