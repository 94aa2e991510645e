"""Control arms of learned policies: the table of arms."""
