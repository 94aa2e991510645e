"""A plan's timeline: as a picture, and as events for a viewer."""
