"""Flows of MPI messages between ranks, kept going, and their bandwidth: the measurement of mpi-idt and mpi-share.

As the thesis measures (5.1): one rank pumps messages, another receives them. `MESSAGES_IN_FLIGHT` sends and as many
receives are always begun, so that a message's announcement does not wait for the message before. A flow's bandwidth is
payload over the window, which is the same for all flows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import SimulationError
from .gm_windows import amount_within, bandwidths

if TYPE_CHECKING:
    from ...host.mpi.comm.intracomm import Intracomm
    from ...systems.cluster import Cluster

__all__ = ["MESSAGES_IN_FLIGHT", "MpiFlow", "flow_bandwidths", "payload_share", "run_flows"]

MESSAGES_IN_FLIGHT = 4
NEXT_STEPS = 64
"""Steps, at most, of the wait for the messages that a window's end cuts."""
TAG = 1


@dataclass(frozen=True, kw_only=True)
class MpiFlow:
    """Messages of `message_bytes` from a rank to another one of the same program, a packet every `idt_ticks`.

    The ranks are given by the sender's communicator, `source`, and by `target`.
    """

    source: Intracomm
    target: Intracomm
    message_bytes: int
    idt_ticks: int


def payload_share(message_bytes: int) -> float:
    """The part of a flow's full packets that is payload of its messages, on the card of these experiments."""
    from lanikai.firmware.gm.config import GmConfig
    from lanikai.hdl.config import NicConfig, preset

    from ...host.mpi.config import MpiConfig
    from ...host.mpi.estimate import mpi_mb_per_s

    nic = preset(NicConfig, "lanai4")
    config = MpiConfig.for_gm(GmConfig.for_nic(nic), nic)
    return mpi_mb_per_s(1.0, message_bytes, config, nic.mtu_bytes)


async def run_flows(
    cluster: Cluster,
    flows: Sequence[MpiFlow],
    *,
    warm_up_messages: int,
    window_messages: int,
) -> dict[str, Any]:
    """Let the flows (of each rank at most one) go until each has had `warm_up_messages` and `window_messages` more.

    All are measured in one window: from when each has had its warm-up to when each has had the others. Messages that
    its ends cut count in part (`gm_windows.amount_within`), so that a flow that stops in it loses what it did not send.
    Raises SimulationError if a message is not what was sent.
    """
    from ...host.mpi.world import idt_between

    clock = cluster.clock
    ends: list[list[int]] = [[] for _ in flows]
    last = warm_up_messages + window_messages
    done = clock.flag()

    async def send(flow: MpiFlow, content: bytes) -> None:
        world = flow.source
        begun: deque[Any] = deque()
        while True:
            if len(begun) == MESSAGES_IN_FLIGHT:
                await begun.popleft().Wait()
            begun.append(await world.Isend(content, dest=flow.target.rank, tag=TAG))

    async def receive(number: int, flow: MpiFlow, content: bytes) -> None:
        world = flow.target
        begun: deque[Any] = deque()
        for _ in range(MESSAGES_IN_FLIGHT):
            buffer = bytearray(flow.message_bytes)
            begun.append((await world.Irecv(buffer, source=flow.source.rank, tag=TAG), buffer))
        while True:
            request, buffer = begun.popleft()
            await request.Wait()
            ends[number].append(clock.cycle)
            if buffer != content:
                raise SimulationError(f"a message from {flow.source} did not arrive as it was sent")
            whole = sum(min(len(one), last) for one in ends)
            cluster.progress(whole / (last * len(flows)), f"{whole} of {last * len(flows)} messages")
            if all(len(one) >= last for one in ends):
                done.set()
            buffer = bytearray(flow.message_bytes)
            begun.append((await world.Irecv(buffer, source=flow.source.rank, tag=TAG), buffer))

    for flow in flows:
        await idt_between(flow.source, flow.target.rank, flow.idt_ticks)
    for number, flow in enumerate(flows):
        content = cluster.random.randbytes(flow.message_bytes)
        clock.spawn(receive(number, flow, content), f"receiver of flow {number}")
        clock.spawn(send(flow, content), f"sender of flow {number}")
    await done.wait()
    opened, closed = max(one[warm_up_messages - 1] for one in ends), clock.cycle
    # A faster flow's message that the end cuts takes no longer than one of the slowest flow.
    step = -(-(closed - opened) // (window_messages * NEXT_STEPS))
    for _ in range(NEXT_STEPS):
        if any(one[-1] < closed for one in ends):
            await clock.sleep(step)
    return {
        "payload_bytes": [
            amount_within([(cycle, flow.message_bytes) for cycle in one], opened, closed)
            for flow, one in zip(flows, ends, strict=True)
        ],
        "window_cycles": closed - opened,
        "clock_hz": cluster.config.nic.clock_hz,
    }


def flow_bandwidths(measured: Mapping[str, Any]) -> list[float]:
    """MB/s of each flow, from what `run_flows` returns."""
    return bandwidths(measured)
