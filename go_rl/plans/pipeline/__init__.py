"""Stages run as processes, one a device, many samples in the pipeline."""
