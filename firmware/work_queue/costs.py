"""What each step of the work queue program costs, in cycles of the card's processor."""

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
"""Beside the accesses to registers and SRAM, which the program makes and the card counts (1 cycle a write, 2 a read).

Instruction counts at an instruction a cycle, of what a step does with what it has in its registers; none is fitted to a
published number. The card does in hardware what the LANai 4 of nagar-thesis-2001 table 5.1 did in its program: check
and translate an address, poll doorbells, write the status; so these are below that table's.

- `dispatch`: decode ISR and jump; `look`: test a bit of it between two messages. As `GM_COSTS` has it.
- `doorbell`: which queue, how many more descriptors; as `sdma_doorbell` of `GM_COSTS`.
- `fetch`: the slot's address in host memory and SRAM; `descriptor`: unpack, is it longer than a packet.
- `data`: the access from the descriptor; `ended`: how it ended.
- `header`: four words from the channel's record; `send`: start the engine.
- `packet`: unpack a header, find its channel, is a descriptor posted; `rearm`: arm the buffer again.
- `complete`: what has ended, and how, to the completion unit; `wait`: a turn of the loop around a unit that is busy.
- `set_up`: a register write for the driver.
"""
