"""Stages run as processes, one a device, many samples in the pipeline."""

from go_rl.plans.pipeline.pipeline import PipelineRun, run_stages
from go_rl.plans.pipeline.settings import RunSettings

__all__ = ["PipelineRun", "RunSettings", "run_stages"]
