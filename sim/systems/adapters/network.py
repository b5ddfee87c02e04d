"""The adapter network inside its simulation: hosts, coroutines in Python, post and receive through adapters.

A host and its adapter share memory: a numpy array. Writes into the adapter's window pass through a ring
(`native/messages.cpp`), and completions are told through another one. One wake-up for all completions of a cycle is all
that reaches a host from the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import numpy as np
from lanikai.hdl.hca.driver_port import HCA_REGISTERS
from lanikai.hdl.hca.layout import CQ_BITS, WINDOW_WRITE

from ...energy.adapter_meter import AdapterMeter
from ...energy.flit_meter import FlitMeter
from ...energy.meter import ActivityMeter
from ...errors import SimulationError
from ...host.memory import PageAllocator
from ...inside import native_api
from ...inside.clock import Clocked, EventFlag
from ...inside.session import Session
from ...inside.wakes import Wakes
from ...inside.watchdog import Probe
from ...models.register_port import RegisterPort
from ...models.router_agent import RouterAgent
from ..base import System
from ..forwarding import write_forwarding_tables
from ..network_blocks import network_probes
from .config import AdapterNetworkConfig
from .node import COMMAND, EVENT

__all__ = ["AdapterHost", "AdapterNetwork"]

EVENT_SLOTS = 1 << 14
"""Most completions that wait to be told: more than there are in a cycle."""
_POST_CYCLES = 1
"""Cycles from a write of the host until the adapter has it: it has it in the next one."""
_NOW = (1 << 32) - 1
_ENTRY = Struct("<QQ")
_PUT, _TAKEN, _WAITS = 0, 1, 2
_LOST = 2
_QUEUE_OFFSET, _NODE_OFFSET = EVENT["queue"].offset, EVENT["node"].offset
_NOT_BEFORE = COMMAND["not_before"].offset
_WORD, _DATA = WINDOW_WRITE["word"].offset, WINDOW_WRITE["data"].offset
_NO_LOG = 256


class _Completed(EventFlag):
    """The flag of a completion queue. Somebody who waits for it sets its byte in `wanted`."""

    def __init__(self, wanted: memoryview, place: int) -> None:
        super().__init__()
        self._wanted, self._place = wanted, place

    def _register(self, func: Callable[[], object]) -> Any:
        self._wanted[self._place] = 1
        return super()._register(func)


class AdapterHost(Clocked):
    """The host of node `node`: its memory, and its end of the adapter's window and registers.

    - `memory`: all bytes, shared with the adapter. `pages`: hands out parts of them.
    - `registers`: the adapter's registers, for the driver.
    - `completed`: for each completion queue a flag that is set when an entry has been written, while somebody waits for
      it. Nobody is woken for other entries.
    """

    def __init__(self, node: int, network: AdapterNetwork) -> None:
        super().__init__(network.clock)
        config = network.config
        self.node = node
        self.memory = np.zeros(config.memory_bytes, np.uint8)
        self.pages = PageAllocator(self.memory)
        self.completed: list[EventFlag] = [
            _Completed(network.wanted, node << _NODE_OFFSET | queue << _QUEUE_OFFSET)
            for queue in range(config.hca.completion_queues)
        ]
        self.registers = RegisterPort(
            network.clock, HCA_REGISTERS, prefix="driver_", scope=f"{network.top}.node{node}"
        )
        self._network, self._slots = network, config.ring_slots
        self._watched = np.zeros(config.memory_bytes // 4, np.uint8)
        self._log = np.zeros(1 + 2 * _NO_LOG, np.uint32)
        native_api.attach_memory(node, self.memory, self._watched, self._log)
        self._entries = np.zeros((config.ring_slots, 2), np.uint64)
        self._control = np.zeros(3, np.uint64)
        native_api.attach_commands(node, self._entries, self._control)
        self._bytes, self._state = self._entries.data.cast("B"), self._control.data
        self._bells = network.bells.data
        self._room: EventFlag = self.flag()

    @property
    def now(self) -> int:
        """The cycle that it is."""
        return self._network.now

    @property
    def written(self) -> int:
        """Writes into the window that the adapter has not taken yet."""
        return int(self._state[_PUT] - self._state[_TAKEN])

    async def write(self, page: int, word: int, value: int, *, not_before: int | None = None) -> int:
        """Write `value` into word `word` of page `page` of the adapter's window. Returns the cycle of the write.

        `not_before`: a cycle until which the write is kept back (less than 2^31 ahead; later writes wait behind it).
        Waits while the ring is full.
        """
        state = self._state
        while state[_PUT] - state[_TAKEN] == self._slots:
            self._room.clear()
            state[_WAITS] = 1
            self._network.cramped.add(self)
            await self._room.wait()
        return self.write_now(page, word, value, not_before=not_before)

    def write_now(self, page: int, word: int, value: int, *, not_before: int | None = None) -> int:
        """As `write`, of a caller who knows that there is room. Raises SimulationError if there is none."""
        state = self._state
        put = state[_PUT]
        if put - state[_TAKEN] == self._slots:
            raise SimulationError(
                f"node {self.node}: {self._slots} writes into the adapter's window wait already"
            )
        when = self._network.now
        if not_before is not None and not_before > when:
            when = not_before
        entry = page | word << _WORD | value << _DATA | (when + _POST_CYCLES & _NOW) << _NOT_BEFORE
        _ENTRY.pack_into(self._bytes, put % self._slots * 16, entry & (1 << 64) - 1, entry >> 64)
        state[_PUT] = put + 1
        self._bells[self.node] = 1
        return when

    def make_room(self) -> bool:
        """Wake the coroutines that wait for room in the ring. Returns whether there is any."""
        if self._state[_WAITS]:
            return False
        self._room.set()
        return True


class AdapterNetwork(System[AdapterNetworkConfig]):
    """The adapter network inside its simulation. It has the members of every `System`, too.

    - `hosts`: its hosts.
    - `cramped`: the hosts that wait for room in their rings.
    - `bells`: a byte a node, which wakes it to look into its ring.
    - `wanted`: a byte for each completion queue of each node: somebody waits for it.

    It ends the simulation with SimulationError if the tidings of a completion are lost, or if nothing has moved for
    `config.watchdog_cycles` though something is under way.
    """

    def __init__(self, config: AdapterNetworkConfig, session: Session) -> None:
        super().__init__(config, session)
        nodes = len(config.network.nodes)
        self.cramped: set[AdapterHost] = set()
        self._ahead = 0  # cycles of the design that simulated time has not seen
        events, control = np.zeros(2 * EVENT_SLOTS, np.uint64), np.zeros(3, np.uint64)
        native_api.attach_events(events.reshape(-1, 2), control)
        # Items of memory views cost a third of those of arrays; they keep them alive.
        self._entries, self._state = events.data, control.data
        self.bells = np.zeros(-(-nodes // 8) * 8, np.uint8)
        native_api.attach_bells(self.bells)
        wanted = np.zeros(1 << EVENT["queue"].offset + CQ_BITS, np.uint8)
        native_api.attach_wanted(wanted)
        self.wanted = wanted.data
        self.hosts = [AdapterHost(node, self) for node in range(nodes)]
        self._wakes = wakes = Wakes()
        self._told = wakes.change(native_api.signal("wake")).number
        wakes.always(self._told, self.clock.guarded(self._serve))
        self.clock.use(wakes)
        wakes.arm(self._told)
        self.watch()

    @property
    def top(self) -> str:
        """The top module's name."""
        return self._top

    @property
    def now(self) -> int:
        """Cycles that the design has run: simulated time, and the cycles that `bare` ran besides."""
        return self.clock.cycle + self._ahead

    @property
    def told(self) -> int:
        """Completions that Python has been told of, as somebody waited for their queues."""
        return int(self._state[_TAKEN])

    def bare(self, cycles: int) -> float:
        """Run `cycles` of the design without Python or VPI, what hosts have posted for them included. Returns the
        seconds of processor time it took. Simulated time stands still, `now` does not."""
        took = native_api.bare_seconds(cycles)
        self._ahead += cycles
        self._deliver()
        return took

    async def prepare(self) -> None:
        """Write the routers' forwarding tables, if they go by them."""
        await write_forwarding_tables(self.clock, self.config.network, top=self._top, composed=True)
        self.limit_watchdog(self.config.watchdog_cycles)

    def probes(self) -> list[Probe]:
        """VL state of all routers."""
        return network_probes(self.config.network)

    def agent(self, router: int) -> RouterAgent:
        """The agent's port of a router. The network's routers have `management` or `activity_counters`."""
        instance = f"{self._top}.network.router{router}"
        return RouterAgent(self.clock, self.config.network.router, router, instance=instance)

    def activity_meter(self) -> ActivityMeter:
        """A meter of the routers' activity from now on. Raises SimulationError without `activity_counters`."""
        return ActivityMeter(self.config.network, self.clock, top=self._top)

    def adapter_meter(self) -> AdapterMeter:
        """A meter of the adapters' activity from now on. Raises SimulationError without `activity_counters`."""
        return AdapterMeter(self.config.hca, self.clock, nodes=len(self.hosts), top=self._top)

    def flit_meter(self) -> FlitMeter:
        """A meter of what passes links and buses. Raises SimulationError without `config.tally`."""
        if not self.config.tally:
            raise SimulationError("nothing counts what passes links: AdapterNetworkConfig.tally = False")
        return FlitMeter(self.config.network, top=self._top)

    @property
    def settled(self) -> bool:
        """Whether nothing is under way in any adapter, and no host has written anything that is not taken."""
        return bool(native_api.signal("settled").get()) and not any(host.written for host in self.hosts)

    async def settle(self, *, poll_cycles: int = 100, limit_cycles: int = 1_000_000) -> None:
        """Return when nothing is under way, within `poll_cycles`.

        Raises SimulationError after `limit_cycles`, or if a router dropped a packet or holds something.
        """
        until = self.clock.cycle + limit_cycles
        while not self.settled:
            if self.clock.cycle >= until:
                raise SimulationError(f"after {limit_cycles} cycles something is still under way")
            await self.clock.sleep(poll_cycles)
        if dropped := native_api.signal("dropped").get():
            raise SimulationError(f"routers dropped {dropped} packets")
        if stuck := self.stuck():
            raise SimulationError(f"nothing is under way at the adapters, but routers hold: {stuck}")

    def _serve(self) -> None:
        """Serve all rings: some ring has something for Python."""
        self._wakes.arm(self._told)
        self._deliver()
        if self.cramped:
            self.cramped = {host for host in self.cramped if not host.make_room()}

    def _deliver(self) -> None:
        """Set the flags of all completions in the ring."""
        state, entries = self._state, self._entries
        put = state[_PUT]
        for place in range(state[_TAKEN], put):
            low = entries[place % EVENT_SLOTS * 2]
            self.wanted[low] = 0
            self.hosts[low >> _NODE_OFFSET & 0xFFFF].completed[low >> _QUEUE_OFFSET & 0xFF].set()
        state[_TAKEN] = put
        if state[_LOST]:
            raise SimulationError(f"{state[_LOST]} events were lost: more than {EVENT_SLOTS} waited")
