"""SDMA's other half: takes what ports post (send and receive descriptors, commands) and builds tokens of
it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..polling import PollPointer
from .layout import (
    Command,
    Event,
    EventKind,
    Operation,
    ReceiveDescriptor,
    SendDescriptor,
    Status,
    unpack_target,
)
from .state import Port, SendToken
from .wire import FlowKey

if TYPE_CHECKING:
    from .program import GmProgram

__all__ = ["Intake"]

LOOK_ACCESS_CYCLES = 3
"""A look at a doorbell word: DOORBELL_SELECT written (1), DOORBELL_WORD read (2)."""


class Intake:
    """Doorbells in, tokens out."""

    def __init__(self, program: GmProgram) -> None:
        self._program = program
        self._processor = program.processor
        period = self._processor.costs.cycles("poll_look") + LOOK_ACCESS_CYCLES
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
            async with self._processor.step("sdma_doorbell"):
                # Cleared before the look: a doorbell rung after it raises the event again.
                await self._processor.write("ISR", doorbell=1)
                entry = await self._processor.read("DOORBELL_QUEUE")
                if not entry["valid"]:
                    await self._processor.enable("doorbell")
                    return
            await self._serve(entry["channel"], entry["value"])

    async def _serve_words(self) -> None:
        """Walk the polling pointer from where it stands by now, until a whole turn has found nothing."""
        scheduler = self._processor.port
        cycle, channel = self._pointer.next_look(scheduler.cycle)
        if cycle > scheduler.cycle:
            await scheduler.sleep(cycle - scheduler.cycle)
        empty = 0
        while empty < self._program.nic.channels:
            async with self._processor.step("poll_look"):
                await self._processor.write("DOORBELL_SELECT", channel=channel)
                word = await self._processor.read("DOORBELL_WORD")
                empty = 0 if word["valid"] else empty + 1
                if word["valid"]:
                    # The turn that follows sees all that was rung before this.
                    await self._processor.write("ISR", doorbell=1)
                elif empty == self._program.nic.channels:
                    await self._processor.enable("doorbell")
            if word["valid"]:
                await self._serve(channel, word["value"])
            channel = (channel + 1) % self._program.nic.channels
        self._pointer = self._pointer.moved(channel=channel, cycle=scheduler.cycle)

    async def _serve(self, channel: int, word: int) -> None:
        """Take all that a doorbell word announces: receive tokens first, so that a message finds them."""
        program = self._program
        if channel >= len(program.ports):
            return
        port = program.ports[channel]
        new = port.taken.new(word)
        for _ in range(new.commands):
            port.taken.commands += 1
            async with self._processor.step("sdma_command"):
                words = await self._load(program.layout.command(channel), 3)
                status = await self._command(port, Command.unpack(words))
                program.rdma.post(port, Event(kind=EventKind.COMMAND, status=status))
        for _ in range(new.receives):
            async with self._processor.step("sdma_receive_token"):
                words = await self._load(program.layout.receive_descriptor(channel, port.taken.receives), 4)
                port.taken.receives += 1
                self._receive_token(port, ReceiveDescriptor.unpack(words))
        for _ in range(new.sends):
            async with self._processor.step("sdma_token"):
                words = await self._load(program.layout.send_descriptor(channel, port.taken.sends), 4)
                port.taken.sends += 1
                self._send_token(port, SendDescriptor.unpack(words))

    async def _load(self, address: int, words: int) -> list[int]:
        return [await self._processor.load(address + 4 * i) for i in range(words)]

    def _send_token(self, port: Port, descriptor: SendDescriptor) -> None:
        """Check a send descriptor and queue its token."""
        program = self._program
        refused = Status.OK
        if not port.open:
            return  # no event ring to tell it in
        if not port.registered(descriptor.address, descriptor.length):
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
        flow.sendable.append(SendToken(descriptor, flow))
        flow.connection.tokens += 1
        program.queue.add(flow.connection)
        program.sdma.look_at(flow)

    def _receive_token(self, port: Port, descriptor: ReceiveDescriptor) -> None:
        """Check a receive descriptor and give its token to the port."""
        if not port.open:
            return
        if port.registered(descriptor.address, descriptor.length):
            port.receive_tokens[descriptor.priority].append(descriptor)
        else:
            self._program.rdma.post(
                port, Event(kind=EventKind.RECEIVED, status=Status.UNREGISTERED, token=descriptor.token)
            )

    async def _command(self, port: Port, command: Command) -> Status:
        """Do what a command asks; its status."""
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
            if (command.first, command.second) in port.regions:
                port.regions.remove((command.first, command.second))
                return Status.OK
            return Status.UNREGISTERED
        elif command.operation == Operation.SET_IDT:
            return await self._set_idt(port, *unpack_target(command.first), ticks=command.second)
        return Status.BAD_COMMAND

    async def _close(self, port: Port) -> Status:
        """Close a port, which the host does once its sends are home, and give back its flows' numbers."""
        program = self._program
        mine = [f for f in program.flows.values() if f.key.source_port == port.number]
        if any(flow.sendable or flow.awaiting for flow in mine):
            return Status.BAD_COMMAND
        port.close()
        for flow in mine:
            if program.gm.rate_controlled:
                await program.sdma.forget(flow)
            del program.flows[flow.number]
            flow.connection.flows.remove(flow)
        return Status.OK

    async def _set_idt(self, port: Port, node: int, target_port: int, priority: int, ticks: int) -> Status:
        program = self._program
        if node not in program.routes:
            return Status.UNKNOWN_NODE
        if target_port > 31:
            return Status.UNKNOWN_PORT
        if not program.gm.rate_controlled or ticks > program.nic.max_idt_ticks:
            return Status.BAD_COMMAND
        flow = program.flow(node, FlowKey(port.number, target_port, priority))
        if flow is None:
            return Status.NO_FLOW
        await program.sdma.set_idt(flow, ticks)
        return Status.OK
