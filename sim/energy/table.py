"""Energies of a router's parts and of a link, in whole numbers: two ways of adding them up are equal exactly."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..published import table

__all__ = ["ATTOJOULES_PER_PJ", "EnergyTable", "published_energy"]

ATTOJOULES_PER_PJ = 10**6
"""Attojoules (10^-18 J) of a picojoule. Every energy of yum-2006 table 1 is a whole number of them."""


@dataclass(frozen=True, kw_only=True)
class EnergyTable:
    """Energies in attojoules.

    - `buffer_read`, `buffer_write`: a flit read from, or written into, an input or output buffer.
    - `arbitration`: a decision of an arbiter.
    - `crossbar`: a flit through the crossbar.
    - `link_per_bit`: a bit on a link.

    Raises ValueError for one that is negative.
    """

    buffer_read: int
    buffer_write: int
    arbitration: int
    crossbar: int
    link_per_bit: int

    def __post_init__(self) -> None:
        """Check the signs."""
        for name, value in vars(self).items():
            if value < 0:
                raise ValueError(f"EnergyTable.{name} = {value}: at least 0 attojoules")


def published_energy() -> EnergyTable:
    """Table 1 of yum-2006: a 180 nm design with flits of 128 bits and links of 2.5 Gbit/s."""
    found = table("energy")
    return EnergyTable(
        buffer_read=_attojoules(found["buffer_read_pj_per_flit"]),
        buffer_write=_attojoules(found["buffer_write_pj_per_flit"]),
        arbitration=_attojoules(found["arbitration_pj"]),
        crossbar=_attojoules(found["crossbar_pj_per_flit"]),
        link_per_bit=_attojoules(found["link_pj_per_bit"]),
    )


def _attojoules(picojoules: Any) -> int:
    """A decimal number of picojoules in attojoules. Raises ValueError if it is not a whole number of them."""
    exact = Decimal(str(picojoules)) * ATTOJOULES_PER_PJ
    if exact != int(exact):
        raise ValueError(f"{picojoules} pJ: a whole number of attojoules")
    return int(exact)
