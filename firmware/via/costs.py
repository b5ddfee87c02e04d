"""The cost of each step of the VIA programs, in cycles of the card's processor: one table a design."""

from __future__ import annotations

from ..costs import CostTable

__all__ = ["SVIA_COSTS"]

SVIA_COSTS = CostTable(
    "svia",
    {
        "dispatch": 6,
        "look": 2,
        "poll": 5,
        "doorbell": 12,
        "record": 12,
        "program_descriptor": 100,
        "process": 150,
        "process_receive": 105,
        "program_data": 54,
        "program_up": 60,
        "page": 33,
        "program_probe": 54,
        "program_tail": 54,
        "tail": 6,
        "remote": 6,
        "ended": 79,
        "program_send": 10,
        "answer": 40,
        "packet": 20,
        "program_status": 77,
        "status_done": 66,
        "program_queue": 77,
        "queue_done": 66,
        "complete": 12,
        "wait": 8,
        "rearm": 4,
        "set_up": 6,
        "notice": 12,
        "timer": 12,
    },
)
"""SVIA on the card `via5`, whose processor has 66 MHz, so 66 cycles are 1 us. Cycles beside those of the accesses.

Fitted to the columns of 4 B and 4 KB of nagar-thesis-2001 table 5.1 (`via-latency`), by the durations of its rows. The
program makes its accesses, and engines and bus take their time, by themselves; a fit takes what is left.

- `program_descriptor`: 3 us from the doorbell, or from a message's coming, to the descriptor's host DMA.
- `ended`: find out that a host DMA has ended, and how. Of 3 us for a descriptor down (2 at the receiver) and 2 us for
  4 bytes of data either way, as far as the bus has not taken them. With more, 4 KB would come down too late.
- `process` with `program_data`: 3 us from the descriptor to the data's host DMA.
- `process_receive` with `program_up`: the same at the receiver.
- `page`: half a microsecond for each page beyond the first, as 4 KB take 0 (sent) and 1 us (received) longer.
- `program_send`: 1 us for 4 bytes, which the packet takes nearly by itself.
- `program_status`, `status_done`: 1 to 2 us, and 1 us.

The others are not in the table:

- `program_queue`, `queue_done`: as those of the status, since a completion queue's entry is told the same way (4.3.2).
- `program_probe`, `program_tail`: as `program_data`, since they program the same engine.
- `poll`: with its 3 cycles of accesses a look at a doorbell word takes 8 (5.2.1).
- The rest are instruction counts, an instruction a cycle, as in `WORK_QUEUE_COSTS`.
"""
