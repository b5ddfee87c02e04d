"""The rate control unit in plain Python, on integers that never wrap."""

import math
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class RateModel:
    """A unit of `flows` flows; times are integers without a width. `cycle` is one clock cycle of the RTL.

    - `max_lead`, `max_lag`: bounds of an NDT around the clock.
    - `scan`: a flow that waits is moved up when the scan visits it. With None it never is; then `lags` says whether
      there is one that it would move.
    - `virtual_clock`: the discipline.
    - `unit`: bytes for which an IDT stands.
    - `most`: most bytes that a packet is charged for.

    NDTs are fractions, exact.
    """

    flows: int
    max_lead: int
    max_lag: int
    virtual_clock: bool = False
    unit: int = 1
    most: int = 1
    idt: list[int] = field(default_factory=list)
    ndt: list[int] = field(default_factory=list)
    valid: list[bool] = field(default_factory=list)
    scan: int | None = 0

    def __post_init__(self):
        self.idt = [0] * self.flows
        self.ndt = [0] * self.flows
        self.valid = [False] * self.flows

    def due(self, rtc):
        """The flows that may be dispatched."""
        return [
            flow
            for flow in range(self.flows)
            if self.valid[flow] and (self.virtual_clock or self.ndt[flow] <= rtc)
        ]

    def offer(self, rtc):
        """The flow to dispatch at clock value `rtc`, or None."""
        return min(self.due(rtc), key=lambda flow: (self.ndt[flow], flow), default=None)

    def lags(self, flow, rtc):
        """Whether a flow has fallen further behind than the unit keeps."""
        return self.ndt[flow] < rtc - self.max_lag

    def settle(self, time, rtc):
        return min(max(time, rtc - self.max_lag), rtc + self.max_lead)

    def shown(self, flow):
        """The NDT in ticks: the first that is not before it."""
        return math.ceil(self.ndt[flow])

    def cycle(
        self, rtc, *, dispatched=None, last=False, bytes=0, clear=None, ndt=None, idt=None, enqueue=None
    ):
        """One cycle's commands: `ndt` and `idt` are (flow, ticks) writes; `bytes` 0 is a whole unit."""
        if self.scan is not None:
            self.ndt[self.scan] = self.settle(self.ndt[self.scan], rtc)
            self.scan = (self.scan + 1) % self.flows
        if dispatched is not None:
            advance = 0 if self.virtual_clock and last else self.idt[dispatched]
            if bytes:
                advance = Fraction(advance * min(bytes, self.most), self.unit)
            before = self.settle(self.ndt[dispatched], rtc)
            if not self.idt[dispatched]:
                before = max(before, rtc)
            self.ndt[dispatched] = self.settle(before + advance, rtc)
            if last:
                self.valid[dispatched] = False
        if clear is not None:
            self.valid[clear] = False
        if ndt is not None:
            self.ndt[ndt[0]] = self.settle(ndt[1], rtc)
        if idt is not None:
            self.idt[idt[0]] = min(idt[1], self.max_lead)
        if enqueue is not None and not self.valid[enqueue]:
            stamp = max(self.ndt[enqueue], rtc) + (self.idt[enqueue] if self.virtual_clock else 0)
            self.ndt[enqueue] = self.settle(stamp, rtc)
            self.valid[enqueue] = True
