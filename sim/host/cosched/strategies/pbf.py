"""A periodic boost that is fair: a strategy of this project's own, which nagar-thesis-2001 6.2.3 leaves as future work.

The latest message tells best which job runs elsewhere now: its sender has just sent it. So boosting its receiver (PBT)
brings a job together faster than taking turns does. But one job can then hold all nodes. Here the latest message counts
only among processes that are not far ahead of the one that has had the least of the processor. If there is none, one
that is far behind the process that runs, and has something to do, is boosted itself. A process that waits for long
sleeps, so that others can use the time.
"""

from __future__ import annotations

from ..arrival import PeriodicBoost
from ..endpoint import Endpoint, NodeGround
from ..strategy import Strategy
from ..waiting import SpinBlock

__all__ = ["FairBoost", "Pbf"]


class FairBoost(PeriodicBoost):
    """Boost the latest message's process of those that have not had `fair_lead_ms` more than another one.

    A process can go on if it has a pending message, or does not wait for any.
    """

    def choose(self, node: NodeGround) -> Endpoint | None:
        """The endpoint of the process that is boosted."""
        able = [one for one in node.endpoints if one.process is not None and (one.pending or not one.waits)]
        if not able:
            return None

        def used(one: Endpoint) -> int:
            assert one.process is not None
            return one.process.used

        least = min(able, key=used)
        lead = node.host.microseconds(1000 * node.config.fair_lead_ms)
        near = [one for one in able if one.pending and used(one) <= used(least) + lead]
        if near:
            return max(near, key=lambda one: one.last_arrival)
        running = [one.used for one in node.host.running()]
        return least if running and used(least) + lead < max(running) else None


class Pbf(Strategy):
    """Periodic Boost, fair."""

    title = "PBF"
    waiting = SpinBlock()
    arrival = FairBoost()
