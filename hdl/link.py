"""The wire between two ports: flits one way, credits the other way.

A transmitter may send a flit on a VL while it holds a credit of that VL. On each VL it starts with as many
credits as the receiver's buffer has flits. The receiver gives a credit back when a flit leaves that buffer: one VL
number a cycle. There is no ready: a valid flit or credit is taken in that cycle. Both ends are reset together, or
with `LinkConfig.restart` agree on a new beginning (`link_restart.py`).
"""

from __future__ import annotations

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .config import LinkConfig

__all__ = ["FlitLayout", "LinkPacer", "LinkSignature"]


class FlitLayout(data.StructLayout):
    """A flit. Members:

    - `data`: `flit_bits` of header, payload or CRC, first byte in the low bits.
    - `vl`: `vl_bits`, the virtual lane it travels on.
    - `head`, `tail`: first and last flit of its packet; a one-flit packet has both.
    """

    def __init__(self, config: LinkConfig) -> None:
        super().__init__(
            {"data": unsigned(config.flit_bits), "vl": unsigned(config.vl_bits), "head": 1, "tail": 1}
        )


class LinkSignature(wiring.Signature):
    """A link, seen by its transmitter. Members:

    - `payload` (out, `FlitLayout`), `valid` (out): a flit, taken in the cycle in which it is valid.
    - `credit_vl` (in, `vl_bits`), `credit_valid` (in): a flit of this VL has left the receiver's buffer.
    - `restart` (out), `credit_restart` (in), only with `LinkConfig.restart`: levels of `link_restart.py`.
    """

    def __init__(self, config: LinkConfig) -> None:
        self.config = config
        super().__init__(
            {
                "payload": Out(FlitLayout(config)),
                "valid": Out(1),
                "credit_vl": In(config.vl_bits),
                "credit_valid": In(1),
            }
            | ({"restart": Out(1), "credit_restart": In(1)} if config.restart else {})
        )


class LinkPacer(wiring.Component):
    """Holds a transmitter to the link's rational rate.

    Members:

    - `slot` (out): a flit may be sent in this cycle.
    - `sent` (in): a flit is sent in this cycle.

    Over any window the flits sent are at most `rate * cycles + 1`. An unused slot is kept (one at most), so that a
    flit that comes after idle time leaves at once. With a rate of 1, `slot` is constant and there is no logic.

    Latency: none. Throughput: the link's rate. Reset: a flit may be sent at once.
    """

    def __init__(self, config: LinkConfig) -> None:
        self._num, self._den = config.rate_num, config.rate_den
        super().__init__({"slot": Out(1), "sent": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        num, den = self._num, self._den
        if num == den:
            m.d.comb += self.slot.eq(1)
            return m
        # `debt` is the part of the last flit, in units of 1/den, that the wire has yet to carry.
        debt = Signal(range(den + 1))
        m.d.comb += self.slot.eq(debt < num)
        with m.If(self.sent):
            m.d.sync += debt.eq(debt + den - num)
        with m.Elif(debt > num):
            m.d.sync += debt.eq(debt - num)
        with m.Else():
            m.d.sync += debt.eq(0)
        return m
