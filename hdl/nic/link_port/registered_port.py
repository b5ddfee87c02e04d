"""The card's port with packet buffers, with registers between its steps: for cards that are `pipelined`."""

from __future__ import annotations

from types import SimpleNamespace

from amaranth import Module, Signal, Value
from amaranth.lib import wiring

from ...config import NicConfig
from ...link import FlitLayout
from ...link_restart import receive_register
from ...vl_arbiter.registered_two_level import DECISION_CYCLES
from ..stream_register import StreamRegister
from .packet_interface import PacketInterface
from .registered_read import RegisteredRead
from .registered_transmit import RegisteredTransmit
from .vl_counters import VlCounters, one_hot
from .vl_port import VlPort, port_config

__all__ = ["POINTERS", "RegisteredVlPort", "make_port", "port_is_registered"]

POINTERS = {"table_fast": "fast", "table_slow": "slow"}
"""VL arbiters that have a form with registers (`RegisteredTwoLevelArbiter`), and its pointer."""


def port_is_registered(config: NicConfig) -> bool:
    """Whether a card's port is a `RegisteredVlPort`.

    It is if all of these hold. Else registers would cost throughput, or there are none:

    - The card is `pipelined` and has packet buffers.
    - The arbiter has a form with registers (`POINTERS`).
    - The link takes a flit in `DECISION_CYCLES` or more, and has no guard.
    """
    link = config.link
    return (
        config.pipelined
        and config.vl_packets > 0
        and config.vl_arbiter in POINTERS
        and link.rate_den >= DECISION_CYCLES * link.rate_num
        and not link.guard_cycles
    )


class RegisteredVlPort(VlPort):
    """The `VlPort` of a card for which `port_is_registered` holds.

    Members: those of `VlPort`. It makes the same choices. Only time differs:

    - A flit on `send` in cycle t is on the link in t + 12 + `delay_cycles`, not t + 1.
    - A packet is on `receive` 10 cycles after its tail was on `rx`, not 2. There are 8 cycles between two packets.
    - A packet that fills its buffer, and is offered before it is whole, comes at a flit in 5 cycles.
    - The arbiter of the link decides about the VLs that ask 4 cycles before their flit goes.
    - `hold` counts 3 cycles later.
    - `send.ready` is a register. A VL without room shows when two flits more are taken.

    Throughput: the link's rate out; in, a flit a cycle in each packet that is whole. Reset: buffers
    empty, all credits home.
    """

    def _transmit(self, m: Module) -> Value:
        config, send = self.config, self.send
        vls = config.link.vls
        control = port_config(config).control_vl
        m.submodules.stage = stage = RegisteredTransmit(
            config,
            credit_flits=self.downstream_flits,
            pointer="slow" if POINTERS[config.vl_arbiter] == "slow" else "fast",
            control_vl=-1 if control is None else control,
        )
        m.submodules.packets = packets = VlCounters(vls=vls, most=config.vl_packets, filled=True)
        wiring.connect(m, stage.tx, wiring.flipped(self.tx))
        wiring.connect(m, wiring.flipped(self.table), stage.table)
        if config.link.restart:
            m.d.comb += self.restarting.eq(stage.restarting)
            # Added up in a cycle of its own.
            cuts = Signal(range(vls + 1))
            m.d.sync += cuts.eq(sum(stage.cutting))
            m.d.sync += self.cuts_out.eq(self.cuts_out + cuts)
        # No path leads from the engine through the room of a VL.
        m.submodules.sends = sends = StreamRegister(FlitLayout(config.link))
        wiring.connect(m, wiring.flipped(send), sends.i)
        written = Signal()
        m.d.comb += [
            sends.o.ready.eq(~(stage.full >> sends.o.payload.vl)[0]),
            written.eq(sends.o.valid & sends.o.ready),
            stage.write_valid.eq(written),
            stage.write.eq(sends.o.payload),
            self.room.eq(packets.any),
            packets.take.eq(one_hot(self.begin, self.begin_vl, vls)),
            packets.fill.eq(0),
            packets.add.eq(stage.gone),
            self.leaving.eq(stage.non_empty),
            self.blocked.eq(stage.non_empty & stage.blocked),
        ]
        return stage.moved | written | (send.valid & send.ready)

    def _receive(self, m: Module) -> tuple[Value, Value]:
        config, link, rx = self.config, self.config.link, self.rx
        vls, depth = link.vls, config.input_buffer_flits
        m.submodules.flits = flits = VlCounters(vls=vls, most=depth)
        # A packet has a flit at least, so there are no more packets than flits.
        m.submodules.whole = whole = VlCounters(vls=vls, most=depth)
        m.submodules.read = read = RegisteredRead(link, depth=depth)
        arrived, arrival = Signal(), Signal(FlitLayout(link))
        # The register looks at the flags of a buffer, which are those of the counts here.
        flags = SimpleNamespace(non_empty=flits.any, full=flits.full)
        half = receive_register(m, link, rx, arrived, arrival, flags, registered=True)
        if half is not None:
            m.d.comb += [
                self.down.eq(half.busy | self.restarting),
                self.cuts_in.eq(half.cuts),
                self.lost_in.eq(half.lost),
            ]

        # The flit that has come, and its VL one-hot.
        here, here_vl, flit = Signal(), Signal(vls), Signal(FlitLayout(link))
        m.d.sync += [here.eq(arrived), here_vl.eq(one_hot(arrived, arrival.vl, vls)), flit.eq(arrival)]
        m.d.comb += [
            read.write.eq(here),
            read.flit.eq(flit),
            read.whole.eq(whole.any),
            read.full.eq(flits.full),
            read.non_empty.eq(flits.any),
            read.hold.eq(self.hold),
            flits.add.eq(here_vl),
            flits.take.eq(read.taken),
            whole.add.eq(here_vl & flit.tail.replicate(vls)),
            whole.take.eq(read.ended),
            self.arrived.eq(whole.any),
        ]
        wiring.connect(m, read.receive, wiring.flipped(self.receive))
        m.d.sync += [rx.credit_valid.eq(read.taken.any()), rx.credit_vl.eq(self.receive.payload.vl)]
        return arrived | here, read.taken.any() | read.ended.any()


def make_port(config: NicConfig, *, downstream_flits: int) -> PacketInterface:
    """The card's end of its link: without packet buffers, with them, or with registers as well."""
    if not config.vl_packets:
        return PacketInterface(config, downstream_flits=downstream_flits)
    port = RegisteredVlPort if port_is_registered(config) else VlPort
    return port(config, downstream_flits=downstream_flits)
