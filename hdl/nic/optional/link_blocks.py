"""The link of some cards, joined: its restart, the bound of a packet's wait, packet buffers of VLs."""

from __future__ import annotations

from pathlib import Path

from amaranth import Module, Signal

from ...config import NicConfig
from ...register_bank import Name
from ...registers import load
from ...router.scheduler import has_tables
from ..block import Card, Joined, NicBlock
from ..link_port.vl_port import port_config
from .queue_blocks import SendQueue

__all__ = ["LinkRestart", "ReceiveWait", "VlPortBlock", "VlTables"]

RDL = Path(__file__).with_suffix(".rdl")


class LinkRestart(NicBlock):
    """The counters of a reset of either end of the link. `lost_out`: flits sent whose credit was not back."""

    name = "link_restart"
    registers = load(RDL, name)

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `link.restart`."""
        return bool(config.link.restart)

    def __init__(self, config: NicConfig, *, skippable: bool = False) -> None:
        super().__init__(config, skippable=skippable)
        self.lost_out = Signal(16)

    def connect(self, m: Module, card: Card) -> Joined:
        """To the packet interface."""
        r, packets, lost, out = card.registers, card.packets, self.lost_out, card.credits_out
        with m.If(packets.restarting):
            m.d.sync += lost.eq(lost + out + card.tx.valid)
        m.d.comb += [
            r.LINK.r_data.cut_out.eq(packets.cuts_out),
            r.LINK.r_data.cut_in.eq(packets.cuts_in),
            r.LINK.r_data.down.eq(packets.down),
            r.LINK.r_data.begun_anew.eq(
                packets.begun_anew_out + packets.begun_anew_in if card.config.link.guard_cycles else 0
            ),
            r.LINK_LOST.r_data.out_flits.eq(lost),
            r.LINK_LOST.r_data.in_flits.eq(packets.lost_in),
        ]
        return Joined(credits_home=[packets.restarting])


class ReceiveWait(NicBlock):
    """Packets that are thrown away as no buffer has been armed for too long: their counter."""

    name = "receive_wait"
    registers = load(RDL, name)

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `receive_wait_cycles`."""
        return config.receive_wait_cycles > 0

    def connect(self, m: Module, card: Card) -> Joined:
        """To the receive engine."""
        m.d.comb += card.registers.DISCARDED.r_data.packets.eq(card.receive.discarded)
        return Joined(rests=[card.receive.rests])


class VlPortBlock(NicBlock):
    """Packet buffers of VLs: queues in front of the send engine, buffers behind it."""

    name = "vl_port"
    registers = load(RDL, name)
    common = frozenset({"RECEIVE_VLS"})

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `vl_packets`."""
        return config.vl_packets > 0

    def connect(self, m: Module, card: Card) -> Joined:
        """To the send engine's queue and the packet interface, which is a `VlPort`."""
        packets, queue = card.packets, card.block(SendQueue).queue
        out, back = card.registers.SEND_VLS.r_data, card.registers.RECEIVE_VLS
        m.d.comb += [
            queue.allowed.eq(packets.room),
            # The control VL, where there is one, is never behind those that have nothing on the way.
            queue.hungry.eq(~packets.leaving | 1 << 15),
            packets.begin.eq(queue.start.valid & queue.start.ready),
            packets.begin_vl.eq(queue.start.payload.vl),
            packets.hold.eq(back.value.hold),
            out.room.eq(~queue.full),
            out.waiting.eq(queue.waiting | packets.leaving),
            back.r_data.waiting.eq(packets.arrived),
        ]
        # The arbiter may go on by itself while flits wait.
        return Joined(rests=[~packets.leaving.any()])


class VlTables(NicBlock):
    """VL arbitration tables of the link."""

    name = "vl_tables"
    registers = load(RDL, name)
    names = {
        "VL_TABLE_ENTRY": (
            Name(field="vl", things="link.vls"),
            Name(field="entry", things="vl_table_entries"),
        )
    }

    @classmethod
    def wanted(cls, config: NicConfig) -> bool:
        """With `vl_packets`, and a `vl_arbiter` that has tables."""
        return config.vl_packets > 0 and has_tables(port_config(config))

    def connect(self, m: Module, card: Card) -> Joined:
        """To the packet interface, which is a `VlPort`."""
        table, r = card.packets.table, card.registers
        entry = r.VL_TABLE_ENTRY
        m.d.comb += [
            table.write.eq(entry.w_stb),
            table.high.eq(entry.w_data.high),
            table.entry.eq(entry.w_data.entry),
            table.vl.eq(entry.w_data.vl),
            table.weight.eq(entry.w_data.weight),
            table.commit.eq(r.VL_TABLE_COMMIT.w_stb),
            table.limit.eq(r.VL_TABLE_COMMIT.w_data.limit),
            r.VL_TABLE_COMMIT.r_data.busy.eq(~table.ready),
        ]
        return Joined(rests=[table.ready])
