"""Behind the host DMA engine's queue: transfers that are checked go one way, the firmware's own the other."""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..dma.host_dma import HOST_DMA_COMMAND
from ..doorbell import CHANNEL_BITS
from .checked_dma import CHECKED_COMMAND
from .completion_layout import CompletionStatus
from .protection import KEY_BITS
from .translation import REGION_BITS

__all__ = ["QUEUED_COMMAND", "QUEUED_RESULT", "TransferSplit"]

QUEUED_COMMAND = data.StructLayout(
    {
        **{name: field.shape for name, field in HOST_DMA_COMMAND},
        "checked": 1,
        "channel": CHANNEL_BITS,
        "region": REGION_BITS,
        "key": KEY_BITS,
    }
)
"""A transfer of either kind.

- If it is `checked`, `host_address` is a virtual address in the region, on behalf of the process behind the channel.
- If not, `host_address` is an address of host memory, and the last three fields say nothing.
"""
QUEUED_RESULT = data.StructLayout({"error": 1, "status": 5})
"""The result of a transfer: its `status`, a `CompletionStatus`, and `error` if that is not OK."""


class TransferSplit(wiring.Component):
    """Gives each transfer to `CheckedDma` or to `DmaGate`, whose engine the two share, and joins their ends.

    Members:

    - `start` (in, stream of `QUEUED_COMMAND`): taken when its way is free.
    - `done` (out): a transfer ends in this cycle. Transfers end in the order in which they were taken, at most 2 at a
      time.
    - `result` (out, `QUEUED_RESULT`): its result.
    - `plain` (out, stream of `HOST_DMA_COMMAND`), `plain_done`, `plain_error` (in): to the gate, which takes nothing
      while a checked transfer is under way.
    - `checked` (out, stream of `CHECKED_COMMAND`), `checked_done`, `checked_status` (in): to `CheckedDma`, which ends
      nothing while the engine is busy with transfers that were taken before.

    Latency: none to either side; the end of a checked transfer shows a cycle later, with its status. Throughput: a
    transfer a cycle, two under way at once. Reset: nothing is under way.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(stream.Signature(QUEUED_COMMAND)),
                "done": Out(1),
                "result": Out(QUEUED_RESULT),
                "plain": Out(stream.Signature(HOST_DMA_COMMAND)),
                "plain_done": In(1),
                "plain_error": In(1),
                "checked": Out(stream.Signature(CHECKED_COMMAND)),
                "checked_done": In(1),
                "checked_status": In(CompletionStatus),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wanted, access = self.start.payload, self.checked.payload.access
        ended = Signal()  # the status of a checked transfer stands from the cycle after its end on
        m.d.sync += ended.eq(self.checked_done)
        m.d.comb += [
            *(self.plain.payload[name].eq(wanted[name]) for name, _ in HOST_DMA_COMMAND),
            *(access[name].eq(wanted[name]) for name in ("channel", "region", "key", "bytes")),
            access.address.eq(wanted.host_address),
            access.write.eq(wanted.to_host),
            self.checked.payload.sram_address.eq(wanted.sram_address),
            self.done.eq(self.plain_done | ended),
        ]
        with m.If(wanted.checked):
            m.d.comb += [self.checked.valid.eq(self.start.valid), self.start.ready.eq(self.checked.ready)]
        with m.Else():
            m.d.comb += [self.plain.valid.eq(self.start.valid), self.start.ready.eq(self.plain.ready)]
        with m.If(ended):
            m.d.comb += self.result.status.eq(self.checked_status)
        with m.Elif(self.plain_error):
            m.d.comb += self.result.status.eq(CompletionStatus.BUS_ERROR)
        m.d.comb += self.result.error.eq(self.result.status != CompletionStatus.OK)
        return m
