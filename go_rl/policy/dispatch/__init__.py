"""Sequential dispatch: which ready unit is next, and on which device."""
