"""The stages that messages out and in have in common: look up, fetch a descriptor, move data, tell the end.

Each is written once, for every design. None assumes an order among messages, or that it is the only one under way.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.nic.owners.completion_layout import CompletionStatus

from ..accesses import AccessList
from ..work_queue.layout import pack_descriptor_number
from .config import WORD_BYTES
from .descriptor import (
    CONTROL_BYTES,
    SEGMENT_BYTES,
    STATUS_OFFSET,
    Control,
    Descriptor,
    Segment,
)
from .engines import Engines, Move, Post, Transfer, pages
from .layout import RECORD_WORDS, ViRecord
from .shadow import SHADOW_BYTES, SHADOW_SLOTS, unpack_shadow
from .state import COUNTS, Inbound, Key, Outgoing, Vi, ViaContext, WorkQueue
from .trace import Stage

__all__ = ["Stages"]

FIRST_WORD = 3
"""The first word of a descriptor that the card looks at: SegCount and Control. Next and NextHandle come before."""


class Stages:
    """The stages, for the coroutines of the processor of `engines`."""

    def __init__(self, context: ViaContext, engines: Engines) -> None:
        self.context, self.engines = context, engines
        self.processor, self.layout = engines.processor, context.layout
        self.nic = context.nic

    async def look_up(self, vi: Vi) -> ViRecord | None:
        """Inside a step: the agent's record of a VI; None if nothing may come or go by it."""
        accesses = AccessList()
        words = accesses.load(self.layout.record(vi.channel), RECORD_WORDS)
        await self.processor.carry_out(accesses)
        return vi.look(ViRecord.unpack([word.get() for word in words]))

    def slot(self, queue: WorkQueue, record: ViRecord, index: int) -> int:
        """The host address of a descriptor."""
        ring = record.receive_ring if queue.receive else record.send_ring
        return ring + self.layout.form.slot_bytes * (index % self.context.config.queue_entries)

    async def descriptor(
        self, queue: WorkQueue, record: ViRecord, index: int, key: Key, *, stamp: int | None = None
    ) -> tuple[Descriptor, CompletionStatus]:
        """Stages 3 and 4, and the first part of 5: a descriptor, and whether it is a good one.

        It is in its queue's shadow, or its data came behind those of the message before, or it is fetched. The status
        is the bus's if it could not be read; else that of `Descriptor.refusal`.
        """
        status = CompletionStatus.OK
        shadow = record.receive_shadow if queue.receive else record.send_shadow
        if shadow:
            begin = self.context.clock()
            found = await self._shadow(shadow, index, "process_receive" if queue.receive else "process")
            if found is not None:
                self._processed(key, begin)
                return found, found.refusal(self.layout.form, receive=queue.receive)
        at = self.layout.staged(queue.channel, receive=queue.receive)
        if queue.staged != index:
            status = await self.engines.move(self.fetching(queue, record, index, key, stamp=stamp))
        begin = self.context.clock()
        found = await self._unpack(at, "process_receive" if queue.receive else "process")
        self._processed(key, begin)
        if status == CompletionStatus.OK:
            status = found.refusal(self.layout.form, receive=queue.receive)
        return found, status

    def _processed(self, key: Key, begin: int) -> None:
        trace = self.context.trace
        trace.span(trace.message(key.channel, key.index, receive=key.receive), Stage.PROGRAM_DATA, begin)

    async def shadowed(self, shadow: int, index: int) -> bool:
        """Whether a queue's shadow has its descriptor `index`."""
        accesses = AccessList()
        (number,) = accesses.load(shadow + SHADOW_BYTES * (index % SHADOW_SLOTS) + SHADOW_BYTES - WORD_BYTES)
        async with self.processor.step("look", accesses=accesses):
            return number.get() == index % COUNTS + 1

    async def _shadow(self, shadow: int, index: int, step: str) -> Descriptor | None:
        """The descriptor in a queue's shadow; None if its slot has another one, as the process wrote none.

        That costs the loads alone: the step is spent for a descriptor.
        """
        accesses = AccessList()
        words = accesses.load(shadow + SHADOW_BYTES * (index % SHADOW_SLOTS), SHADOW_BYTES // WORD_BYTES)
        async with self.processor.step(step, 0, accesses=accesses):
            found = unpack_shadow([word.get() for word in words], index)
            if found is not None:
                await self.processor.spend(**{step: 1})
        return found

    async def data(
        self, message: Outgoing, record: ViRecord, pieces: Sequence[Segment], at: int, *, last: bool
    ) -> CompletionStatus:
        """Stages 5 and 6 of a packet of a message to send: its data come down to `at`.

        With the `last` ones comes the next descriptor of the queue, where descriptors tailgate (4.3.9). Its doorbell
        has been taken, so it was in memory before. It is fetched by itself if anything of the list goes wrong.
        """
        vi, then = message.vi, list[Move]()
        if last and pieces and self.tailgates(vi, len(pieces)):
            then.append(self.fetch(vi.send, record, vi.send.taken))
        status = await self.move(
            vi,
            pieces,
            at,
            key=message.key,
            to_host=False,
            step="program_data",
            then=then,
            stamp=message.stamp,
        )
        if then and status != CompletionStatus.OK and not message.gone:
            vi.send.staged = None
        return status

    def tailgates(self, vi: Vi, pieces: int) -> bool:
        """Whether the next descriptor of a VI is to come with so many pieces of data."""
        queue = vi.send
        return (
            self.context.config.descriptors == "tailgated"
            and queue.waiting > 0
            and queue.staged != queue.taken
            and pieces < self.nic.host_dma_queue_entries
        )

    def fetch(self, queue: WorkQueue, record: ViRecord, index: int) -> Move:
        """The move that brings a descriptor to its place in the SRAM. The ring is the agent's word: no check."""
        queue.staged = index
        return Move(
            address=self.slot(queue, record, index),
            sram=self.layout.staged(queue.channel, receive=queue.receive),
            bytes=self.layout.form.slot_bytes,
            to_host=False,
        )

    def fetching(
        self, queue: WorkQueue, record: ViRecord, index: int, key: Key, *, stamp: int | None = None
    ) -> Transfer:
        """Stages 3 and 4: the transfer that fetches a descriptor by itself."""
        return Transfer(
            moves=[self.fetch(queue, record, index)],
            step="program_descriptor",
            key=key,
            stages=(Stage.PROGRAM_DESCRIPTOR, Stage.DESCRIPTOR),
            stamp=stamp,
        )

    async def _unpack(self, at: int, step: str) -> Descriptor:
        """Read those words of a descriptor in the SRAM that say something."""
        form = self.layout.form
        content = bytearray(form.slot_bytes)
        first = AccessList()
        head = first.load(at + WORD_BYTES * FIRST_WORD, CONTROL_BYTES // WORD_BYTES - FIRST_WORD - 1)
        async with self.processor.step(step, accesses=first):
            put(content, FIRST_WORD, [word.get() for word in head])
            count, control = head[0].get() & 0xFFFF, head[0].get() >> 16
            rest = AccessList()
            begin = CONTROL_BYTES // WORD_BYTES
            if form.area_bytes and control & Control.IMMEDIATE:
                size = min(head[1].get(), form.area_bytes)
                area = rest.load(at + CONTROL_BYTES, -(-size // WORD_BYTES))
            else:
                area = []
            segments_at = form.segments_offset // WORD_BYTES
            most = (form.slot_bytes - form.segments_offset) // SEGMENT_BYTES
            segments = rest.load(at + form.segments_offset, min(count, most) * SEGMENT_BYTES // WORD_BYTES)
            await self.processor.carry_out(rest)
        put(content, begin, [word.get() for word in area])
        put(content, segments_at, [word.get() for word in segments])
        return Descriptor.unpack(bytes(content), form)

    def moves(
        self, vi: Vi, segments: Sequence[Segment], sram: int, *, to_host: bool
    ) -> tuple[list[Move], CompletionStatus]:
        """The checked moves between memory of a VI's process and the SRAM from `sram` on, in one piece.

        There are no moves, and a status other than OK, if the card could not even be asked. That is so for an address
        of more than 32 bits, a handle of more than 16, or a piece that begins where the engine cannot move to.
        """
        found, at, unit = [], sram, self.nic.dma_alignment_bytes
        for one in segments:
            if one.address + one.bytes > 1 << 32:
                return [], CompletionStatus.OUTSIDE
            if one.handle >= 1 << 16:
                return [], CompletionStatus.NO_REGION
            if at % unit:
                return [], CompletionStatus.MISALIGNED
            found.append(
                Move(
                    address=one.address,
                    sram=at,
                    bytes=one.bytes,
                    to_host=to_host,
                    tag=one.handle,
                    channel=vi.channel,
                )
            )
            at += one.bytes
        return found, CompletionStatus.OK

    async def move(
        self,
        vi: Vi,
        segments: Sequence[Segment],
        sram: int,
        *,
        key: Key,
        to_host: bool,
        step: str,
        then: Sequence[Move] = (),
        stamp: int | None = None,
    ) -> CompletionStatus:
        """Stages 5 and 6: move data between memory of a VI's process and the SRAM, checked by the card.

        A step `page` is spent for every page that is touched beyond the first. `then`: further moves of the list.
        """
        found, status = self.moves(vi, segments, sram, to_host=to_host)
        if status != CompletionStatus.OK:
            return status
        transfer = Transfer(
            moves=[*found, *then],
            step=step,
            key=key,
            stages=(Stage.PROGRAM_DATA, Stage.DATA),
            extra={"page": max(0, pages(segments) - 1)},
            stamp=stamp,
        )
        return await self.engines.move(transfer)

    async def in_region(
        self, vi: Vi, tag: int, address: int, size: int, sram: int, key: Key
    ) -> CompletionStatus:
        """Ask the card whether the last bytes of memory may be read by a VI's process, by reading them to `sram`.

        Regions have no gaps. So a message of several packets, whose first byte the card checks by its first packet,
        changes nothing if its last byte is not in the region.
        """
        unit = self.nic.dma_alignment_bytes
        last = address + size - 1
        begin = max(address, last // unit * unit)
        return await self.move(
            vi,
            [Segment(begin, tag, address + size - begin)],
            sram,
            key=key,
            to_host=False,
            step="program_probe",
        )

    async def end_send(self, message: Outgoing, status: CompletionStatus) -> None:
        """Note a sent message's end, and tell it, and of those behind it all that have ended, in order."""
        if message.gone:
            return
        message.status, message.done = status, True
        vi = message.vi
        while vi.under_way and vi.under_way[0].done:
            first = vi.under_way.popleft()
            await self._tell_send(first)
        self.context.give_turn(vi)

    async def _tell_send(self, message: Outgoing) -> None:
        vi = message.vi
        record = vi.record
        assert record is not None
        self.context.sent += 1
        vi.send.completed = (message.index + 1) % COUNTS
        size = 0 if message.status != CompletionStatus.OK else message.descriptor.data_bytes
        await self._tell(vi.send, record, message.index, size, message.status, message.key)

    async def end_receive(self, vi: Vi, inbound: Inbound, status: CompletionStatus) -> None:
        """Tell the end of a message that has taken a receive descriptor."""
        record, index = vi.record, inbound.index
        if record is None or index is None:
            return
        inbound.index = None
        self.context.received += 1
        # Those behind it may have been flushed while its immediate data went up.
        if (index + 1 - vi.receive.completed) % COUNTS < COUNTS // 2:
            vi.receive.completed = (index + 1) % COUNTS
        bad = status not in (CompletionStatus.OK, CompletionStatus.IMMEDIATE, CompletionStatus.WRITTEN)
        size = 0 if bad and status != CompletionStatus.PARTIAL else inbound.offset
        await self._tell(vi.receive, record, index, size, status, inbound.key)

    async def flush(self, vi: Vi) -> None:
        """Tell the end of all descriptors that a VI has posted, in order: FLUSHED, unless their end is known."""
        record = vi.record
        under_way, inbound = list(vi.under_way), vi.inbound
        for message in under_way:
            message.gone = True
        vi.under_way.clear()
        vi.held, vi.inbound = None, None
        if record is None:
            vi.send.drop()
            vi.receive.drop()
            return
        for message in under_way:
            if not message.done:
                message.status = CompletionStatus.FLUSHED
            await self._tell_send(message)
        if inbound is not None:
            await self.end_receive(vi, inbound, CompletionStatus.FLUSHED)
        for queue in (vi.send, vi.receive):
            for _ in range(min(queue.waiting, self.context.config.queue_entries)):
                index = queue.take()
                queue.completed = queue.taken
                key = Key(vi.channel, index, queue.receive)
                await self._tell(queue, record, index, 0, CompletionStatus.FLUSHED, key)
            queue.drop()

    async def _tell(
        self, queue: WorkQueue, record: ViRecord, index: int, size: int, status: CompletionStatus, key: Key
    ) -> None:
        """Stages 9 to 12: into the descriptor, then into the completion queue, if there is one."""
        vi = self.context.vi(queue.channel)
        generation = vi.generation

        def live() -> bool:
            return vi.generation == generation

        post = Post(
            channel=queue.channel,
            number=pack_descriptor_number(index, receive=queue.receive),
            status=status,
            bytes=size,
            status_address=self.slot(queue, record, index) + STATUS_OFFSET,
        )
        self.context.advance()
        await self.engines.post(post, "program_status", "status_done", key=key, live=live)
        told = record.receive_completions if queue.receive else record.send_completions
        if told is not None:
            post = Post(channel=post.channel, number=post.number, status=status, bytes=size, queue=told)
            await self.engines.post(post, "program_queue", "queue_done", key=key, live=live)


def put(content: bytearray, word: int, words: Sequence[int]) -> None:
    """Put words into a slot's bytes from word number `word` on."""
    for place, value in enumerate(words, word):
        content[WORD_BYTES * place : WORD_BYTES * (place + 1)] = value.to_bytes(WORD_BYTES, "little")
