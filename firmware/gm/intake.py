"""SDMA's other half: it takes the descriptors and commands that ports post, and builds tokens of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .. import registers
from ..accesses import LONGEST, AccessList, Reading
from ..polling import PollPointer
from .context import GmContext
from .layout import (
    DESCRIPTOR_BYTES,
    HAS_OPENING,
    NO_TOKEN,
    Command,
    Event,
    EventKind,
    Operation,
    Purpose,
    ReceiveDescriptor,
    SendDescriptor,
    Status,
    unpack_target,
)
from .state import Flow, Get, Port, SendToken
from .wire import FlowKey

__all__ = ["Intake"]

LOOK_ACCESS_CYCLES = 3
"""Cycles of a look at a doorbell word: DOORBELL_SELECT written (1), DOORBELL_WORD read (2)."""
LOOKS = LONGEST // 6
"""Most looks in a list of accesses, which has six records for each."""
VALID = registers.pack("DOORBELL_WORD", valid=1)


class Intake:
    """Doorbells in, tokens out."""

    def __init__(self, program: GmContext) -> None:
        self._program = program
        self._processor = program.processor
        period = self._processor.costs.cycles("poll_look") + LOOK_ACCESS_CYCLES
        self._lists: dict[tuple[int, int], tuple[AccessList, list[Reading]]] = {}
        self._pointer = PollPointer(channels=program.nic.channels, period_cycles=period)

    async def run(self) -> None:
        """Serve doorbells for ever."""
        rung = self._processor.events["doorbell"]
        serve = self._serve_queue if self._program.nic.doorbell == "queue" else self._serve_words
        while True:
            await rung.wait()
            rung.clear()
            await serve()

    async def _serve_queue(self) -> None:
        """Empty the hardware queue."""
        while True:
            accesses = AccessList()
            # Cleared before the look: a doorbell rung after it raises the event again.
            accesses.write("ISR", doorbell=1)
            entry = accesses.read("DOORBELL_QUEUE")
            async with self._processor.step("sdma_doorbell", accesses=accesses):
                if not entry["valid"]:
                    await self._processor.enable("doorbell")
                    return
            await self._serve(entry["channel"], entry["value"])

    async def _serve_words(self) -> None:
        """Walk the polling pointer from its present place, until a whole turn has found nothing."""
        scheduler, channels = self._processor.port, self._program.nic.channels
        cycle, channel = self._pointer.next_look(scheduler.cycle)
        if cycle > scheduler.cycle:
            await scheduler.sleep(cycle - scheduler.cycle)
        empty = 0
        while empty < channels:
            accesses, words = self._looks(channel, min(channels - empty, LOOKS))
            async with self._processor.step("poll_look", accesses=accesses):
                seen = [word for word in words if word.word is not None]
                channel, last = (channel + len(seen)) % channels, seen[-1]
                empty = 0 if last["valid"] else empty + len(seen)
                if empty == channels:
                    await self._processor.enable("doorbell")
            if last["valid"]:
                await self._serve((channel - 1) % channels, last["value"])
        self._pointer = self._pointer.moved(channel=channel, cycle=scheduler.cycle)

    def _looks(self, channel: int, count: int) -> tuple[AccessList, list[Reading]]:
        """Looks at `count` doorbell words from that of `channel` on, a step each, up to the first that was rung."""
        known = self._lists.get((channel, count))
        if known is not None:
            return known
        accesses, words = AccessList(), []
        for look in range(count):
            if look:
                accesses.mark(self._processor.costs.cycles("poll_look"))
            accesses.write("DOORBELL_SELECT", channel=(channel + look) % self._program.nic.channels)
            words.append(accesses.read("DOORBELL_WORD"))
            accesses.skip_if(words[-1], mask=VALID, value=0, records=2)
            # The turn that follows sees all doorbells that were rung before this.
            accesses.write("ISR", doorbell=1)
            accesses.stop()
        self._lists[channel, count] = accesses, words
        return accesses, words

    async def _serve(self, channel: int, word: int) -> None:
        """Take everything that a doorbell word announces: receive tokens first, so that a message finds them."""
        program = self._program
        if channel >= len(program.ports):
            return
        port = program.ports[channel]
        new = port.taken.new(word)
        for _ in range(new.commands):
            port.taken.commands += 1
            accesses = AccessList()
            words = accesses.load(program.layout.command(channel), program.layout.command_words)
            async with self._processor.step("sdma_command", accesses=accesses):
                command = Command.unpack(_words(words))
                status = await self._command(port, command)
                self._answer(port, command, status)
        for _ in range(new.receives):
            accesses = AccessList()
            words = accesses.load(program.layout.receive_descriptor(channel, port.taken.receives), 4)
            async with self._processor.step("sdma_receive_token", accesses=accesses):
                port.taken.receives += 1
                self._receive_token(port, ReceiveDescriptor.unpack(_words(words)))
        for _ in range(new.sends):
            accesses = AccessList()
            place = program.layout.send_descriptor(channel, port.taken.sends)
            words = accesses.load(place, 4)
            async with self._processor.step("sdma_token", accesses=accesses):
                if words[3].get() & HAS_OPENING:
                    opening = AccessList()
                    words += opening.load(place + DESCRIPTOR_BYTES, 4)
                    await self._processor.carry_out(opening)
                port.taken.sends += 1
                self._send_token(port, _words(words))

    def _send_token(self, port: Port, words: list[int]) -> None:
        """Check a send descriptor and queue its token."""
        program = self._program
        refused = Status.OK
        if not port.open:
            return  # no event ring to tell it in
        try:
            descriptor = SendDescriptor.unpack(words)
        except ValueError:
            return program.sent_event(port, words[3] & 255, Status.BAD_COMMAND)
        opening = descriptor.opening
        if opening is not None and opening.purpose is Purpose.GOT:
            refused = Status.BAD_COMMAND
        elif descriptor.address % 4:
            refused = Status.MISALIGNED
        elif not port.registered(descriptor.address, descriptor.length):
            refused = Status.UNREGISTERED
        elif descriptor.node not in program.routes:
            refused = Status.UNKNOWN_NODE
        elif descriptor.port > 31:
            refused = Status.UNKNOWN_PORT
        else:
            flow = program.flow(descriptor.node, FlowKey(port.number, descriptor.port, descriptor.priority))
            if flow is None:
                refused = Status.NO_FLOW
        if refused:
            program.sent_event(port, descriptor.token, refused)
            return
        assert flow is not None
        if opening is not None and opening.purpose is Purpose.GET:
            program.gets += 1
            opening = replace(opening, length=descriptor.length, serial=program.gets & 0xFFFFFFFF)
            descriptor = replace(descriptor, opening=opening)
        token = SendToken(descriptor, flow)
        if opening is not None and opening.purpose is Purpose.GET:
            token.get = port.gets[descriptor.token] = Get(descriptor, opening.serial)
        program.enqueue(token)

    def _receive_token(self, port: Port, descriptor: ReceiveDescriptor) -> None:
        """Check a receive descriptor and give its token to the port."""
        if not port.open:
            return
        if descriptor.address % 4:
            refused = Status.MISALIGNED
        elif not port.registered(descriptor.address, descriptor.length):
            refused = Status.UNREGISTERED
        else:
            port.receive_tokens[descriptor.priority].append(descriptor)
            self._program.token_available(port, descriptor)
            return
        event = Event(kind=EventKind.RECEIVED, status=refused, token=descriptor.token)
        self._program.rdma.post(port, event)

    def _answer(self, port: Port, command: Command, status: Status) -> None:
        """Tell how a command ended.

        A process that asked for an OPEN in vain is told in the ring that it named, as its first event. The ring of the
        port, if there is one, is another process's. There is no place to answer in a ring that is not aligned.
        """
        event = Event(kind=EventKind.COMMAND, status=status)
        if command.operation != Operation.OPEN or status is Status.OK:
            self._program.rdma.post(port, event)
        elif status is not Status.MISALIGNED:
            self._program.rdma.post(Port(port.number, ring_address=command.first), event)

    async def _command(self, port: Port, command: Command) -> Status:
        """Carry out a command; return its status."""
        if command.operation in (Operation.OPEN, Operation.REGISTER) and command.first % 4:
            return Status.MISALIGNED
        if command.operation == Operation.OPEN:
            if not port.open:
                port.open, port.ring_address, port.events = True, command.first, 0
                return Status.OK
        elif command.operation == Operation.CLOSE:
            return await self._close(port)
        elif not port.open:
            return Status.CLOSED_PORT
        elif command.operation == Operation.REGISTER:
            port.regions.append((command.first, command.second))
            return Status.OK
        elif command.operation == Operation.DEREGISTER:
            return self._deregister(port, (command.first, command.second))
        elif command.operation == Operation.ABORT:
            self._abort(port, command.first)
            return Status.OK
        elif command.operation == Operation.NODE_DIED:
            return self._node_died(port, command.first)
        elif command.operation == Operation.EXPOSE:
            if not port.registered(command.first, command.second):
                return Status.UNREGISTERED
            port.exposed.append((command.first, command.second))
            return Status.OK
        elif command.operation == Operation.HIDE:
            return self._hide(port, (command.first, command.second))
        elif command.operation == Operation.SET_IDT:
            return await self._set_idt(port, command)
        return Status.BAD_COMMAND

    def _deregister(self, port: Port, region: tuple[int, int]) -> Status:
        """Take a region from a port, unless a message or a receive token still needs it, or it is exposed.

        A process that has the memory of an exposed region later has not exposed it. Packets that RDMA moves now are
        safe: it answers this command after them.
        """
        if region not in port.regions:
            return Status.UNREGISTERED
        port.regions.remove(region)
        mine = self._flows(port)
        used: list[SendDescriptor | ReceiveDescriptor] = [
            *(token.descriptor for flow in mine for token in (*flow.sendable, *flow.awaiting)),
            *(token for tokens in port.receive_tokens for token in tokens),
            *(assembly.token for assembly in port.assemblies.values() if assembly.token is not None),
            *(get.descriptor for get in port.gets.values()),
        ]
        puts = [assembly for assembly in port.assemblies.values() if assembly.token is None]
        ranges = [(one.address, one.length) for one in used] + [(put.address, put.room) for put in puts]
        ranges += port.exposed
        if all(port.registered(address, length) for address, length in ranges if length):
            return Status.OK
        port.regions.append(region)
        return Status.IN_USE

    def _flows(self, port: Port) -> list[Flow]:
        return [flow for flow in self._program.flows.values() if flow.key.source_port == port.number]

    def _abort(self, port: Port, number: int) -> None:
        """End the message of a send token, if it is under way."""
        for flow in self._flows(port):
            for token in flow.tokens:
                over = token.get is not None and port.gets.get(number) is not token.get
                if token.descriptor.token == number and not over:
                    self._program.abort(token, Status.ABORTED)
        if number in port.gets:
            self._program.end_get(port, port.gets[number], Status.ABORTED)

    @staticmethod
    def _hide(port: Port, region: tuple[int, int]) -> Status:
        """End the exposure of a region: nobody may write there any more, or ask for its bytes.

        A message that is being written there fails with its next packet. RDMA answers after the packets that it moves
        now.
        """
        if region not in port.exposed:
            return Status.NOT_EXPOSED
        port.exposed.remove(region)
        for name, put in [*port.assemblies.items()]:
            if put.token is None and put.get is None and not port.is_exposed(put.address, put.room):
                del port.assemblies[name]
        return Status.OK

    def _node_died(self, port: Port, node: int) -> Status:
        """End a port's messages with a node, and no other port's: a process may be wrong."""
        program = self._program
        if node not in program.routes:
            return Status.UNKNOWN_NODE
        for flow in self._flows(port):
            if flow.connection.node == node:
                for token in flow.tokens:
                    program.complete(token, Status.NODE_DEAD)
                flow.paused_until_ticks = None
                flow.stream.begin_anew()
                flow.stream.forgive()
                program.sdma.look_at(flow)
        for source, key in [*port.assemblies]:
            if source == node:
                program.abandon(port, source, key)
        for get in [*port.gets.values()]:
            if get.descriptor.node == node:
                program.end_get(port, get, Status.NODE_DEAD)
        return Status.OK

    async def _close(self, port: Port) -> Status:
        """Close a port, which the host does once its sends are home, and give back its flows' numbers."""
        program = self._program
        mine = self._flows(port)
        for flow in mine:
            for token in flow.tokens:
                if token.descriptor.token == NO_TOKEN:
                    program.abort(token, Status.ABORTED)
        if any(flow.sendable or flow.awaiting for flow in mine):
            return Status.BAD_COMMAND
        port.close()
        for flow in mine:
            if program.gm.rate_controlled:
                await program.sdma.forget(flow)
            del program.flows[flow.number]
            flow.connection.flows.remove(flow)
            flow.stream.flow = None
        return Status.OK

    async def _set_idt(self, port: Port, command: Command) -> Status:
        program = self._program
        (node, target_port, priority), ticks = unpack_target(command.first), command.second
        if node not in program.routes:
            return Status.UNKNOWN_NODE
        if target_port > 31:
            return Status.UNKNOWN_PORT
        if not program.gm.rate_controlled or ticks > program.nic.max_idt_ticks:
            return Status.BAD_COMMAND
        if command.third > program.nic.mtu_bytes:
            return Status.BAD_COMMAND
        flow = program.flow(node, FlowKey(port.number, target_port, priority))
        if flow is None:
            return Status.NO_FLOW
        flow.least_bytes = max(1, command.third)
        await program.sdma.set_idt(flow, ticks)
        return Status.OK


def _words(readings: Iterable[Reading]) -> list[int]:
    return [reading.get() for reading in readings]
