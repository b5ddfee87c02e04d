"""The cost of each step of the work queue program, in cycles of the card's processor."""

from __future__ import annotations

from ..costs import CostTable

__all__ = ["WORK_QUEUE_COSTS"]

WORK_QUEUE_COSTS = CostTable(
    "work queue",
    {
        "dispatch": 6,
        "look": 2,
        "doorbell": 12,
        "fetch": 12,
        "descriptor": 16,
        "data": 10,
        "ended": 6,
        "header": 24,
        "send": 4,
        "packet": 20,
        "complete": 12,
        "wait": 8,
        "rearm": 4,
        "set_up": 6,
    },
)
"""The work queue program on the card. Cycles beside those of the accesses to registers and SRAM.

The program makes these accesses and the card counts them, 1 cycle a write, 2 a read. The costs are instruction counts,
at an instruction a cycle, of a step's work with the words in its registers. None is fitted to a published number. Some
work of the LANai 4's program in nagar-thesis-2001 table 5.1 is in hardware here: check and translate an address, poll
doorbells, write the status. So these costs are below that table's.

- `dispatch`: decode ISR and jump, as in `GM_COSTS`.
- `look`: test a bit of ISR between two messages.
- `doorbell`: find the queue, and the number of new descriptors, as `sdma_doorbell` of `GM_COSTS`.
- `fetch`: make the slot's address in host memory and SRAM.
- `descriptor`: unpack it, and compare its length with a packet's.
- `data`: make the access from the descriptor.
- `ended`: find out how the access ended.
- `header`: make four words from the channel's record.
- `send`: start the engine.
- `packet`: unpack a header, find its channel, ask whether a descriptor is posted.
- `rearm`: arm the buffer again.
- `complete`: give the completion unit the descriptor that has ended, and its status.
- `wait`: a turn of the loop around a unit that is busy.
- `set_up`: a register write for the driver.
"""
