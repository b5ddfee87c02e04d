"""The costs of the ladder's programs (nagar-thesis-2001 4.3), on the card of chapter 4.

Chapter 4 has no table of times. It says what each design does beside the one before, so its table follows from Base's:

- Base is SVIA (5.3.1), so its steps are those of `SVIA_COSTS`.
- A message has the same stages in all designs (4.3.2). Stages 1, 3, 5, 7, 9 and 11 are work of the processor: each
  costs what it costs in Base.
- Stages 4, 6, 8, 10 and 12 are waits (4.3.2, 4.3.6). Base spends them on its processor, and an event loop does not. So
  `ended`, `status_done` and `queue_done` of Base are no work here. What an event costs comes in their place.
- "The overhead of queue/state maintenance" (4.3.6) comes on top. It is counted in instructions below, an instruction a
  cycle and a load two, as the accesses of the processor's port take.
- A task's way through a queue in software costs 68 cycles (`sdma_turn` of `GM_COSTS`). That was measured on a LANai: an
  entry of GM's queue goes from its head to its tail.

Nothing is fitted to the claims of 4.3. The costs of PVIA (table 5.1) are not used: they are those of a program of
chapter 5, measured on another host and card.

A departure: a part of Base's waits is the processor's in `SVIA_COSTS`, as the modelled bus is faster than the
published one. Here that part is nobody's. So each host DMA of the parallel designs ends up to 1.2 us sooner than in
Base.
"""

from __future__ import annotations

from ..costs import GM_COSTS, CostTable
from .costs import SVIA_COSTS

__all__ = ["LADDER_COSTS"]

LOAD_CYCLES = 2
STATE_WORDS = 4
"""Words of a message's state between two stages: its VI, its descriptor's number, its buffer, its next stage."""

ALLOCATE = 2 * LOAD_CYCLES + 2
"""Take a state record from the free list: load its head and what follows that, store the head, test."""
FREE = LOAD_CYCLES + 2
"""Give it back: load the head, store it in the record, store the head."""
SAVE = STATE_WORDS
"""Put a message's state away: a store a word."""
RESTORE = LOAD_CYCLES + STATE_WORDS * LOAD_CYCLES + LOAD_CYCLES + 2
"""Go on with a message: load whose the engine's task is, load its state, load the stage's address, jump."""
TEST = LOAD_CYCLES + 1
"""Look whether an engine, or its queue, is busy: load and branch."""
SUBMIT = SAVE + TEST
"""A stage gives an engine a task, and the message sleeps."""
EVENT = RESTORE + TEST
"""An engine has ended: the message goes on, and the queue is looked at. The dispatch of the event is a step itself."""

_BASE = SVIA_COSTS.table

LADDER_COSTS = CostTable(
    "ladder",
    {
        **_BASE,
        # A message's state begins at its doorbell, or with its first packet.
        "doorbell": _BASE["doorbell"] + ALLOCATE,
        "packet": _BASE["packet"] + ALLOCATE,
        # A receive doorbell is answered at once (4.3.10): look its VI up, begin a state, then fetch as Base does.
        "prefetch": _BASE["record"] + ALLOCATE,
        "program_descriptor": _BASE["program_descriptor"] + SUBMIT,
        "program_data": _BASE["program_data"] + SUBMIT,
        "program_up": _BASE["program_up"] + SUBMIT,
        "program_probe": _BASE["program_probe"] + SUBMIT,
        "program_tail": _BASE["program_tail"] + SUBMIT,
        "program_send": _BASE["program_send"] + SUBMIT,
        "program_status": _BASE["program_status"] + SUBMIT,
        "program_queue": _BASE["program_queue"] + SUBMIT,
        # Starting the send engine is part of `program_send`.
        "send": 0,
        "queued": GM_COSTS.cycles("sdma_turn"),
        "host_ended": EVENT,
        # The packet's buffer goes back to its pool.
        "send_ended": EVENT + FREE,
        "status_done": EVENT + FREE,
        "queue_done": EVENT,
        # The buffer comes from a pool.
        "rearm": _BASE["rearm"] + ALLOCATE,
        "stamp": 0,
    },
)
"""The parallel designs of the ladder: cycles of the card's 66 MHz processor, beside those of the accesses."""
