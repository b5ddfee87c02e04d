"""The GM library of one host: nodes, ports, flows (gulati-thesis-2001 4.1, 4.2.1). `GmPort` has the calls of a port."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lanikai.firmware.gm.config import GmConfig
from lanikai.firmware.gm.layout import Counts, Layout
from lanikai.hdl.config import NicConfig

from ..bus import HostBus
from ..checks import whole
from ..config import HostConfig
from ..errors import (
    ClosedPortError,
    GmError,
    IdtRangeError,
    TooManyFlowsError,
    UnknownNodeError,
    UnknownPortError,
)
from ..memory import Buffer, PageAllocator
from .port import GmPort

__all__ = ["Gm"]

FlowName = tuple[int, int, int, int]
"""Source port, node, target port, priority."""


class Gm:
    """GM on one host. Raises ConfigError if the card is too small for GM.

    - `bus`: the bus to its NIC.
    - `nodes`: nodes that can be reached.
    - `nic`, `gm`: the configurations that the NIC and its firmware were started with.
    - `host`: the costs of calls.
    - `advanced_cycle`: when the host last took an event (the end of a send, a message, the answer to a command).
    """

    def __init__(
        self,
        bus: HostBus,
        *,
        nic: NicConfig,
        nodes: Iterable[int],
        gm: GmConfig | None = None,
        host: HostConfig | None = None,
    ) -> None:
        self.bus = bus
        self.nic = nic
        self.gm = GmConfig.for_nic(nic) if gm is None else gm
        self.host = HostConfig() if host is None else host
        self.nodes = sorted(nodes)
        self.layout = Layout(nic, self.gm)
        self.memory = PageAllocator(bus.memory)
        self._ports: dict[int, GmPort] = {}
        self._flows: set[FlowName] = set()
        self._closed: list[Callable[[int], None]] = []
        self._died: list[Callable[[int], None]] = []
        self._dead: set[int] = set()
        self.records: dict[str, Any] = {}
        """Records that processes of this host leave with the driver, by name. They live as long as the card's state
        does, which outlives the processes."""
        self.advanced_cycle = 0
        # Counts of posts to each port since the firmware started: they outlive closing and opening.
        self.counts = [Counts() for _ in range(self.gm.ports)]

    @property
    def node(self) -> int:
        """This node's number."""
        return self.bus.node

    @property
    def pending(self) -> int:
        """Messages on their way out, and commands without an answer, of all ports."""
        return sum(port.pending for port in self._ports.values())

    def state(self) -> list[str]:
        """Ports, tokens, messages on their way, a line each."""
        lines = [line for port in self._ports.values() for line in port.state()]
        return [f"gm library of node {self.node}:", *(f"  {line}" for line in lines)]

    def waiting(self) -> list[str]:
        """The things that its ports wait for, a few words each."""
        return [
            f"node {self.node} port {port.number}: {line}"
            for port in self._ports.values()
            for line in port.waiting()
        ]

    async def open_port(self, number: int) -> GmPort:
        """Open a port. It can be opened again after any error.

        Raises UnknownPortError, ArgumentTypeError, and GmError if the NIC refuses. Raises ClosedPortError if the port
        is not free, MemoryUseError if there is no room for its event ring.
        """
        number = whole("number", number)
        if not 0 <= number < self.gm.ports:
            raise UnknownPortError(f"node {self.node} has no port {number}: 0 to {self.gm.ports - 1}")
        if number in self._ports:
            raise ClosedPortError(f"port {number} of node {self.node} is open already: close it first")
        port = self._ports[number] = GmPort(self, number)
        try:
            await port._open()
        except GmError:
            self.forget(number)
            raise
        return port

    def port(self, number: int) -> GmPort:
        """The open port `number`, for the bandwidth manager, which sets the IDTs of other programs' flows. Raises
        ClosedPortError, ArgumentTypeError."""
        port = self._ports.get(whole("number", number))
        if port is None or not port.is_open:
            raise ClosedPortError(f"port {number} of node {self.node} is not open: open it first")
        return port

    def when_closed(self, callback: Callable[[int], None]) -> None:
        """Have `callback` called with a port's number whenever a port has been closed.

        It is closed by its program, or by the driver, which closes the ports of a program that has died.
        """
        self._closed.append(callback)

    def when_node_died(self, callback: Callable[[int], None]) -> None:
        """Have `callback` called with a node's number when it is found dead: by a message that failed with
        NodeDeadError, or by `node_died`.

        This happens once, until something of the node has been heard again.
        """
        self._died.append(callback)

    async def node_died(self, node: int) -> None:
        """Declare a node dead, for a caller who knows it otherwise. Raises UnknownNodeError, ArgumentTypeError.

        Messages to it fail with NodeDeadError, and receive tokens that messages of it hold are free.
        """
        node = whole("node", node)
        self._check_node(node)
        self.found_dead(node)
        for port in [*self._ports.values()]:
            if port.is_open:
                await port.node_died(node)

    def found_dead(self, node: int) -> None:
        """Note that a message failed, as its node is dead."""
        if node not in self._dead:
            self._dead.add(node)
            for callback in self._died:
                callback(node)

    def found_alive(self, node: int) -> None:
        """Note that a node has taken a message, or sent one."""
        self._dead.discard(node)

    async def spend(self, nanoseconds: int) -> None:
        """Let host CPU time pass."""
        cycles = self.cycles(nanoseconds)
        if cycles:
            await self.bus.sleep(cycles)

    def cycles(self, nanoseconds: int) -> int:
        """The NIC's cycles of so much of the host CPU's time."""
        return self.host.cycles(nanoseconds, self.nic)

    def check_target(self, port: int, node: int, target: int, priority: int) -> None:
        """Refuse a target that cannot be, and a flow that the rate control unit has no room for. Raises
        UnknownNodeError, UnknownPortError, TooManyFlowsError, ValueError for a priority."""
        self._check_node(node)
        if not 0 <= target <= 31:
            raise UnknownPortError(f"node {node} has no port {target}: port numbers are 0 to 31")
        if priority not in (0, 1):
            raise ValueError(f"priority = {priority}: 0 (low) or 1 (high)")
        flow = (port, node, target, priority)
        if self.gm.rate_controlled and flow not in self._flows and len(self._flows) >= self.nic.flows:
            raise TooManyFlowsError(
                f"node {self.node}: the flow from port {port} to port {target} of node {node}, priority "
                f"{priority}, would be number {len(self._flows) + 1}; its rate control unit holds "
                f"{self.nic.flows} flows"
            )

    def _check_node(self, node: int) -> None:
        if node not in self.nodes:
            known = ", ".join(map(str, self.nodes))
            raise UnknownNodeError(f"node {self.node} has no route to node {node}; it reaches {known}")

    def providing(self, buffer: Buffer) -> bool:
        """Whether some port has been given some of these bytes to receive in, and no message has come there yet."""
        return any(port.provides(buffer) for port in self._ports.values())

    def remember(self, port: int, node: int, target: int, priority: int) -> None:
        """Note that the NIC is about to be told of a flow that `check_target` has let pass: it has a place there
        now."""
        self._flows.add((port, node, target, priority))

    def check_idt(self, ticks: int, least_bytes: int | None = None) -> None:
        """Check an IDT. Raises IdtRangeError."""
        if not self.gm.rate_controlled:
            raise IdtRangeError(f"node {self.node} runs the unmodified control program: it has no IDT to set")
        if not 0 <= ticks <= self.nic.max_idt_ticks:
            raise IdtRangeError(f"IDT = {ticks} ticks: 0 to {self.nic.max_idt_ticks}")
        if least_bytes is None:
            return
        if self.gm.charge != "bytes":
            raise IdtRangeError(
                f"least_bytes = {least_bytes}: node {self.node} charges packets, whatever their bytes; it needs "
                "GmConfig.charge = 'bytes'"
            )
        if not 1 <= least_bytes <= self.nic.mtu_bytes:
            raise IdtRangeError(f"least_bytes = {least_bytes}: 1 to {self.nic.mtu_bytes}")

    def forget(self, port: int) -> None:
        """Free the places of a port's flows: it is closed."""
        del self._ports[port]
        self._flows = {flow for flow in self._flows if flow[0] != port}
        for callback in self._closed:
            callback(port)
