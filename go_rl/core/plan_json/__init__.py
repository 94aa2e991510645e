"""A plan as JSON: its document and the checks of its fields."""
