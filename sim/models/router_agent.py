"""A router's agent port inside a simulation: its registers and control packets, for coroutines."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.config import ConfigError, RouterConfig
from lanikai.hdl.router.agent import RECEIVE_BASE, ROUTER_REGISTERS, SEND_BASE
from lanikai.hdl.router.scheduler import arbiter_kind
from lanikai.hdl.vl_arbiter.base import WEIGHT_BITS

from ..errors import SimulationError
from ..inside.clock import Clock
from ..vl_table import Rows, entry_writes
from .register_port import RegisterPort

__all__ = ["RouterAgent", "check_control_packet", "check_forwarding_table", "check_tables"]


SEND_TIMEOUT_CYCLES = 1_000_000
"""Wait for a control packet to leave, unless a caller says otherwise: as long as a network's watchdog waits."""
MAX_WEIGHT = (1 << WEIGHT_BITS) - 1
MAX_LIMIT = 255


def check_tables(
    config: RouterConfig,
    *,
    high: Sequence[tuple[int, int]],
    low: Sequence[tuple[int, int]],
    limit: int = MAX_LIMIT,
    port: int | None = None,
) -> None:
    """Check VL arbitration tables for a router of `config`: rows of (VL, weight), and the port that they are for.
    Raises ConfigError, naming the row."""
    if port is not None and not 0 <= port < config.ports:
        raise ConfigError(f"VL tables: port {port}: ports are 0 to {config.ports - 1}")
    if not 0 <= limit <= MAX_LIMIT:
        raise ConfigError(f"VL tables: limit = {limit}: 0 to {MAX_LIMIT}")
    for name, rows in (("high", high), ("low", low)):
        if len(rows) > config.vl_table_entries:
            raise ConfigError(f"VL tables: {name} has {len(rows)} entries: at most {config.vl_table_entries}")
        for entry, (vl, weight) in enumerate(rows):
            place = f"VL tables: {name}, entry {entry}"
            if vl == config.control_vl:
                raise ConfigError(f"{place}: VL {vl} carries control packets alone, and is in no table")
            if not 0 <= vl < config.data_vls:
                raise ConfigError(f"{place}: VL {vl}: VLs are 0 to {config.data_vls - 1}")
            if not 0 <= weight <= MAX_WEIGHT:
                raise ConfigError(f"{place}: weight {weight}: 0 to {MAX_WEIGHT}")


def check_forwarding_table(config: RouterConfig, ports: Sequence[int]) -> None:
    """Check the port of each node, -1 for none. Raises ConfigError, naming the row."""
    if len(ports) > config.forwarding_entries:
        raise ConfigError(f"forwarding table has {len(ports)} rows: at most {config.forwarding_entries}")
    for node, port in enumerate(ports):
        if not -1 <= port < config.ports:
            raise ConfigError(
                f"forwarding table, node {node}: port {port}: ports are 0 to {config.ports - 1}, -1 for none"
            )


def check_control_packet(config: RouterConfig, flits: Sequence[int]) -> None:
    """Check a control packet that an agent is to send.

    Raises ConfigError if the send memory does not hold it, or a flit is wider than the link.
    """
    if not 1 <= len(flits) <= config.management_flits:
        raise ConfigError(
            f"control packet of {len(flits)} flits: 1 to {config.management_flits} (RouterConfig.management_flits)"
        )
    for place, flit in enumerate(flits):
        if flit < 0 or flit >> config.link.flit_bits:
            raise ConfigError(
                f"control packet, flit {place}: {flit:#x}: at most {config.link.flit_bits} bits"
            )


class RouterAgent(RegisterPort):
    """The agent of router `router` of a network, whose registers are those of `router.rdl`.

    `instance`: the router's instance in a composed design. Elsewhere the top module has the ports
    `router{r}_agent__request` and `__response`. One coroutine may use it at a time. An access takes a cycle. An access
    to VL tables takes as long as the last commit is being taken up (`TableSignature.wait_bound` cycles at most). A
    control packet or a drop report is `pending`.
    """

    def __init__(self, clock: Clock, config: RouterConfig, router: int, *, instance: str = "") -> None:
        prefix, scope = ("agent_", instance) if instance else (f"router{router}_agent__", "TOP")
        super().__init__(clock, ROUTER_REGISTERS, prefix=prefix, scope=scope)
        self._config, self._router = config, router
        self._lanes = config.link.flit_bits // 32

    async def write_tables(
        self,
        *,
        high: Sequence[tuple[int, int]],
        low: Sequence[tuple[int, int]],
        limit: int = 255,
        port: int | None = None,
        crossbar: bool = False,
        before: Rows | None = None,
    ) -> None:
        """Write VL arbitration tables, rows of (VL, weight), of one port's link or crossbar input, or (`port` None) of
        all.

        Entries are served in the order of the rows. They take effect at the next frame's start. With `deficit`, whose
        rows are quanta of VLs, VLs that are not given keep theirs. `before`: the tables that were written last at the
        same place, if nobody has written others since: only entries that differ are written. Raises ConfigError
        (`check_tables`) before anything is written.
        """
        check_tables(self._config, high=high, low=low, limit=limit, port=port)
        sparse = arbiter_kind(self._config).sparse_tables
        await self.write("SELECT", port=port or 0, crossbar=crossbar, everywhere=port is None)
        for fields in entry_writes((high, low), 0 if sparse else self._config.vl_table_entries, before):
            await self.write("VL_TABLE_ENTRY", **fields)
        await self.write("VL_TABLE_COMMIT", limit=limit)

    async def write_forwarding_table(self, ports: Sequence[int]) -> None:
        """Write the port of each node (`Network.forwarding_table`); -1 for a node that cannot be reached. Raises
        ConfigError before anything is written."""
        check_forwarding_table(self._config, ports)
        for node, port in enumerate(ports):
            await self.write("ROUTE_SELECT", node=node)
            await self.write("ROUTE_PORT", port=max(port, 0), known=port >= 0)

    async def receive(self) -> list[int]:
        """The flits of the control packet that is there; empty if none is. Frees the memory."""
        status = await self.read("RECEIVE")
        if not status["valid"]:
            return []
        flits = []
        for row in range(min(status["flits"], self._config.management_flits)):
            words = [
                await self.access(RECEIVE_BASE + 4 * (row * self._lanes + k)) for k in range(self._lanes)
            ]
            flits.append(sum(word << 32 * k for k, word in enumerate(words)))
        await self.write("RECEIVE", free=1)
        return flits

    async def send(self, flits: Sequence[int], *, timeout_cycles: int = SEND_TIMEOUT_CYCLES) -> None:
        """Send a control packet of these flits (`packet.packet_words`), when the one before has left.

        Raises ConfigError (`check_control_packet`) before anything is written. Raises SimulationError if the one before
        has not left within `timeout_cycles`: the control VL of its port stands still.
        """
        check_control_packet(self._config, flits)
        began = self._clock.cycle
        while (await self.read("SEND"))["busy"]:
            if self._clock.cycle - began >= timeout_cycles:
                raise SimulationError(
                    f"router {self._router}: the control packet before has not left for {timeout_cycles} cycles: "
                    "nobody takes what its port sends on the control VL"
                )
        for row, flit in enumerate(flits):
            for k in range(self._lanes):
                word = flit >> 32 * k & 0xFFFFFFFF
                await self.access(SEND_BASE + 4 * (row * self._lanes + k), word)
        await self.write("SEND", flits=len(flits))
