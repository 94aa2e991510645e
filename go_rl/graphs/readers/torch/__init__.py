"""Reader of PyTorch programs: ``.pt2`` archives, and modules where PyTorch is installed."""
