"""The monitor of a stream (`amaranth.lib.stream`)."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Value
from amaranth.lib import stream

from .monitor import Monitor, Rule, held

__all__ = ["StreamMonitor"]


class StreamMonitor(Monitor):
    """Watches a stream of items of `payload_shape`: what is offered stays, the same, until it is taken.

    Members: `payload`, `valid`, `ready` (in), as in `amaranth.lib.stream.Signature`; `violation` (out, a bit a rule).
    """

    rules = {
        "valid_dropped": Rule("sender", "valid fell before the item was taken"),
        "payload_changed": Rule("sender", "the item changed before it was taken"),
    }

    def __init__(self, payload_shape: Any) -> None:
        super().__init__({"payload": payload_shape, "valid": 1, "ready": 1})

    @classmethod
    def of(cls, signature: stream.Signature, **parameters: Any) -> StreamMonitor:
        """A monitor for a stream of this signature."""
        return cls(signature.members["payload"].shape, **parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dropped, changed = held(m, "item", self.valid, self.ready, Value.cast(self.payload))
        m.d.comb += [self.violation.valid_dropped.eq(dropped), self.violation.payload_changed.eq(changed)]
        return m
