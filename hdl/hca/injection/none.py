"""No injection control: a message begins as soon as it can."""

from __future__ import annotations

from amaranth import Module

from .policy import InjectionPolicy

__all__ = ["NoInjectionControl"]


class NoInjectionControl(InjectionPolicy):
    """Every message is allowed.

    Latency: none. Throughput: a message a cycle. Longest wait: none.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += self.control.allow.eq(1)
        return m
