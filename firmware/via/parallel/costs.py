"""The cost of each step of the parallel VIA programs, in cycles of the card's 66 MHz processor."""

from __future__ import annotations

from ...costs import CostTable
from ..costs import SVIA_COSTS

__all__ = ["PVIA_COSTS", "QOSVIA_COSTS"]

PVIA_COSTS = CostTable(
    "pvia",
    {
        **SVIA_COSTS.table,
        "dispatch": 6,
        "look": 2,
        "poll": 5,
        "doorbell": 190,
        "record": 40,
        "program_descriptor": 160,
        "process": 426,
        "process_receive": 234,
        "program_data": 120,
        "program_up": 120,
        "page": 264,
        "queued": 40,
        "prefetch": 700,
        "host_ended": 130,
        "packet": 200,
        "program_send": 143,
        "send": 30,
        "send_ended": 130,
        "program_status": 320,
        "status_done": 290,
        "program_queue": 320,
        "queue_done": 290,
        "rearm": 20,
        "stamp": 0,
    },
)
QOSVIA_COSTS = CostTable(
    "qosvia",
    {
        **PVIA_COSTS.table,
        "stamp": 130,
        "program_data": 350,
        "program_up": 250,
        "page": 380,
        "status_done": 240,
    },
)
