"""The monitor of an AXI4-Lite port (ARM IHI 0022, A3 and B1)."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal, Value

from ..axi import Axi4LiteSignature
from .monitor import Monitor, Rule, at_least, held

__all__ = ["Axi4LiteMonitor"]

_RESPONSE_EXOKAY = 1
"""The response to an exclusive access, which AXI4-Lite does not have (B1.1.1)."""


class Axi4LiteMonitor(Monitor):
    """Watches an AXI4-Lite port: what is offered is held on all five channels, and an answer has its request.

    Parameters: `signature`, the port's; `outstanding`, the most writes, and the most reads, that may be under way.
    Raises ConfigError for an `outstanding` below 1.

    Members: those of `Axi4LiteSignature` (all in); `violation` (out, a bit a rule). An address or a word of a write may
    come before its other half. A response comes in a later cycle than what it answers.
    """

    rules = {
        "aw_held": Rule("sender", "a write address fell or changed before it was taken"),
        "w_held": Rule("sender", "write data fell or changed before it was taken"),
        "ar_held": Rule("sender", "a read address fell or changed before it was taken"),
        "write_many": Rule("sender", "more writes under way than allowed"),
        "read_many": Rule("sender", "more reads under way than allowed"),
        "b_held": Rule("receiver", "a write response fell or changed before it was taken"),
        "r_held": Rule("receiver", "read data fell or changed before it was taken"),
        "b_unasked": Rule("receiver", "a write response without a write"),
        "r_unasked": Rule("receiver", "read data without a read"),
        "b_response": Rule("receiver", "a write response of a kind that AXI4-Lite does not have"),
        "r_response": Rule("receiver", "a read response of a kind that AXI4-Lite does not have"),
    }
    payloads = {
        "aw": ("awaddr", "awprot"),
        "w": ("wdata", "wstrb"),
        "b": ("bresp",),
        "ar": ("araddr", "arprot"),
        "r": ("rdata", "rresp"),
    }

    def __init__(self, signature: Axi4LiteSignature, *, outstanding: int = 4) -> None:
        self._outstanding = at_least(type(self), "outstanding", outstanding, 1)
        super().__init__({name: member.shape for name, member in signature.members.items()})

    @classmethod
    def of(cls, signature: Axi4LiteSignature, **parameters: Any) -> Axi4LiteMonitor:
        """A monitor for a port of this signature."""
        return cls(signature, **parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        told, most = self.violation, self._outstanding
        taken = {}
        for channel, names in self.payloads.items():
            valid, ready = getattr(self, f"{channel}valid"), getattr(self, f"{channel}ready")
            dropped, changed = held(m, channel, valid, ready, *(getattr(self, name) for name in names))
            m.d.comb += told[f"{channel}_held"].eq(dropped | changed)
            taken[channel] = valid & ready

        def under_way(channel: str, answer: Value) -> Signal:
            """Requests of this channel that were taken and not answered."""
            count = Signal(range(most + 2), name=f"{channel}_under_way")
            with m.If(taken[channel] & ~answer & (count <= most)):
                m.d.sync += count.eq(count + 1)
            with m.Elif(~taken[channel] & answer & (count != 0)):
                m.d.sync += count.eq(count - 1)
            return count

        addresses, words = under_way("aw", taken["b"]), under_way("w", taken["b"])
        reads = under_way("ar", taken["r"])
        m.d.comb += [
            told.write_many.eq((taken["aw"] & (addresses >= most)) | (taken["w"] & (words >= most))),
            told.read_many.eq(taken["ar"] & (reads >= most)),
            told.b_unasked.eq(self.bvalid & ((addresses == 0) | (words == 0))),
            told.r_unasked.eq(self.rvalid & (reads == 0)),
            told.b_response.eq(self.bvalid & (self.bresp == _RESPONSE_EXOKAY)),
            told.r_response.eq(self.rvalid & (self.rresp == _RESPONSE_EXOKAY)),
        ]
        return m
