"""Stages run as processes, one a device, many samples in the pipeline."""

from go_rl.plans.pipeline.config import PipelineConfig
from go_rl.plans.pipeline.pipeline import PipelineRun, run_stages

__all__ = ["PipelineConfig", "PipelineRun", "run_stages"]
