"""The ledger of a router or an adapter: what its links and its power have been promised to (yum-2006 3.3, 4.1, 5.1)."""

from __future__ import annotations

from enum import IntEnum

from lanikai.hdl.config import ConfigError

from .config import DATA_VLS, AdmissionConfig
from .tables import Tables, link_tables

__all__ = ["LinkSums", "Reason", "RouterLedger", "power_units"]


class Reason(IntEnum):
    """Why a connection is refused (3 bits)."""

    NONE = 0
    LINK = 1
    """A link has too little bandwidth left."""
    POWER = 2
    """The router has too little of its power budget left."""
    OVER = 3
    """The connection has been released."""


def power_units(*, watts: float, flit_joules: float, flit_hz: float, link_units: int) -> int:
    """The power budget of a router in units of bandwidth, rounded down.

    A connection of r bits a second takes E r / f watts at each router, with E for a flit and flits of f bits. So a unit
    of bandwidth, 1 / `link_units` of `flit_hz` flits a second, takes as much power everywhere. In this unit the budget
    is whole, and no sum is ever rounded. A peak input load of k is a budget of k x `link_units` a link of full rate.

    - `watts`: the budget of the router for real time.
    - `flit_joules`: energy of one flit in the router.

    Raises ConfigError for a negative budget, or other values that are not above 0.
    """
    if watts < 0:
        raise ConfigError(f"power_units: watts = {watts}: at least 0")
    for name, value in (("flit_joules", flit_joules), ("flit_hz", flit_hz), ("link_units", link_units)):
        if not value > 0:
            raise ConfigError(f"power_units: {name} = {value}: above 0")
    return int(watts * link_units / (flit_joules * flit_hz))


class LinkSums:
    """Sums of one way of a link: `units` a data VL, their sum `used`, and the sum of peak rates `peak`."""

    __slots__ = ("peak", "units", "used")

    def __init__(self) -> None:
        self.units = [0] * DATA_VLS
        self.used = self.peak = 0

    def add(self, vl: int, units: int, peak: int, sign: int) -> None:
        """Add a connection (`sign` 1), or take it off (-1)."""
        self.units[vl] += sign * units
        self.used += sign * units
        self.peak += sign * peak


class RouterLedger:
    """The ledger of `ports` ports; an adapter is one with a single port.

    The document adds a connection to the used bandwidth "of the destination physical link and to that of the incoming
    physical link". A link carries flits both ways at once, so each way has its sum here: `sent` and `received` of a
    port. The former has the tables of the link and of the crossbar output, the latter those of the crossbar input. With
    `link_sum` both_ways the two together are held against the link's bandwidth, as those words can be read, too.

    `power`: the power budget in units of bandwidth (`power_units`), None for no bound.
    """

    def __init__(self, config: AdmissionConfig, ports: int, *, power: int | None = None) -> None:
        self.config, self.ports = config, ports
        self.sent = [LinkSums() for _ in range(ports)]
        self.received = [LinkSums() for _ in range(ports)]
        self.power = power
        self.power_left = power or 0

    def refusal(self, *, in_port: int | None, out_port: int, units: int) -> Reason:
        """Why a connection of `units` cannot be added, or NONE. `in_port` None: it begins here."""
        used = [self.sent[out_port].used] + ([] if in_port is None else [self.received[in_port].used])
        if self.config.link_sum == "both_ways":
            ports = [out_port] + ([] if in_port is None else [in_port])
            used = [self.sent[port].used + self.received[port].used for port in ports]
        if max(used) + units > self.config.most_units:
            return Reason.LINK
        if self.power is not None and units > self.power_left:
            return Reason.POWER
        return Reason.NONE

    def add(self, *, in_port: int | None, out_port: int, vl: int, units: int, peak: int) -> None:
        """Add a connection."""
        self._change(in_port, out_port, vl, units, peak, 1)

    def remove(self, *, in_port: int | None, out_port: int, vl: int, units: int, peak: int) -> None:
        """Take a connection off that was added with the same numbers."""
        self._change(in_port, out_port, vl, units, peak, -1)

    def _change(self, in_port: int | None, out_port: int, vl: int, units: int, peak: int, sign: int) -> None:
        self.sent[out_port].add(vl, units, peak, sign)
        if in_port is not None:
            self.received[in_port].add(vl, units, peak, sign)
        if self.power is not None:
            self.power_left -= sign * units

    def used_word(self, port: int) -> int:
        """The word of USED_BANDWIDTH: units sent in the low half, received in the high half."""
        return self.sent[port].used | self.received[port].used << 16

    def tables(self, port: int, *, crossbar_input: bool) -> Tables:
        """The tables of a port's link and crossbar output, or of its crossbar input."""
        sums = (self.received if crossbar_input else self.sent)[port]
        return link_tables(self.config, sums.units, sums.peak)
