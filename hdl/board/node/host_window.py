"""The host's window of a card behind the request port."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...axi import Axi4LiteSignature
from ...nic.ports import DOORBELL_BASE, HOST_ADDRESS_BITS, REGISTER_BASE
from ...traffic.ports import REQUEST, RESPONSE
from .layout import Window

__all__ = ["WINDOW_CYCLES", "HostWindow"]

WINDOW_CYCLES = 10
"""Cycles from one access to the next: the card answers after 3, and a doorbell waits for no full queue."""


class HostWindow(wiring.Component):
    """Accesses to `Window.HOST_REGISTERS` and `Window.DOORBELLS`, as a host would make them.

    Members:

    - `request` (in, `REQUEST`), `response` (out, `RESPONSE`): the port; an access every `WINDOW_CYCLES` at most.
    - `host` (out, `Axi4LiteSignature`): to the card.

    A read that the card refuses has no response. Latency: a read is answered 2 cycles after the card has done so.
    Throughput: one access at a time. Reset: nothing is under way.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "request": In(REQUEST),
                "response": Out(RESPONSE),
                "host": Out(Axi4LiteSignature(address_bits=HOST_ADDRESS_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request: Any = self.request
        response: Any = self.response
        host = self.host
        doorbell = request.node == Window.DOORBELLS
        address = Signal(HOST_ADDRESS_BITS)
        m.d.comb += [
            address.eq(request.address + Mux(doorbell, DOORBELL_BASE, REGISTER_BASE)),
            host.awaddr.eq(host.araddr),
            host.wstrb.eq(0xF),
            host.bready.eq(1),
            host.rready.eq(1),
        ]
        for channel in ("aw", "w", "ar"):
            valid, ready = getattr(host, f"{channel}valid"), getattr(host, f"{channel}ready")
            with m.If(ready):
                m.d.sync += valid.eq(0)
        with m.If(request.valid & (doorbell | (request.node == Window.HOST_REGISTERS))):
            m.d.sync += [
                host.araddr.eq(address),
                host.wdata.eq(request.data),
                host.awvalid.eq(request.write),
                host.wvalid.eq(request.write),
                host.arvalid.eq(~request.write),
            ]
        m.d.sync += [
            response.valid.eq(host.rvalid & (host.rresp == 0)),
            response.data.eq(Mux(host.rvalid, host.rdata, 0)),
        ]
        return m
