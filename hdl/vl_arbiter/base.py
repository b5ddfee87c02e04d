"""The base of every VL arbiter, which decides the virtual lane of a port that sends its next flit."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth import Mux, Signal, Value
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..config import ConfigError
from ..working import works_when

__all__ = [
    "CONTROL_VL",
    "NO_LIMIT",
    "WEIGHT_BITS",
    "TableSignature",
    "VlArbiter",
    "VlArbiterSignature",
    "lowest_bit",
    "rotating_pick",
]

CONTROL_VL = 15
"""The VL of control packets, alone on it and always first, where there are 16 VLs (yum-2006 3.3)."""
WEIGHT_BITS = 8
"""A weight of a table's entry is 0 to 255 (yum-2006 3.3)."""
NO_LIMIT = 255
"""The limit of high priority that means none: low priority goes only when high priority does not ask."""


class TableSignature(wiring.Signature):
    """The port where tables are written, seen by the arbiter. Parameters: `vls`; `entries` of each of the two tables.

    Members:

    - `write` (in): an entry is written. Nothing changes for the traffic yet.
    - `high` (in): it is an entry of the high table, else of the low one.
    - `entry` (in): its number, 0 to `entries - 1`.
    - `vl` (in): the VL that it names.
    - `weight` (in, 8): its weight. An entry of weight 0 is not used.
    - `commit` (in): the tables as written, with `limit`, take effect at the next start of a frame. They do so at the
      latest `patience_cycles` after they are ready.
    - `limit` (in, 8): the limit of high priority.
    - `ready` (out): a write or a commit is taken in this cycle; without `ready` it is lost. `ready` is low after reset,
      while the tables are wiped, and from a commit until it has taken effect. Both last `wait_bound` cycles at most.
    """

    def __init__(self, *, vls: int, entries: int) -> None:
        super().__init__(
            {
                "write": In(1),
                "high": In(1),
                "entry": In(range(entries)),
                "vl": In(range(max(2, vls))),
                "weight": In(WEIGHT_BITS),
                "limit": In(8),
                "commit": In(1),
                "ready": Out(1),
            }
        )

    @staticmethod
    def patience_cycles(entries: int) -> int:
        """The most cycles that tables which are ready wait for the end of a frame.

        They are the flits of the longest frame of `entries` entries, rounded up to a power of two (16384 for 64). So a
        frame in flits of which one goes in every cycle is never cut short. A frame whose picks do not go keeps nobody
        waiting for ever.
        """
        return 1 << (255 * entries).bit_length()

    @classmethod
    def wait_bound(cls, *, vls: int, entries: int) -> int:
        """The most cycles without `ready`, whatever the traffic does.

        They are the tables' preparation, and `patience_cycles`.
        """
        rows, walked = 2 << max(1, (vls - 1).bit_length()), 2 << (entries - 1).bit_length()
        return walked + 1 + rows + cls.patience_cycles(entries)


class VlArbiterSignature(wiring.Signature):
    """A VL arbiter, seen by itself. Parameters: `vls`; `entries` of a table, 0 for an arbiter without tables.

    Members (vectors have a bit a VL):

    - `requests` (in): the VL's next flit may go in this cycle. A request may come and go freely.
    - `tails` (in): that flit is the last of its packet. It means nothing without the request.
    - `grant` (out): one of those who ask, one-hot, in the same cycle; 0 if nobody asks.
    - `advance` (in): the granted flit goes in this cycle. It may depend on `grant`; `grant` never depends on it.
    - `table` (in, `TableSignature`), only with `entries`.
    """

    def __init__(self, *, vls: int, entries: int = 0) -> None:
        members: dict[str, Any] = {"requests": In(vls), "tails": In(vls), "grant": Out(vls), "advance": In(1)}
        if entries:
            members["table"] = Out(TableSignature(vls=vls, entries=entries))
        super().__init__(members)


