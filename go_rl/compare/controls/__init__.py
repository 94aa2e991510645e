"""Control arms of learned policies: the table of arms, and the headroom that is left to win."""
