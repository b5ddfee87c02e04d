"""Forwarding tables (InfiniBand): a port for each destination, written at run time."""

from __future__ import annotations

from amaranth import Module, Signal, unsigned
from amaranth.lib import memory

from ...config import RouterConfig
from .function import Arrival
from .given import GivenRouting
from .topology import Topology

__all__ = ["TableRouting"]


class TableRouting(GivenRouting):
    """The route holds the destination's node number; the table has its port.

    The table has `forwarding_entries` rows, in a memory read in the same cycle. Reset leaves the rows as they are.
    These rows have no port:

    - a row that was not written since the configuration of the chip
    - a row beyond the table
    - a row without `known`

    Nothing in the router keeps tables from deadlock: `Network` checks those that it is given.
    """

    uses_table = True
    by_place = True

    @classmethod
    def check(cls, network: Topology) -> None:
        """A row for every node, besides what given routes need."""
        entries = network.router.forwarding_entries
        if len(network.nodes) > entries:
            raise ValueError(
                f"{len(network.nodes)} nodes: forwarding tables have {entries} rows (router.forwarding_entries)"
            )
        super().check(network)

    @classmethod
    def decide(cls, config: RouterConfig, arrival: Arrival) -> tuple[int | None, int]:
        """The port in the row of the node."""
        known = arrival.route < min(config.forwarding_entries, len(arrival.rows))
        port = arrival.rows[arrival.route] if known else -1
        return (port if 0 <= port < config.ports else None), arrival.vl

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entries, ports = self.config.forwarding_entries, self.config.ports
        port_bits = len(self.table.port)
        m.submodules.rows = rows = memory.Memory(shape=unsigned(port_bits + 1), depth=entries, init=[])
        write, read = rows.write_port(), rows.read_port(domain="comb")
        found = Signal(port_bits)
        m.d.comb += [
            write.en.eq(self.table.write & (self.table.node < entries)),
            write.addr.eq(self.table.node),
            write.data[:port_bits].eq(self.table.port),
            write.data[port_bits].eq(self.table.known),
            read.addr.eq(self.route),
            found.eq(read.data[:port_bits]),
        ]
        with m.If(read.data[port_bits] & (self.route < entries)), m.Switch(found):
            for port in range(ports):
                with m.Case(port):
                    m.d.comb += self.port[port].eq(1)
        return m
