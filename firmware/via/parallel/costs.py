"""The cost of each step of the parallel VIA programs, in cycles of the card's processor."""

from __future__ import annotations

from ...costs import CostTable
from ..costs import SVIA_COSTS

__all__ = ["PVIA_COSTS", "QOSVIA_COSTS"]

PVIA_COSTS = CostTable(
    "pvia", {**SVIA_COSTS.table, "queued": 20, "host_ended": 20, "send": 12, "send_ended": 20, "stamp": 0}
)
QOSVIA_COSTS = CostTable("qosvia", {**PVIA_COSTS.table, "stamp": 40})
