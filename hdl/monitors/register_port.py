"""The monitor of a register port (`hdl/register_port.py`)."""

from __future__ import annotations

from typing import Any

from amaranth import Module, Mux, Signal

from ..register_port import PROCESSOR_REQUEST, PROCESSOR_RESPONSE, ProcessorSignature
from .monitor import Monitor, Rule, at_least, held

__all__ = ["RegisterPortMonitor"]


class RegisterPortMonitor(Monitor):
    """Watches a register port: a request is held until it is taken, and is taken in time.

    Taking is the one answer to a request, and read data is that of the cycle after. So a port cannot answer twice.

    Parameters: `most_cycles`, the most cycles that a request may stand, the one in which it is taken included. Raises
    ConfigError below 1.

    Members: `request` (in, `PROCESSOR_REQUEST`), `response` (in, `PROCESSOR_RESPONSE`), as in `ProcessorSignature`;
    `violation` (out, a bit a rule).
    """

    rules = {
        "request_dropped": Rule("sender", "the request was withdrawn before it was taken"),
        "request_changed": Rule("sender", "the request changed before it was taken"),
        "unaligned": Rule("sender", "the address is no multiple of 4"),
        "late": Rule("receiver", "the request was not taken in time"),
    }

    def __init__(self, *, most_cycles: int = 256) -> None:
        self._most = at_least(type(self), "most_cycles", most_cycles, 1)
        super().__init__({"request": PROCESSOR_REQUEST, "response": PROCESSOR_RESPONSE})

    @classmethod
    def of(cls, signature: ProcessorSignature, **parameters: Any) -> RegisterPortMonitor:
        """A monitor for a register port."""
        return cls(**parameters)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, told = self.request, self.violation
        stands = request.valid & ~self.response.ready
        # The data of a read means nothing.
        payload = (request.write, request.address, Mux(request.write, request.data, 0))
        dropped, changed = held(m, "request", request.valid, self.response.ready, *payload)
        waited = Signal(range(self._most + 1))
        m.d.sync += waited.eq(Mux(stands, Mux(waited == self._most, waited, waited + 1), 0))
        m.d.comb += [
            told.request_dropped.eq(dropped),
            told.request_changed.eq(changed),
            told.unaligned.eq(request.valid & (request.address[:2] != 0)),
            # In the first cycle too many.
            told.late.eq(request.valid & (waited == self._most)),
        ]
        return m
