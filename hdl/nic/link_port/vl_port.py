"""The card's port with packet buffers for each virtual lane, and the router's VL arbiter on its link.

"The DMA engine in the CA transfers data from the host memory to one of the Virtual Lanes (VLs) of the CA's port; then
data gets pushed into the network. A WRR scheme is also used for arbitrating the VLs in the HCA port." (yum-2006 3.2)
"""

from __future__ import annotations

from typing import Any

from amaranth import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...config import ConfigError, NicConfig, RouterConfig
from ...router.credits import Credits
from ...router.scheduler import has_tables
from ...router.transmit import TransmitStage
from ...router.vl_buffer import VlBuffer
from ...vl_arbiter.base import TableSignature
from ...vl_arbiter.registry import VL_ARBITERS
from ...vl_arbiter.round_robin import RoundRobinVlArbiter
from .packet_interface import PacketInterface
from .vl_count import VlCount

__all__ = ["VlPort", "port_config"]


def port_config(config: NicConfig) -> RouterConfig:
    """The configuration of a router whose stage 5, for one output, is part of the port.

    Raises ConfigError for an unknown `vl_arbiter`.
    """
    if config.vl_arbiter not in VL_ARBITERS:
        names = ", ".join(sorted(VL_ARBITERS))
        raise ConfigError(f"NicConfig.vl_arbiter = {config.vl_arbiter!r}: one of {names}")
    return RouterConfig(
        link=config.link,
        ports=2,
        output_buffer_flits=config.vl_buffer_flits,
        vl_arbiter=config.vl_arbiter,
        vl_table_entries=config.vl_table_entries,
    )


class VlPort(PacketInterface):
    """The card's end of its link, with `config.vl_packets` packet buffers for each VL.

    A VL that is held up holds up no other one, in either direction.

    Members beside those of `PacketInterface`, some of which do more (vectors have a bit a VL):

    - `send`: a flit is taken into the buffer of its VL, while that has room. It always has if no packet is begun before
      there is `room` for it. The link takes flits of all VLs from there, as the arbiter `config.vl_arbiter` says. This
      is stage 5 of the router (`TransmitStage`), with its credits and its pacing.
    - `room` (out): VLs with a free packet buffer.
    - `begin` (in), `begin_vl` (in): a packet of a VL with room, of `config.packet_flits` at most, is begun and will
      come on `send`. Its buffer is free again when its tail is on the link. A packet that is longer only waits for
      room, flit by flit, and the packets behind it wait with it.
    - `leaving` (out): VLs with flits in the buffer towards the link.
    - `blocked` (out): those of them without a credit.
    - `receive`: a packet is offered when it has come as a whole. It is also offered when it fills its VL's buffer, as
      it is longer than any packet should be. So a packet that comes in slowly or stands in the network holds up nobody.
      VL 15 of 16 goes first.
    - `hold` (in): VLs of which no packet is begun on `receive`. The packets wait in their buffers, and the credits with
      them. A packet that is on offer stays.
    - `arrived` (out): VLs with a whole packet.
    - `table` (in, `TableSignature`), only if the arbiter has tables: those tables.

    Shares: VLs whose buffers are never empty have the link as the arbiter says. Buffers are never empty while packets
    wait if the send engine is faster than the link, since it fills those first that have nothing (`LaneQueue`). An
    engine of a flit a cycle is faster than any link of less. On a link of a flit a cycle nothing piles up: packets
    leave as the engine brings them.

    Latency: a flit on `send` in cycle t is on the link in t + 1 + `delay_cycles`; a packet is on `receive` 2 cycles
    after its tail was on `rx`. Throughput: a flit a cycle each way. Reset: buffers empty, all credits home.
    """

    def _more_members(self) -> dict[str, wiring.Member]:
        link = self.config.link
        members = {
            "room": Out(link.vls),
            "begin": In(1),
            "begin_vl": In(link.vl_bits),
            "leaving": Out(link.vls),
            "blocked": Out(link.vls),
            "hold": In(link.vls),
            "arrived": Out(link.vls),
        }
        if has_tables(port_config(self.config)):
            members["table"] = Out(TableSignature(vls=link.vls, entries=self.config.vl_table_entries))
        return members

    def _transmit(self, m: Module) -> Value:
        send, flit = self.send, self.send.payload
        m.submodules.stage = stage = TransmitStage(
            port_config(self.config), credit_flits=self.downstream_flits
        )
        m.submodules.packets = packets = Credits(vls=self.config.link.vls, depth=self.config.vl_packets)
        wiring.connect(m, stage.tx, wiring.flipped(self.tx))
        if hasattr(self, "table"):
            wiring.connect(m, wiring.flipped(self.table), stage.table)
        written = Signal()
        gone = self.tx.valid & self.tx.payload.tail
        if self.config.link.restart:
            gone = gone | stage.ended
            m.d.comb += self.restarting.eq(stage.restarting)
            if self.config.link.guard_cycles:
                m.d.comb += self.begun_anew_out.eq(stage.begun_anew)
            m.d.sync += self.cuts_out.eq(self.cuts_out + sum(stage.cutting))
        m.d.comb += [
            send.ready.eq(~(stage.full >> flit.vl)[0]),
            written.eq(send.valid & send.ready),
            stage.write_valid.eq(written),
            stage.write_vl.eq(flit.vl),
            stage.write_data.data.eq(flit.data),
            stage.write_data.head.eq(flit.head),
            stage.write_data.tail.eq(flit.tail),
            self.room.eq(packets.available),
            packets.spend.eq(self.begin),
            packets.spend_vl.eq(self.begin_vl),
            packets.refund.eq(gone),
            packets.refund_vl.eq(self.tx.payload.vl),
            self.leaving.eq(stage.non_empty),
            self.blocked.eq(stage.non_empty & stage.blocked),
        ]
        return stage.sent | written

    def _turns(self) -> Any:
        return RoundRobinVlArbiter(vls=self.config.link.vls)

    def _offers(self, m: Module, buffer: VlBuffer, comes: Value, goes: Value) -> Value:
        # A packet has a flit at least, so there are no more packets than flits.
        m.submodules.whole = whole = VlCount(vls=self.config.link.vls, most=self.config.input_buffer_flits)
        m.d.comb += [
            whole.add.eq(comes),
            whole.add_vl.eq(buffer.write_vl),
            whole.take.eq(goes),
            whole.take_vl.eq(buffer.read_vl),
            self.arrived.eq(whole.any),
        ]
        return (whole.any | buffer.full) & ~self.hold