class VlArbiter(wiring.Component):
    """Base of the VL arbiters: `VlArbiterSignature`, and the control VL ahead of all.

    Parameters, the same for all, so that a registry can make any:

    - `vls`: 1 to 16.
    - `control_vl`: the VL that always goes first and costs nobody a turn; -1 for none. If it is left out, it is VL 15
      where there are 16.
    - `flit_bytes`: payload of a flit, for arbiters that count bytes.
    - `entries`: entries of each table, for arbiters that have tables: 1 to 64.

    Raises ConfigError for a value out of range.

    A derived class gives its abilities by class attributes, which routers, cards and experiments ask for:

    - `weighs`: some VLs may get more than others, or go before them. Then a router's outputs choose by VL, with an
      arbiter each, and headers are looked at ahead of time.
    - `rests`: none of its registers changes in a cycle in which no VL asks.
    - `has_tables`: it has the member `table`.
    - `sparse_tables`: a row of a table is a VL's own, and VLs that are not written keep theirs.
    - `whole_packets`: a turn ends with a packet, however much is left of its weight.
    - `weight_bytes`: bytes of a unit of weight, where it is not a flit.

    It gives `pick(m, requests, tails, grant, advance)`: the arbitration among the data VLs. There:

    - `requests` never has the control VL.
    - `advance` is low while the control VL sends.
    - `grant` is a signal to be driven, which must obey the contract above.

    Its docstring gives the algorithm, its memory, and the longest wait. The static or class method `wait_bound`
    computes that wait in flits of others (control flits not counted), or None where there is no bound.

    Latency: none from `requests` to `grant`; a flit that goes counts from the next cycle on. Throughput: a grant a
    cycle.
    """

    weighs: ClassVar[bool] = True
    rests: ClassVar[bool] = False
    has_tables: ClassVar[bool] = False
    sparse_tables: ClassVar[bool] = False
    whole_packets: ClassVar[bool] = False
    weight_bytes: ClassVar[int | None] = None

    def __init__(
        self, *, vls: int, control_vl: int | None = None, flit_bytes: int = 16, entries: int = 64
    ) -> None:
        name = type(self).__name__
        if not 1 <= vls <= 16:
            raise ConfigError(f"{name}: vls = {vls}: 1 to 16")
        if control_vl is None:
            control_vl = CONTROL_VL if vls == 16 else -1
        if not -1 <= control_vl < vls:
            raise ConfigError(f"{name}: control_vl = {control_vl}: a VL from 0 to {vls - 1}, or -1 for none")
        if flit_bytes not in (4, 8, 16):
            raise ConfigError(f"{name}: flit_bytes = {flit_bytes}: 4, 8 or 16")
        if not 1 <= entries <= 64:
            raise ConfigError(f"{name}: entries = {entries}: 1 to 64")
        self.vls, self.control_vl, self.flit_bytes, self.entries = vls, control_vl, flit_bytes, entries
        super().__init__(VlArbiterSignature(vls=vls, entries=entries if self.has_tables else 0))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self.rests:
            works_when(m, self.requests)
        if self.control_vl < 0:
            self.pick(m, self.requests, self.tails, self.grant, self.advance)
            return m
        control = 1 << self.control_vl
        ahead = Signal()
        requests, grant = Signal(self.vls, name="data_requests"), Signal(self.vls, name="data_grant")
        advance = Signal(name="data_advance")
        m.d.comb += [
            ahead.eq(self.requests[self.control_vl]),
            requests.eq(self.requests & ~control),
            advance.eq(self.advance & ~ahead),
            self.grant.eq(Mux(ahead, control, grant)),
        ]
        self.pick(m, requests, self.tails, grant, advance)
        return m

    def pick(self, m: Module, requests: Signal, tails: Signal, grant: Signal, advance: Signal) -> None:
        """Adds the arbitration among data VLs to `m`."""
        raise NotImplementedError(f"{type(self).__name__} has no pick()")


def lowest_bit(value: Value) -> Value:
    """The lowest set bit of `value`, one-hot, 0 if none is set: x & -x."""
    return value & (~value + 1)


def rotating_pick(m: Module, candidates: Value, mask: Value, name: str = "pick") -> Signal:
    """The lowest candidate in `mask`, or the lowest of all if none is in it: one-hot, or 0.

    This is round robin if `mask` has the numbers above the last one served.
    """
    bits = len(candidates)
    later, pool, pick = (Signal(bits, name=f"{name}_{part}") for part in ("later", "pool", "grant"))
    m.d.comb += [
        later.eq(candidates & mask),
        pool.eq(Mux(later.any(), later, candidates)),
        pick.eq(lowest_bit(pool)),
    ]
    return pick
