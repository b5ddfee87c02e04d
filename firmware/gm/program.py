"""The GM control program of one NIC: what its state machines share, and how it starts.

There are four state machines as in gulati-thesis-2001 4.1. They are coroutines on one `Processor`:

- SDMA (`sdma`): host memory to transmit buffers. Its other half `intake` takes the host's descriptors and commands.
- SEND (`send`): transmit buffers to the network.
- RECV (`recv`): network to receive buffers.
- RDMA (`rdma`): receive buffers and events to host memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from lanikai.hdl.config import ConfigError, NicConfig

from ..costs import GM_COSTS, CostTable
from ..ports import CardPorts
from ..processor import Processor
from ..program import FirmwareProgram
from .config import GmConfig
from .engine import HostDma
from .intake import Intake
from .layout import NO_TOKEN, Event, EventKind, Layout, ReceiveDescriptor, Status
from .queues import ConnectionQueue
from .rdma import Rdma
from .recv import Recv
from .sdma import Sdma
from .send import Send
from .state import Connection, Flow, Get, Port, SendStream, SendToken
from .status import describe, describe_flow
from .timers import Timers
from .wire import INCARNATIONS, FlowKey, newer

__all__ = ["GmProgram"]


class GmProgram(FirmwareProgram[GmConfig]):
    """The control program of `node`. The arguments are those of `FirmwareProgram`.

    - `routes`: a message to a node without one fails.
    - `gm`: the configuration.
    - `incarnation`: how often the node has been started before, so that others know it anew. Up to three starts may go
      by between two packets to one of them.
    - `ports`, `connections`, `queue`, `flows` (by number in the rate control unit): its memory.
    - `dispatched`: called with (cycle, node, flow key) for every new packet that SDMA chooses, for dispatch records as
      in thesis 5.6.
    - `advanced_cycle`: the cycle in which a packet's bytes were last taken from the network for a message, or a message
      sent from here last ended.

    Raises ConfigError for routes or sizes that do not fit.
    """

    Config = GmConfig
    default_costs = GM_COSTS
    speaks = "gm"

    def __init__(
        self,
        card: CardPorts,
        *,
        node: int,
        nic: NicConfig,
        routes: Mapping[int, int],
        config: GmConfig | None = None,
        costs: CostTable | None = None,
        incarnation: int = 0,
    ) -> None:
        super().__init__(card, node=node, nic=nic, routes=routes, config=config, costs=costs)
        self.incarnation = incarnation % INCARNATIONS
        self.gm = self.config
        for name in ("resend_ticks", "pause_ticks"):
            if getattr(self.gm, name) > nic.max_idt_ticks:
                raise ConfigError(
                    f"GmConfig.{name} = {getattr(self.gm, name)}: at most {nic.max_idt_ticks}, a quarter "
                    "of the real-time clock's range"
                )
        self.layout = Layout(nic, self.gm)
        self.processor = Processor(self.only_processor(), self.costs)
        self.host_dma = HostDma(self.processor.port.flag)
        self.ports = [Port(number) for number in range(self.gm.ports)]
        self.connections: dict[int, Connection] = {}
        self.queue = ConnectionQueue(self.gm.discipline)
        self.flows: dict[int, Flow] = {}
        self.dispatched: Callable[[int, int, FlowKey], None] | None = None
        self.gets = 0
        self.timers = Timers(self)
        self.intake = Intake(self)
        self.sdma = Sdma(self)
        self.send = Send(self)
        self.recv = Recv(self)
        self.rdma = Rdma(self)

    @classmethod
    def default_config(cls, nic: NicConfig) -> GmConfig:
        """Sizes that fit the card."""
        return GmConfig.for_nic(nic)

    def start(self) -> None:
        """Spawn the state machines and the idle loop."""
        scheduler = self.processor.port
        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "recv": self.recv.run,
            "send": self.send.run,
            "rdma": self.rdma.run,
            "timers": self.timers.run,
            "intake": self.intake.run,
            "sdma": self.sdma.run,
            "idle": self._boot,
        }
        for name, loop in loops.items():
            scheduler.spawn(loop(), f"gm[{self.node}].{name}")  # type: ignore[arg-type]

    def connection(self, node: int) -> Connection:
        """The connection to a node that has a route, made when first needed."""
        if node not in self.connections:
            self.connections[node] = Connection(node, self.routes[node], self.gm.window_packets)
        return self.connections[node]

    def flow(self, node: int, key: FlowKey) -> Flow | None:
        """The flow to a node, made with the lowest free number when first needed.

        None if the rate control unit has no number left. The unmodified program has as many flows as wanted.
        """
        connection = self.connection(node)
        for flow in connection.flows:
            if flow.key == key:
                return flow
        number = next(n for n in range(len(self.flows) + 1) if n not in self.flows)
        if self.gm.rate_controlled and number >= self.nic.flows:
            return None
        flow = Flow(key, connection, number)
        self.flows[number] = flow
        connection.flows.append(flow)
        return flow

    @property
    def pending(self) -> int:
        """Messages on their way out."""
        return sum(connection.tokens for connection in self.connections.values())

    def advance(self) -> None:
        """A packet has been delivered, or a message has ended."""
        self.advanced_cycle = self.processor.port.cycle

    def state(self) -> list[str]:
        """Its state, a line each: the things that it holds and waits for."""
        return describe(self)

    def waiting(self) -> list[str]:
        """Its flows that have messages, a few words each."""
        flows = [flow for flow in self.flows.values() if flow.sendable or flow.awaiting]
        return [f"node {self.node} {describe_flow(flow)}" for flow in flows]

    def complete(self, token: SendToken, status: Status) -> None:
        """A send token goes home to its port, with the event that says so."""
        flow = token.flow
        (flow.awaiting if token in flow.awaiting else flow.sendable).remove(token)
        connection = flow.connection
        connection.tokens -= 1
        if not connection.tokens:
            self.queue.remove(connection)
        token.status = status
        self.advance()
        port = self.ports[flow.key.source_port]
        if token.get is None and token.descriptor.token != NO_TOKEN:
            self.sent_event(port, token.descriptor.token, status)
        elif token.get is not None and status is not Status.OK:
            self.end_get(port, token.get, status)

    def end_get(self, port: Port, get: Get, status: Status) -> None:
        """A GET ends without all of its bytes, unless it has ended already."""
        number = get.descriptor.token
        if port.gets.get(number) is get:
            del port.gets[number]
            for name, assembly in [*port.assemblies.items()]:
                if assembly.get is get:  # its memory is its process's again
                    del port.assemblies[name]
            self.advance()
            self.sent_event(port, number, status)

    def enqueue(self, token: SendToken) -> None:
        """A message waits to go out."""
        flow = token.flow
        flow.sendable.append(token)
        flow.connection.tokens += 1
        self.queue.add(flow.connection)
        self.sdma.look_at(flow)

    def abort(self, token: SendToken, status: Status) -> None:
        """End a message that is under way.

        The packets of it that have gone out may arrive. A packet behind them says that nothing more will come.
        """
        stream = token.flow.stream
        if token.packets and token in token.flow.sendable:
            packet = stream.append(token, 0)
            stream.resend.append(packet)
        self.complete(token, status)
        self.sdma.look_at_stream(stream)

    def give_up(self, stream: SendStream) -> None:
        """No answer has come for as long as `GmConfig` bounds.

        The messages of the stream of which packets are under way fail, as nobody can tell whether they have arrived. If
        the node was silent towards all, it is dead.
        """
        if stream.connection.silent_looks * self.gm.resend_ticks >= stream.stuck_ticks:
            self.node_died(stream.connection)
            return
        flow = stream.flow
        stream.begin_anew()
        stream.forgive()
        if flow is not None:
            for token in flow.begun:
                self.complete(token, Status.TIMED_OUT)
            self.sdma.look_at(flow)

    def node_died(self, connection: Connection) -> None:
        """All messages to a node fail. Those that come from it are forgotten, and their receive tokens are free."""
        for flow in connection.flows:
            for token in flow.tokens:
                self.complete(token, Status.NODE_DEAD)
            flow.paused_until_ticks = None
            self.sdma.look_at(flow)
        self._end_streams(connection)

    def heard(self, connection: Connection, incarnation: int) -> bool:
        """A packet has come from a node. Returns whether it is one of its present incarnation.

        A node that has been started again knows nothing of the messages that were under way.
        """
        if connection.incarnation is not None and incarnation != connection.incarnation:
            if not newer(incarnation, connection.incarnation):
                return False
            self._restarted(connection)
        connection.incarnation = incarnation
        connection.silent_looks = 0
        connection.doubted = None
        return True

    async def believe(self, connection: Connection, incarnation: int) -> bool:
        """Inside a step: a packet is of another incarnation of a node, and not of one of the next three.

        Returns whether it is the present one nevertheless. It is if nothing else has come of the node since the first
        such packet for half of `GmConfig.send_timeout_ticks`. That is longer than any copy is late, so more starts than
        three were not seen here.
        """
        now = await self.timers.now()
        modulus = 1 << self.nic.rtc_bits
        if connection.doubted is None or connection.doubted[0] != incarnation:
            connection.doubted = incarnation, now
        if (now - connection.doubted[1]) % modulus < min(self.gm.send_timeout_ticks, modulus) // 2:
            return False
        self._restarted(connection)
        connection.incarnation, connection.silent_looks, connection.doubted = incarnation, 0, None
        return True

    def _restarted(self, connection: Connection) -> None:
        for flow in connection.flows:
            for token in flow.begun:
                self.complete(token, Status.NODE_DEAD)
            flow.paused_until_ticks = None
            self.sdma.look_at(flow)
        self._end_streams(connection)
        connection.receive.clear()

    def _end_streams(self, connection: Connection) -> None:
        """Streams to a node begin anew, and messages that came of it only in part are forgotten.

        Messages that came whole are not, so that a node that was only out of reach cannot bring them again.
        """
        for stream in connection.send.values():
            stream.begin_anew()
            stream.forgive()
        for port in self.ports:
            for node, key in [*port.assemblies]:
                if node == connection.node:
                    self.abandon(port, node, key)
            for flow in [flow for flow in port.refused if flow[0] == connection.node]:
                del port.refused[flow]
            for get in [*port.gets.values()]:
                if get.descriptor.node == connection.node:
                    self.end_get(port, get, Status.NODE_DEAD)

    def abandon(self, port: Port, node: int, key: FlowKey) -> None:
        """A message will not be completed: its receive token, if it has one, is the next to be used."""
        assembly = port.assemblies.pop((node, key), None)
        if assembly is not None and assembly.token is not None:
            port.receive_tokens[key.priority].appendleft(assembly.token)
            self.token_available(port, assembly.token)

    def token_available(self, port: Port, token: ReceiveDescriptor) -> None:
        """Tell the flow that was refused one like it first."""
        waiting = port.waiting_for(token)
        if waiting is not None:
            node, key = waiting
            connection = self.connection(node)
            connection.receiving(key).available = True
            self.send.acknowledge(connection, key)

    def sent_event(self, port: Port, token: int, status: Status) -> None:
        """Tell a port how the message of a send token ended."""
        self.rdma.post(port, Event(kind=EventKind.SENT, status=status, token=token))

    async def _boot(self) -> None:
        async with self.processor.step("dispatch"):
            await self.processor.carry_out(self.recv.arm())
            await self.processor.enable("receive", "send", "host_dma", "timer", "doorbell")
        await self.processor.idle_loop()
