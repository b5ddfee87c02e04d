"""At-Least-One injection control: the adapter looks at the VLs of the links that a message would take."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal, unsigned
from amaranth.lib import memory
from amaranth.lib.wiring import Out

from ...config.hca import HcaConfig
from .policy import InjectionPolicy, SetupKind

__all__ = ["AtLeastOne"]


class AtLeastOne(InjectionPolicy):
    """At-Least-One (Baydal, Lopez and Duato 2000; yum-2006 7.2).

    A message is allowed in two cases:

    - at least one VL is free in every useful physical channel;
    - all VLs are free in at least one useful physical channel.

    Routes are deterministic here, so one output port of the adapter's router is useful to a message: the one by which
    that router sends to its destination (`SetupKind.OUTPUT_PORT`). The document has the schemes see the adapter's
    buffers, too. So the adapter's own link is the second useful channel. A VL of it is free while its buffer is empty
    (`vl_busy`). A VL of the router's port is free as `hdl/router/status.py` has it.

    The VL of control packets is no part of it: its messages are always allowed.

    `side`: the `status` of the adapter's router. In bit p no VL of port p is free, in bit 2^hop_bits + p not all are.

    Members besides: `port` (out): the useful port of the message that is asked for.

    Latency: none, from `ask` and `side` in the same cycle. Throughput: a message a cycle. Longest wait: as long as the
    network holds the VLs. In an idle network a message is allowed at once.
    """

    side_name = "router_status"
    output_ports = True

    @classmethod
    def side_bits(cls, config: HcaConfig) -> int:
        """Two bits for each port that a router may have."""
        return 2 << config.link.hop_bits

    @classmethod
    def more_members(cls, config: HcaConfig) -> dict[str, Any]:
        """The useful port."""
        return {"port": Out(config.link.hop_bits)}

    def elaborate(self, platform: object) -> Module:
        m = Module()
        link, control = self.config.link, self.control
        data_vls = link.vls - (link.vls == 16)
        m.submodules.ports = ports = memory.Memory(
            shape=unsigned(link.hop_bits), depth=self.config.destinations, init=[]
        )
        write, read = ports.write_port(), ports.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.setup.index),
            write.data.eq(self.setup.value),
            write.en.eq(
                self.setup_valid
                & (self.setup.kind == SetupKind.OUTPUT_PORT)
                & (self.setup.index < self.config.destinations)
            ),
            read.addr.eq(control.ask.destination),
            self.port.eq(read.data),
        ]
        busy, none_free, some_taken = Signal(data_vls), Signal(), Signal()
        m.d.comb += [
            busy.eq(control.vl_busy),
            none_free.eq(self.side.bit_select(self.port, 1)),
            some_taken.eq((self.side >> (1 << link.hop_bits)).bit_select(self.port, 1)),
            control.allow.eq((~busy.all() & ~none_free) | ~busy.any() | ~some_taken),
        ]
        if data_vls < link.vls:
            with m.If(control.ask.vl == data_vls):
                m.d.comb += control.allow.eq(1)
        return m
