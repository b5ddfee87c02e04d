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
        "send_channel": 24,
        "send_data": 30,
        "sent": 6,
        "host_dma_start": 4,
        "host_dma_done": 8,
        "receive_message": 70,
        "receive_check": 20,
        "receive_channel": 18,
        "receive_data": 30,
        "deliver": 30,
        "answer": 20,
        "answer_in": 30,
        "line": 20,
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
- `send_channel`: a number, a time stamp, and a count of what is unacknowledged, counted below.
- `send_data`: find the staging slot, start its host DMA. `sent`: give the buffer back.
- `host_dma_start`, `host_dma_done`: program the host DMA engine; check its status.

A message on its way in:

- `receive_message`: decode the header, find the frame of its endpoint, give the engine another buffer.
- `receive_check`: tag, length and place of the data. `receive_channel`: the channel's number, counted below.
- `receive_data`: find the staging slot or the place in the segment.
- `deliver`: move the counts of the queue, and look at the event mask.

The steps of reliability are counted instruction by instruction, a load from a table in SRAM as 2 cycles. They are
judged by what `am-logp` says of its second program, and not fitted. That was known when they were counted: with round
estimates of 40, 40, 30 and 40 cycles before, the whole program had a gap of 19.1 us.

- `send_channel` = 24. Place of the row (3), a free channel of its mask (5), number and the peer's incarnation (4). The
  message's place (1), RTC and its store (3), tries and state (3), count of unacknowledged packets (4), branch (1).
- `receive_channel` = 18. Place of the row (3), incarnations compared (4), last number (2), difference and branches (5).
  Number and fate stored (3), return (1).
- `answer` = 20. Route back (3), kind and reason (3), four words of the header (8), stamp and incarnations (4), branch
  (2). Its stores are accesses.
- `answer_in` = 30. Place of the row (3), incarnations (4), number compared (4), reason looked up (3).
  Channel freed (4), count of unacknowledged packets (4), entry done and `TAKEN` moved on (8).

Rare:

- `line`: a message at a queue that is full, or was: find its flow among those refused, and their number.
- `scan`, `scan_row`, `scan_channel`: a scan, a card with unacknowledged packets, a channel of it.
- `return`: give a message back to its sender. `command`, `notice`: the driver's. `page_piece`: a piece of a page.
- `quiesce`: stop an endpoint, and look whether anything of it is under way.
"""
