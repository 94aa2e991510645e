"""`bound_memory`: a process whose memory has a limit."""

from __future__ import annotations


def bound_memory(limit: int) -> None:
    """Let this process address this many bytes; as many as it may where this is no POSIX system."""
    try:
        import resource
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    bound = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))
