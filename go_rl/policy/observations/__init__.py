"""Problems as a policy sees them: arrays of their units."""
