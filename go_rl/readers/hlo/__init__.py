"""HLO text and StableHLO."""
