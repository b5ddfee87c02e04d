"""The activity of adapters, and its energy (yum-2006 3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields

from lanikai.hdl.hca.activity import ADAPTER_COUNTED
from lanikai.hdl.hca.send_layout import QUEUED_LAYOUT

from .table import EnergyTable

__all__ = ["AdapterActivity", "AdapterEnergies"]


@dataclass(frozen=True, kw_only=True)
class AdapterActivity:
    """Events of one adapter, or of several: `hdl/hca/activity.py` says what each is."""

    buffer_writes: int = 0
    buffer_reads: int = 0
    arbitrations: int = 0
    link_flits: int = 0
    bus_beats: int = 0
    queue_writes: int = 0
    queue_reads: int = 0

    def __add__(self, other: AdapterActivity) -> AdapterActivity:
        """The events of both."""
        both = zip(astuple(self), astuple(other), strict=True)
        return AdapterActivity.from_list([mine + its for mine, its in both])

    @classmethod
    def total(cls, several: Iterable[AdapterActivity]) -> AdapterActivity:
        """The events of all."""
        return sum(several, cls())

    def attojoules(self, energies: AdapterEnergies) -> int:
        """The energy of the events, attojoules (10^-18 J), exact."""
        return sum(getattr(self, one.name) * getattr(energies, one.name) for one in fields(self))

    def as_list(self) -> list[int]:
        """The counts in the order of the fields, for JSON; `from_list` makes them again."""
        return list(astuple(self))

    @classmethod
    def from_list(cls, counts: Sequence[int]) -> AdapterActivity:
        """The activity whose `as_list` has given `counts`."""
        return cls(**dict(zip(ADAPTER_COUNTED, counts, strict=True)))


@dataclass(frozen=True, kw_only=True)
class AdapterEnergies:
    """Attojoules of an event of each kind, by the names of `AdapterActivity`. Raises ValueError for a negative one.

    The document has a processor, a local memory of 8 MB, a DMA controller, doorbell queues and a VL arbiter in its
    adapter, and gives no number of any. All numbers here are derived from those of table 1 (`derived`). No program runs
    in this adapter, and it has no local memory, so nothing stands for those two.
    """

    buffer_writes: int
    buffer_reads: int
    arbitrations: int
    link_flits: int
    bus_beats: int
    queue_writes: int
    queue_reads: int

    def __post_init__(self) -> None:
        """Check the signs."""
        for name, value in vars(self).items():
            if value < 0:
                raise ValueError(f"AdapterEnergies.{name} = {value}: at least 0 attojoules")

    @classmethod
    def derived(cls, table: EnergyTable, *, flit_bits: int) -> AdapterEnergies:
        """The energies that follow from table 1 of yum-2006.

        - A flit into a VL buffer or out of it is one of a router's buffers, and a decision one of a router's arbiters.
        - The adapter's link is a link of table 1, `flit_bits` a flit.
        - A beat of the DMA passes a buffer: it is written and read, as a flit of as many bits.
        - An entry of a doorbell queue is written and read as so many bits of a flit, rounded up to an attojoule.
        """
        entry = QUEUED_LAYOUT.size
        return cls(
            buffer_writes=table.buffer_write,
            buffer_reads=table.buffer_read,
            arbitrations=table.arbitration,
            link_flits=flit_bits * table.link_per_bit,
            bus_beats=table.buffer_write + table.buffer_read,
            queue_writes=-(-table.buffer_write * entry // flit_bits),
            queue_reads=-(-table.buffer_read * entry // flit_bits),
        )
