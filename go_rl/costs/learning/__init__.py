"""Everything that learns seconds or ranks from examples."""
