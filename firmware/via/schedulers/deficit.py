"""Deficit round robin, its rounds written as stamps, so that the same queues carry it out."""

from __future__ import annotations

from .base import BEST_EFFORT_RATE, Flow, Message, Rate, Scheduler

__all__ = ["FRAME_TICKS", "DeficitScheduler"]

FRAME_TICKS = 256
"""Length of a round in which every flow uses its quantum: 128 us on a clock of half a microsecond."""


class DeficitScheduler(Scheduler):
    """Deficit round robin (Shreedhar and Varghese, "Efficient fair queuing using deficit round robin", SIGCOMM 1995).

    Algorithm: a round gives each flow a quantum, the bytes that its rate has in `FRAME_TICKS`. A flow sends in a round
    what its quanta suffice for, and keeps the rest for the next one while it has messages. A flow without them keeps
    nothing. Here the round in which a message goes is reckoned as it comes. Its stamp is that round's number times the
    number of flows, and the flow's place in a round. A flow that begins to send takes part from the next round on.

    A round is over when its messages are sent, however soon that is. So flows share what is idle by their rates.

    Memory: 12 bytes a VI: end of what it has been promised, interval, remainder; and 4 for the round.

    Wait of a QoS message: the rounds that its flow's bytes take, and the one that has begun. A round is at most
    `FRAME_TICKS`, and one longest message for each flow. So the bound grows with the number of flows, which those of
    VirtualClock and WF2Q+ do not.

    Wait of a best-effort message: the same, at the rate of best effort together, and the bytes of all its VIs.
    """

    name = "deficit"
    memory_bytes = 12

    def __init__(self, *, vis: int, bits: int = 32, best_effort: Rate = BEST_EFFORT_RATE) -> None:
        super().__init__(vis=vis, bits=bits, best_effort=best_effort)
        self.round = 0
        """The round of the message that was served last, without wrap."""
        self._places = vis + 1

    def wait_bound_ticks(
        self, rate: Rate | None, *, ahead_bytes: int, longest_ticks: int, flows: int
    ) -> int | None:
        """The rounds of its flow's bytes and the one that has begun, each with a longest message of every flow."""
        rounds = 1 - (-(rate or self._best_effort.rate).ticks(ahead_bytes) // FRAME_TICKS)
        return rounds * (FRAME_TICKS + (flows + 1) * longest_ticks) + longest_ticks

    def _stamp(self, vi: int, flow: Flow, count: int) -> tuple[int, int]:
        # `finish` is in ticks: a whole round is FRAME_TICKS of every flow.
        if not flow.waiting:
            flow.finish = max(flow.finish, self.round * FRAME_TICKS)
        most = (self.round + self.most_ahead // self._places - 1) * FRAME_TICKS
        flow.finish = min(flow.finish + max(flow.charge(count), 1), most)
        order = -(-flow.finish // FRAME_TICKS) * self._places + flow.position
        return order, order

    def _correct(self, flow: Flow, more: int) -> None:
        flow.finish += flow.charge(more)

    def _served(self, message: Message) -> None:
        self.round = max(self.round, message.order // self._places)
