"""The cost of each step of the program of virtual networks, in cycles of the card's 37.5 MHz processor.

A step's cycles are beside those of its accesses to registers and SRAM (`lanikai.firmware.accesses`).
"""

from __future__ import annotations

from ..costs import CostTable

__all__ = ["AM_COSTS", "PROTECTION_STEPS", "RELIABILITY_STEPS"]

RELIABILITY_STEPS = frozenset({"send_channel", "receive_channel", "answer", "answer_in"})
"""Steps that only the reliable transport takes; `VirtualNetworkConfig.reliability` off leaves them out."""
PROTECTION_STEPS = frozenset({"send_check", "receive_check"})
"""Steps that only protection takes; `VirtualNetworkConfig.protection` off leaves them out."""

AM_COSTS = CostTable(
    "am",
    {
        "dispatch": 4,
        "doorbell_look": 4,
        "loiter_look": 3,
        "turn": 24,
        "send_message": 110,
        "send_check": 20,
        "send_channel": 40,
        "send_data": 30,
        "sent": 6,
        "host_dma_start": 4,
        "host_dma_done": 8,
        "receive_message": 70,
        "receive_check": 20,
        "receive_channel": 40,
        "receive_data": 30,
        "deliver": 30,
        "answer": 30,
        "answer_in": 40,
        "scan": 20,
        "scan_row": 12,
        "scan_channel": 10,
        "return": 60,
        "command": 40,
        "notice": 40,
        "page_piece": 16,
        "quiesce": 30,
    },
)
"""Counts of instructions, at one a cycle. `dispatch` and `doorbell_look` are fitted to the baseline row of am-logp: its
gap, 9.60 us, with a latency of 10.36 us (chun-1998 5.1). The steps of reliability and of protection are counts alone.

In every pass of the loop:

- `dispatch`: decode ISR, and jump to what has come.
- `doorbell_look`: a doorbell word: mask it, compare it with the last one. `loiter_look`: the same of ISR alone.
- `turn`: another endpoint's turn: its frame's address and constants into registers. Loitering saves it (chun-1998 4.1).

A message on its way out:

- `send_message`: build a private header out of an entry, find route and buffer, start the send engine. The paper names
  this as the reason of its larger gap (5.1).
- `send_check`: tag, bounds and reserved bits of an entry.
- `send_channel`: choose a channel, number and stamp the packet, count it as unacknowledged.
- `send_data`: find the staging slot, start its host DMA. `sent`: give the buffer back.
- `host_dma_start`, `host_dma_done`: program the host DMA engine; check its status.

A message on its way in:

- `receive_message`: decode the header, find the frame of its endpoint, give the engine another buffer.
- `receive_check`: tag, length and place of the data. `receive_channel`: the channel's number, newer or a copy.
- `receive_data`: find the staging slot or the place in the segment.
- `deliver`: move the counts of the queue, and look at the event mask.
- `answer`: build an acknowledgement. `answer_in`: find its channel, compare number and stamp, free the channel.

Rare:

- `scan`, `scan_row`, `scan_channel`: a scan, a card with unacknowledged packets, a channel of it.
- `return`: give a message back to its sender. `command`, `notice`: the driver's. `page_piece`: a piece of a page.
- `quiesce`: stop an endpoint, and look whether anything of it is under way.
"""
