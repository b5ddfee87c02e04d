"""The driver of an adapter: the part of the operating system that gives processes their parts of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lanikai.hdl.config import HcaConfig
from lanikai.hdl.hca.layout import CQE_BYTES, LIFE_BITS, RECEIVE_WQE_BYTES, SEND_WQE_BYTES
from lanikai.hdl.nic.owners.protection import KEY_BITS
from lanikai.hdl.nic.owners.translation import Scope

from ...vl_table import Rows, entry_writes
from ..kit.address_space import AddressSpace, VirtualBuffer
from ..memory import Buffer
from .completion_queue import CompletionQueue
from .element_page import ElementPage
from .errors import HcaError
from .port import AdapterPort
from .queue_pair import QueuePair
from .region import Region

__all__ = ["HcaDriver"]

CLOSE_CYCLES = 1_000_000
"""Wait for a closed queue pair's last messages: as long as a router's agent waits for a packet to leave."""
CLOSE_LOOK_CYCLES = 10
"""Time between two looks at it."""
DRIVER_OWNER = 0
"""The driver's own page of the window."""
LIVES = 1 << LIFE_BITS
_ROUTE_LOW_BITS = 32
_MOST_LOG2 = 15
"""A ring has 2^15 entries at most, so that its running index of 16 bits tells a full one from an empty one."""


