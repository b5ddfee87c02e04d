"""Which cards have the registers of doorbell owners, completion and protection."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...config import NicConfig

__all__ = ["OWNED"]


def _completes(config: NicConfig) -> bool:
    return bool(config.completion_queues)


def _protects(config: NicConfig) -> bool:
    return bool(config.regions)


def _named(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}_{name}" for name in names)


OWNED: Mapping[str, Callable[[NicConfig], bool]] = {
    "ISR.receive_doorbell": lambda config: config.receive_doorbells == "separate",
    "DOORBELL_RECEIVE_QUEUE": lambda config: config.receive_doorbells == "separate",
    "DOORBELL_SELECT.receive": lambda config: config.receive_doorbells == "merged",
    "DOORBELL_CHANNEL": lambda config: bool(config.owners) or config.doorbell_classes > 1,
    **dict.fromkeys(_named("SHADOW", "ADDRESS", "WINDOW"), lambda config: config.shadow_windows),
    **dict.fromkeys(("ISR.completion", "HOST_ISR.completion", "HOST_COMPLETION"), _completes),
    **dict.fromkeys(
        _named("COMPLETION", "RING", "LAG", "SETUP", "STATUS", "OF", "POST", "FAILED", "DROPPED"), _completes
    ),
    **dict.fromkeys(_named("COMPLETION", "BROKEN", "BROKEN_HIGH"), _completes),
    **dict.fromkeys(("ISR.access", "ISR.violation", "VIOLATIONS", "REGION"), _protects),
    **dict.fromkeys(_named("REGION", "START", "BYTES", "TABLE"), _protects),
    **dict.fromkeys(_named("TRANSLATION", "INVALIDATE", "HITS", "MISSES"), _protects),
    **dict.fromkeys(_named("ACCESS", "ADDRESS", "TAG", "SRAM", "CONTROL", "STATUS"), _protects),
}
"""As `OPTIONAL` of `optional.py`, of which it is a part."""
