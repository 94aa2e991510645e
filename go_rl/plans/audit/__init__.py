"""The runtime's own account of what it ran where, held against the plan."""

from go_rl.plans.audit.operators import Fates, operator_fates
from go_rl.plans.audit.profile import Kernel, read_profile
from go_rl.plans.audit.session import SessionAudit, audit_session
from go_rl.plans.audit.stages import PipelineAudit, StageAudit, audit_stages

__all__ = [
    "Fates",
    "Kernel",
    "PipelineAudit",
    "SessionAudit",
    "StageAudit",
    "audit_session",
    "audit_stages",
    "operator_fates",
    "read_profile",
]
