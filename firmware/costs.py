"""The cost of each step of a control program, in cycles of the NIC's 33 MHz processor: one table a program.

Source of the sums: gulati-thesis-2001 5.3 and 5.4 (T = 96 RTC ticks of 0.5 us; MB = 10^6 bytes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["GM_COSTS", "CostTable"]


@dataclass(frozen=True)
class CostTable:
    """The costs of a program's steps. `program`: its name; `table`: step -> cycles, each 0 or more."""

    program: str
    table: Mapping[str, int]

    def __post_init__(self) -> None:
        for name, cycles in self.table.items():
            if cycles < 0:
                raise ValueError(f"cost table of {self.program}: {name} = {cycles}: 0 or more cycles")

    def cycles(self, step: str) -> int:
        """Cycles of a step. Raises KeyError naming the steps there are."""
        try:
            return self.table[step]
        except KeyError:
            raise KeyError(
                f"cost table of {self.program}: no step {step!r}; it has {', '.join(self.table)}"
            ) from None

    def replace(self, **cycles: int) -> CostTable:
        """A copy with other costs. Raises KeyError for a step that is not there, ValueError for a bad cost."""
        for step in cycles:
            self.cycles(step)
        return CostTable(self.program, {**self.table, **cycles})


GM_COSTS = CostTable(
    "gm",
    {
        "dispatch": 6,
        "poll_look": 5,
        "sdma_doorbell": 12,
        "sdma_token": 60,
        "sdma_receive_token": 30,
        "sdma_command": 60,
        "sdma_select": 2,
        "sdma_choose": 8,
        "sdma_head": 2,
        "sdma_link": 1,
        "sdma_relink": 2,
        "sdma_turn": 68,
        "packet_turn": 244,
        "sdma_packet": 288,
        "sdma_start": 4,
        "sdma_done": 10,
        "send_packet": 40,
        "send_ack": 30,
        "recv_rearm": 8,
        "recv_data": 80,
        "recv_ack": 40,
        "recv_nack": 60,
        "rdma_data": 40,
        "rdma_event": 40,
        "rdma_start": 4,
        "rdma_done": 4,
        "timer": 40,
    },
)
"""The GM control program on the lanai4 card. Cycles beside those of the accesses to registers and SRAM.

On the path of a lone sender, from one packet to the next, with the host DMA engine idle:

- `dispatch`: decode ISR and jump: a find-first and a table jump. It is paid once, when the host DMA ends.
- `sdma_done`: check the DMA's status, append the packet to SEND's queue.
- `send_packet`: SEND takes the packet and programs its engine. This comes before SDMA goes on, or the packet would lie
  in its buffer for a `sdma_packet`.
- `sdma_select`, `sdma_choose`: begin to choose a packet, tell the queues which flows have changed, ask whether there is
  a packet to be sent again. (The unit has settled by the end of `sdma_choose`.)
- `sdma_head` = 2: the unmodified program then looks at the head of its queues. The rate-controlled program instead
  reads RATE_DISPATCH (2 cycles).
- `sdma_link` = 1: the unmodified program takes the head out. The rate-controlled one instead writes RATE_DISPATCH (1).
- `sdma_relink` = 2: the unmodified program links in a flow that stays or becomes ready. The rate-controlled one instead
  writes RATE_SELECT and RATE_COMMAND (2), for an unregulated flow that stays, or any that becomes ready.
- `sdma_packet`: segment, translate the address, build header and route. It takes the residual of the published
  interval, 96 ticks = 48.0 us = 1584 cycles of 33 MHz. That is 1584 less the host DMA of 4096 bytes, less everything
  else in this list. The host DMA takes 1207 cycles from its start to ISR.host_dma, with `PciTiming`'s defaults.
- `sdma_start`: program the host DMA engine.

With `sdma_head`, `sdma_link` and `sdma_relink` the two programs take the same cycles, since the unit replaces the look
at the queue. That is no count of instructions: the three are set to the accesses, by the thesis' "less than 1%" between
the two (5.2). Were they 0, the unit would cost 5 cycles of 1584, 0.3%.

Change of connection (thesis 4.1: the queue is rotated after each packet):

- `sdma_turn` = 68: a connection entry comes to the head of the queue on the way to the wanted one. The one whose packet
  went last is not counted, since its state is still at hand.

Two destinations that alternate turn the queue by one entry a packet. They give 81.82 MB/s = 50.06 us a packet (figure
5.5), 68 cycles more than a lone one. That one sum is the fit. The other sums follow from it:

- (10/3 T, 10/7 T) also turns by one entry a packet, since a flow that goes again turns past the other. The published
  sum is 81.84 MB/s.
- Three destinations in the order A A B C turn by 5 entries in 4 packets: 81.0 MB/s (published 80.81).

Change between sending and receiving packets:

- `packet_turn` = 244: the host DMA engine moves a packet of RDMA after one of SDMA, or the other way round.

That mixing costs something follows from three statements of the thesis alone. Beside 16.37 MB/s that come in, 65.0 go
out (5.3, 5.4.3). From one received packet to the next are 8250 cycles. 8250 * 65.0 / 85.33 = 6284 of them go into
packets sent, which leaves 1966 for the received one. A packet sent takes 1584. But a receive "is less" work (5.3), and
a card that does nothing else receives a packet every 1600 cycles (8.52 + 75.91 MB/s, 5.4.2). So a received packet costs
more between packets sent than among its like. The rate "leads to higher net throughput" as packets in a row become
longer (5.3). The thesis does not say what takes the time.

The fit is to figure 5.4's point, the one published number of a card that does both; figure 5.8 shares it in two. With
244 cycles the two flows out of share-bidir have 65.0 MB/s. All values from 230 to 285 cycles give incoming-rate
65.6 MB/s, since the pattern of both flows locks at four packets sent to one received. With 122 cycles it is 68.6, with
none 71.2.

No cost of receiving does it:

- With `recv_data` raised in place of this, and SDMA choosing beside a transfer as well, incoming-rate comes below 67
  (65.0 + 3%) at 800 cycles. At 700 it has 69.6 MB/s. But share-receiver keeps its 81.9 (84.4 - 3%) only up to 600. At
  700 it has 78.5, at 800 to 950 74.2 to 68.6.
- With the engine held as it is now (`gm/engine.py`), 450 to 550 cycles would do for both. But then a receive is more
  work than a send, and a lone flow has 83.3 MB/s.

Beside the host DMA (about 1200 cycles), so not in a lone sender's interval:

- `recv_rearm`, `recv_ack`: once a packet's acknowledgement.
- `send_ack`: the same, at the receiver.
- `sdma_doorbell`, `sdma_token`: once a message, with 4 reads of SRAM beside.
- `rdma_event`, `rdma_start`, `rdma_done`: once a message, with 5 stores beside.
- `poll_look`: loop over doorbell words. With the 3 cycles of the two accesses a look takes 8 cycles
  (nagar-thesis-2001 5.2.1).
- `sdma_receive_token`, `sdma_command`, `timer`, `recv_nack`: rare.

Receiving a packet takes `recv_rearm` + `recv_data` + `rdma_data` + `rdma_done` + `send_ack`, about 160 cycles. Sending
one takes about 370. "The amount of processing required for incoming messages is less than that for outgoing" (5.3).
"""
