"""The packet buffers of VLs and their queues, joined to registers."""

from __future__ import annotations

from amaranth import Module

from ...register_bank import RegisterBank
from ..queues.lane_queue import LaneDmaQueue
from .vl_port import VlPort

__all__ = ["join_vl_port"]


def join_vl_port(m: Module, r: RegisterBank, queue: LaneDmaQueue, packets: VlPort) -> None:
    """Joins the queues in front of the send engine and the buffers behind it to the firmware's registers."""
    out, back = r.SEND_VLS.r_data, r.RECEIVE_VLS
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
    if hasattr(packets, "table"):
        table, entry = packets.table, r.VL_TABLE_ENTRY
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