class HcaDriver:
    """The driver of one host's adapter.

    - `port`: the host. `config`: that of its adapter.
    - `queue_pairs`, `completion_queues`: those handed out, by their numbers.

    Rings are zeroed when they are handed out. Numbers of queue pairs and completion queues are given by the caller, or
    the lowest free one is taken. Calls are made by one coroutine at a time.
    """

    def __init__(self, port: AdapterPort, config: HcaConfig) -> None:
        self.port, self.config = port, config
        self.queue_pairs: dict[int, QueuePair] = {}
        self.completion_queues: dict[int, CompletionQueue] = {}
        self._regions: dict[int, Region] = {}
        self._keys = [0] * config.regions
        self._lives = [0] * config.queue_pairs
        self._told_in: dict[int, set[int]] = {}  # completion queues of each queue pair
        self._spaces: dict[int, AddressSpace] = {}
        self._pages: dict[int, ElementPage] = {}

    async def start(self, routes: Mapping[int, int]) -> None:
        """Set the route to each node that can be reached."""
        registers = self.port.registers
        for node, route in routes.items():
            await registers.write("ROUTE_SELECT", node=node)
            await registers.write("ROUTE_LOW", route=route & (1 << _ROUTE_LOW_BITS) - 1)
            await registers.write("ROUTE_SET", known=1, route=route >> _ROUTE_LOW_BITS)

    async def write_tables(
        self,
        *,
        high: Sequence[tuple[int, int]],
        low: Sequence[tuple[int, int]],
        limit: int = 255,
        before: Rows | None = None,
    ) -> None:
        """Write the VL arbitration tables of the adapter's link, rows of (VL, weight), and let them take effect.

        `before`: those that were written last, if nobody has written others since: only entries that differ are
        written. Raises HcaError for rows that do not fit.
        """
        entries = self.config.vl_table_entries
        for name, rows in (("high", high), ("low", low)):
            if len(rows) > entries:
                raise HcaError(f"VL tables: {name} has {len(rows)} entries: at most {entries}")
        registers = self.port.registers
        for fields in entry_writes((high, low), entries, before):
            await registers.write("VL_TABLE_ENTRY", **fields)
        await registers.write("VL_TABLE_COMMIT", limit=limit)

    async def create_completion_queue(self, *, owner: int, entries: int) -> CompletionQueue:
        """A completion queue of a process. `entries`: a power of two, 2 to 32768. Raises HcaError if there is none
        left."""
        log2 = _log2("entries", entries, 1, _MOST_LOG2)
        number = self._free("completion queues", self.completion_queues, self.config.completion_queues)
        ring = self._ring(entries * CQE_BYTES)
        queue = CompletionQueue(self.port, number=number, owner=owner, ring=ring, entries_log2=log2)
        await self._set_up(queue, entries_log2=log2)
        self.completion_queues[number] = queue
        return queue

    async def renew(self, queue: CompletionQueue) -> None:
        """Make a completion queue anew, empty, for example after an overrun: entries that were not read are lost.

        Its queue pairs are closed before, as nobody knows which of their elements have ended. Raises HcaError if one of
        them is open.
        """
        users = sorted(number for number, queues in self._told_in.items() if queue.number in queues)
        if users:
            raise HcaError(
                f"node {self.port.node}, completion queue {queue.number}: queue pair {users[0]} tells of its ends in "
                "it: close it before the queue is made anew"
            )
        # Switched off, it waits for entries that are on their way to the old ring.
        await self._set_up(queue, entries_log2=0)
        queue.ring.data[:] = 0
        await self._set_up(queue, entries_log2=queue.entries.bit_length() - 1)
        queue.begin_anew()

    async def _set_up(self, queue: CompletionQueue, *, entries_log2: int) -> None:
        registers = self.port.registers
        await registers.write("CQ_SELECT", queue=queue.number)
        await registers.write("CQ_OWNER", owner=queue.owner)
        await registers.write("CQ_RING", entries_log2=entries_log2, base=queue.ring.start >> 4)

    async def create_queue_pair(
        self,
        *,
        owner: int,
        traffic_class: int,
        vls: Iterable[int],
        send_completions: CompletionQueue,
        receive_completions: CompletionQueue,
        send_entries: int,
        receive_entries: int = 1,
        peer: tuple[int, int] | tuple[int, int, int] | None = None,
        life: int | None = None,
    ) -> QueuePair:
        """A queue pair of a process, open.

        - `vls`: virtual lanes that it may send on.
        - `send_entries`, `receive_entries`: powers of two, 1 to 32768: elements that its rings hold. The former at most
          `most_send_entries`.
        - `peer`: node, queue pair and its life (0 if it is left out) that it is connected to; None: it names the
          receiver in each message, of one packet.
        - `life`: senders name it, and packets that name another one are dropped. None: 0 for the first queue pair with
          its number, and one more, modulo 2^8, for each next one. So late packets for an earlier one are not taken.

        Raises HcaError for what the adapter does not have.
        """
        config = self.config
        if not 0 <= traffic_class < config.classes:
            raise HcaError(f"traffic_class = {traffic_class}: 0 to {config.classes - 1}")
        mask = 0
        for vl in vls:
            if not 0 <= vl < config.link.vls:
                raise HcaError(f"vls: VL {vl}: 0 to {config.link.vls - 1}")
            mask |= 1 << vl
        send_log2 = _log2("send_entries", send_entries, 0, self.most_send_entries.bit_length() - 1)
        receive_log2 = _log2("receive_entries", receive_entries, 0, _MOST_LOG2)
        number = self._free("queue pairs", self.queue_pairs, config.queue_pairs)
        posted = config.wqe == "posted"
        send = None if posted else self._ring(send_entries * SEND_WQE_BYTES)
        receive = self._ring(receive_entries * RECEIVE_WQE_BYTES)
        page = await self._page(owner) if posted else None
        pair = QueuePair(
            self.port,
            number=number,
            owner=owner,
            life=self._lives[number] if life is None else life % LIVES,
            send_ring=send,
            send_log2=send_log2,
            receive_ring=receive,
            receive_log2=receive_log2,
            page=page,
        )
        node, remote, *lives = peer or (0, 0)
        registers = self.port.registers
        await registers.write("QP_SELECT", qp=number)
        await registers.write(
            "QP_OWNER",
            owner=owner,
            traffic_class=traffic_class,
            send_queue=send_completions.number,
            receive_queue=receive_completions.number,
        )
        await registers.write("QP_SEND_RING", entries_log2=send_log2, base=send.start >> 5 if send else 0)
        await registers.write("QP_RECEIVE_RING", entries_log2=receive_log2, base=receive.start >> 4)
        await registers.write("QP_PEER", destination=node, destination_qp=remote, connected=peer is not None)
        await registers.write("QP_LIFE", life=pair.life, destination_life=lives[0] if lives else 0)
        await registers.write("QP_VLS", vls=mask)
        await registers.write("QP_COMMAND", open=1)
        self._told_in[number] = {send_completions.number, receive_completions.number}
        self.queue_pairs[number] = pair
        send_completions.queue_pairs[number] = pair
        return pair

    async def close(self, pair: QueuePair, *, within_cycles: int = CLOSE_CYCLES) -> None:
        """Close a queue pair. What waits in it is dropped; return when nothing of it is under way any more.

        Raises HcaError if something still is after `within_cycles`, as the network stands. The queue pair is closed
        then, but its number and its rings stay in use; close it again to wait longer.
        """
        registers = self.port.registers
        await registers.write("QP_SELECT", qp=pair.number)
        await registers.write("QP_COMMAND", open=0)
        began = self.port.now
        while (await registers.read("QP_COMMAND"))["busy"]:
            if self.port.now - began >= within_cycles:
                raise HcaError(
                    f"node {self.port.node}, queue pair {pair.number}: closed, but its messages have not left for "
                    f"{within_cycles} cycles: the network takes none of them; close it again to wait longer"
                )
            await self.port.sleep(CLOSE_LOOK_CYCLES)
        for queue in self.completion_queues.values():
            queue.queue_pairs.pop(pair.number, None)
        del self.queue_pairs[pair.number], self._told_in[pair.number]
        self._lives[pair.number] = (pair.life + 1) % LIVES
        for ring in (pair.send_ring, pair.receive_ring):
            if ring:
                self.port.pages.release(ring)
        if not any(other.owner == pair.owner for other in self.queue_pairs.values()):
            self._pages.pop(pair.owner, None)

    def allocate(self, owner: int, length: int) -> VirtualBuffer:
        """Virtual memory of a process. Raises MemoryUseError if there is no room."""
        if owner not in self._spaces:
            self._spaces[owner] = AddressSpace(self.port.pages)
        return self._spaces[owner].allocate(length)

    async def register(self, owner: int, buffer: VirtualBuffer, *, writable: bool = True) -> Region:
        """Register a process' memory. Its number gets another key than before. Raises HcaError if none is left."""
        number = self._free("regions", self._regions, self.config.regions)
        self._keys[number] = key = (self._keys[number] + 1) % (1 << KEY_BITS)
        table = self.port.pages.allocate(4 * len(buffer.pages))
        for i, page in enumerate(buffer.pages):
            table.write((page.start | 1).to_bytes(4, "little"), 4 * i)
        registers = self.port.registers
        await registers.write("REGION_SELECT", region=number)
        await registers.write("REGION_START", address=buffer.start)
        await registers.write("REGION_BYTES", bytes=buffer.length)
        await registers.write("REGION_TABLE", address=table.start)
        await registers.write("INVALIDATE", scope=Scope.REGION, region=number, page=0)
        await registers.write("REGION_SET", valid=1, writable=writable, key=key, owner=owner)
        region = Region(number, key, buffer, table)
        self._regions[number] = region
        return region

    async def deregister(self, region: Region) -> None:
        """Take a region's memory away from the adapter."""
        registers = self.port.registers
        await registers.write("REGION_SELECT", region=region.number)
        await registers.write("REGION_SET", valid=0, writable=0, key=0, owner=0)
        await registers.write("INVALIDATE", scope=Scope.REGION, region=region.number, page=0)
        self.port.pages.release(region.table)
        del self._regions[region.number]

    @property
    def most_send_entries(self) -> int:
        """Most elements of a send ring: those that the adapter has room for, where elements are posted."""
        return self.config.posted_entries if self.config.wqe == "posted" else 1 << _MOST_LOG2

    async def _page(self, owner: int) -> ElementPage:
        """The element page of a process, cleared before its first queue pair."""
        if owner not in self._pages:
            page = ElementPage(self.port, owner)
            await page.clear()
            self._pages[owner] = page
        return self._pages[owner]

    def _ring(self, length: int) -> Buffer:
        ring = self.port.pages.allocate(length)
        ring.data[:] = 0
        return ring

    def _free(self, things: str, used: Mapping[int, object], count: int) -> int:
        for number in range(count):
            if number not in used:
                return number
        raise HcaError(f"node {self.port.node}: all {count} {things} of the adapter are in use")


def _log2(name: str, value: int, least: int, most: int) -> int:
    """The logarithm of a power of two. Raises HcaError for another number, or one that is too small or too large."""
    log2 = value.bit_length() - 1
    if value < 1 or value != 1 << log2 or not least <= log2 <= most:
        raise HcaError(f"{name} = {value}: a power of two, {1 << least} to {1 << most}")
    return log2
