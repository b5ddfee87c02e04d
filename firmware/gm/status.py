"""The state of a GM control program in words, for a log: the things that wait, and their waits."""

from __future__ import annotations

from collections.abc import Iterator

from .context import GmContext
from .state import Connection, Flow, Port

__all__ = ["describe", "describe_flow"]

PRIORITIES = ("low", "high")


def describe(program: GmContext) -> list[str]:
    """Processor, state machines, streams, flows and ports of a program, a line each.

    Those at rest and empty are left out.
    """
    return [f"gm firmware of node {program.node}:", *(f"  {line}" for line in _lines(program))]


def describe_flow(flow: Flow) -> str:
    """A flow that has messages, in a few words."""
    key = flow.key
    text = (
        f"flow {flow.number} (port {key.source_port} to port {key.target_port} of node "
        f"{flow.connection.node}, {PRIORITIES[key.priority]}): {len(flow.sendable)} sendable, "
        f"{len(flow.awaiting)} awaiting acknowledgement"
    )
    if flow.paused_until_ticks is not None:
        text += f", no receive token there: paused until tick {flow.paused_until_ticks}"
    return text


def _lines(program: GmContext) -> Iterator[str]:
    processor = program.processor
    yield (
        f"processor: {processor.current or 'no step'}, {processor.waiting} waiting for it; host DMA engine: "
        f"{'taken' if program.host_dma.held else 'free'}, {program.host_dma.waiting} waiting for it"
    )
    machines = {
        "sdma": program.sdma.waits_for,
        "send": program.send.waits_for,
        "recv": "a packet" if program.recv.armed is not None else "a free receive buffer",
        "rdma": program.rdma.waits_for,
    }
    for name, waits_for in machines.items():
        yield f"{name} waits for {waits_for}"
    for connection in program.connections.values():
        yield from _streams(connection)
    for flow in program.flows.values():
        yield (
            f"{describe_flow(flow)}, IDT {flow.idt_ticks} ticks, "
            f"{'valid' if flow.valid else 'not valid'} in the queue"
        )
    for port in program.ports:
        if port.open:
            yield _port(port)


def _streams(connection: Connection) -> Iterator[str]:
    for key in sorted({*connection.send, *connection.receive}):
        send, receive = connection.send.get(key), connection.receive.get(key)
        ports = (
            f"node {connection.node}, port {key.source_port} to {key.target_port}, {PRIORITIES[key.priority]}"
        )
        if send is not None and (send.next_sequence or send.unacknowledged):
            yield (
                f"to {ports}: next packet {send.next_sequence}, {len(send.unacknowledged)} not acknowledged, "
                f"{len(send.resend)} to be sent again, {send.under_way} in transmit buffers; {send.tries} tries, "
                f"{send.stuck_ticks} ticks since a packet was taken"
            )
        if receive is not None:
            refused = "" if receive.refusal is None else ", which it refused"
            yield f"of {ports}: expects {receive.expected}{refused}"


def _port(port: Port) -> str:
    low, high = map(len, port.receive_tokens)
    return (
        f"port {port.number}: receive tokens {low} low, {high} high; {len(port.assemblies)} messages "
        f"being received; {port.events} events told"
    )
