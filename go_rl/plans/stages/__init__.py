"""A plan carried out of go_rl: one program a stage, and a manifest of what goes where."""

from go_rl.plans.stages.manifest import Manifest, Stage, StageTensor, read_manifest
from go_rl.plans.stages.write import export_stages

__all__ = ["Manifest", "Stage", "StageTensor", "export_stages", "read_manifest"]
