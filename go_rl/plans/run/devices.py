"""JAX devices for the devices of a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import jax

from go_rl.core import ExecutionError, Hardware

FLAG = "--xla_force_host_platform_device_count"
"""XLA flag that makes one host show several CPU devices."""


@dataclass(frozen=True)
class Chosen:
    """A JAX device for each device of a plan."""

    devices: Mapping[int, jax.Device]
    """JAX devices by the plan's device index."""
    note: str = ""
    """Why times on them may be unreliable, or empty."""


def choose_devices(hardware: Hardware, used: Collection[int], share: bool = False) -> Chosen:
    """Choose JAX devices for the devices of a plan that are in use.

    Real accelerators if there are enough of them; else CPU devices of this host in place of all.
    Host processors of the plan are CPU devices. Where all numbers exist, device d of the plan is
    device d of JAX; else they are taken in order.

    Args:
        share: let several devices of the plan share one of JAX, rather than fail.

    Raises:
        ExecutionError: too few devices; the message explains how to get more.
    """
    numbers = sorted(used)
    devices = [d for d in numbers if not hardware.devices[d].is_cpu]
    hosts = [d for d in numbers if hardware.devices[d].is_cpu]
    real = [d for d in jax.local_devices() if d.platform != "cpu"]
    if len(real) >= len(devices) or (real and share):
        chosen = _assign(devices, real, share) | _assign(hosts, _cpus() if hosts else [], share)
    else:
        chosen = _assign(numbers, _cpus(), share)
    return Chosen(chosen, _note(hardware, devices, chosen))


def _cpus() -> list[jax.Device]:
    try:
        return jax.local_devices(backend="cpu")
    except RuntimeError as error:
        raise ExecutionError(
            f"the plan needs CPU devices, and JAX shows none ({error}); add cpu to JAX_PLATFORMS"
        ) from error


def _assign(
    numbers: Sequence[int], pool: Sequence[jax.Device], share: bool
) -> dict[int, jax.Device]:
    if len(numbers) > len(pool) and not share:
        raise ExecutionError(
            f"the plan uses {len(numbers)} devices and JAX shows {_listed(pool)}: set the "
            f"environment variable XLA_FLAGS={FLAG}={len(numbers)} before JAX starts, or let "
            "devices share one with share=True"
        )
    if max(numbers, default=-1) < len(pool):
        return {d: pool[d] for d in numbers}
    return {d: pool[i % len(pool)] for i, d in enumerate(numbers)}


def _listed(pool: Sequence[jax.Device]) -> str:
    platform = pool[0].platform.upper() if pool else "CPU"
    return f"{len(pool)} {platform} device{'' if len(pool) == 1 else 's'}"


def _note(hardware: Hardware, devices: Sequence[int], chosen: Mapping[int, jax.Device]) -> str:
    distinct = list(dict.fromkeys(chosen.values()))
    nothing = "times measured here say nothing about the plan"
    if any(chosen[d].platform == "cpu" for d in devices):
        kinds = ", ".join(dict.fromkeys(hardware.devices[d].kind for d in devices))
        return f"CPU devices of this host ({len(distinct)}) stand in for {kinds}: {nothing}"
    if len(distinct) < len(chosen):
        return f"{len(chosen)} devices of the plan share {_listed(distinct)}: {nothing}"
    other = {(hardware.devices[d].kind, chosen[d].device_kind) for d in devices}
    foreign = [pair for pair in sorted(other) if pair[0].lower() not in pair[1].lower()]
    return "; ".join(f"the plan is for {ours}, measured on {real}" for ours, real in foreign)
