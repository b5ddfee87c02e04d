"""transfer: a file that the user names goes from host 0 to host 1 as GM messages, byte by byte through the RTL."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config
from pydantic import Field, model_validator

from ..units import KB, mb_per_s, microseconds
from .framework.base import Claim, Experiment, Outcome, Point, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..host.bus import Watch
    from ..systems.cluster import Cluster

__all__ = ["Transfer", "TransferParameters"]

FILE_BYTES_MAX = 16 * 1024 * KB
"""Largest file: minutes of simulation."""
MESSAGES_IN_FLIGHT = 4
"""Messages that have been sent and not acknowledged; each end has as many buffers."""


class TransferParameters(Config):
    """Parameters of transfer. `file` has no default."""

    file: Path = Field(
        description="the file to send", json_schema_extra={"range": "a file of 1 byte to 16 MiB"}
    )
    message_bytes: int = Field(
        64 * KB, ge=1, le=256 * KB, description="bytes of a message; the last one may be shorter"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            if not self.file.is_file():
                what = "it is not a file" if self.file.exists() else "there is no such file"
                raise ValueError(f"file {str(self.file)!r} cannot be sent: {what}")
            size = self.file.stat().st_size
            with self.file.open("rb") as file:
                file.read(1)
        except OSError as error:
            raise ValueError(f"file {str(self.file)!r} cannot be read: {error.strerror}") from None
        if size == 0:
            raise ValueError(f"file {str(self.file)!r} cannot be sent: it is empty")
        if size > FILE_BYTES_MAX:
            raise ValueError(
                f"file {str(self.file)!r} cannot be sent: {size} bytes, at most {FILE_BYTES_MAX}"
            )
        return self


class Transfer(Experiment):
    """A file from host to host."""

    name = "transfer"
    asks = "Does a file of the user's arrive whole, how fast, and how long does a message take?"
    source = "no document: the user's own file"
    entry = "lanikai.sim.experiments.transfer:measure"
    Parameters = TransferParameters

    def points(self, parameters: TransferParameters, size: Size) -> list[Point]:
        """One point: the file, whole, in both sizes."""
        file_bytes = parameters.file.stat().st_size
        return [
            Point(
                label=f"{parameters.file.name}, {file_bytes} bytes",
                parameters={
                    "file": str(parameters.file),
                    "file_bytes": file_bytes,
                    "message_bytes": parameters.message_bytes,
                },
                spec={"file": str(parameters.file.resolve()), "message_bytes": parameters.message_bytes},
            )
        ]

    def cluster(self, parameters: TransferParameters) -> Any:
        """Two hosts send and receive; the others stay idle."""
        from ..systems.cluster import cluster_preset
        from .measure.gm_hosts import NODES

        return cluster_preset("lanai4", nodes=NODES)

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Bandwidth, latency of a message, and the hashes of both ends.

        Bandwidth is from the first call to the last byte in the receiver's memory. Latency is from a message's call to
        its last byte there.
        """
        hz = measured["clock_hz"]
        latencies = measured["latency_cycles"]
        mean = sum(latencies) / len(latencies)
        return {
            "bandwidth_mb_per_s": mb_per_s(measured["payload_bytes"], measured["transfer_cycles"], hz),
            "latency_mean_us": microseconds(mean, hz),
            "latency_mean_cycles": mean,
            "latency_max_cycles": max(latencies),
            "messages": len(latencies),
            "sha256_sent": measured["sha256_sent"],
            "sha256_received": measured["sha256_received"],
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claim: the bytes that arrived are those that were sent."""
        return [
            Claim.every(
                "the file arrives byte for byte: the SHA-256 of both ends is equal",
                (o.results["sha256_sent"] == o.results["sha256_received"] for o in outcomes),
            )
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw bytes over time: sent by the caller, and in the receiver's memory. Across is the latency of a message,
        up are the bytes on their way."""
        axes = figure.add_subplot()
        for outcome in outcomes:
            series = outcome.series
            total = [0]
            for size in series["bytes"]:
                total.append(total[-1] + size)
            for name, label, color in (("sent", "sent", "C0"), ("landed", "in the receiver's memory", "C1")):
                at = [microseconds(cycle, series["clock_hz"]) for cycle in series[f"{name}_cycles"]]
                axes.step([0, *at], [bytes_ / KB for bytes_ in total], where="post", color=color)
                axes.plot(
                    at, [bytes_ / KB for bytes_ in total[1:]], "o", markersize=3, color=color, label=label
                )
            axes.set_title(
                f"{outcome.point.label}: {outcome.results['bandwidth_mb_per_s']:.1f} MB/s, "
                f"{outcome.results['latency_mean_us']:.0f} µs a message"
            )
        axes.set_xlabel("time since the first message was sent (µs)")
        axes.set_ylabel("KB of the file")
        axes.legend()


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Send the file, cut into messages, from host 0 to host 1. Latency of a message: from the call to its
    last byte in the receiver's memory."""
    from .measure.gm_hosts import start_gm

    content = Path(spec["file"]).read_bytes()
    size = spec["message_bytes"]
    messages = [content[start : start + size] for start in range(0, len(content), size)]
    sender, receiver = start_gm(cluster)[:2]
    clock = cluster.clock
    into = await receiver.open_port(0)
    out = await sender.open_port(0)
    buffers = [await out.dma_malloc(size) for _ in range(MESSAGES_IN_FLIGHT)]
    landed: list[int] = []
    received = hashlib.sha256()
    done = clock.flag()

    async def land(watch: Watch) -> None:
        await watch.wait()
        landed.append(clock.cycle)

    async def receive() -> None:
        places = [await into.dma_malloc(size) for _ in range(MESSAGES_IN_FLIGHT)]
        whole = [receiver.bus.watch(place.start + size - 1, 1) for place in places]

        async def provide(number: int) -> None:
            place = number % len(places)
            start, length = places[place].start, len(messages[number])
            # The watch on a short message's end is made when nothing else can be written there any more.
            watch = whole[place] if length == size else receiver.bus.watch(start + length - 1, 1)
            clock.spawn(land(watch), f"end of message {number}")
            await into.provide_receive_buffer(places[place])

        for number in range(min(len(places), len(messages))):
            await provide(number)
        ready.set()
        for number in range(len(messages)):
            received.update((await into.receive()).read())
            cluster.progress((number + 1) / len(messages), f"{number + 1} of {len(messages)} messages")
            if number + len(places) < len(messages):
                await provide(number + len(places))
        done.set()

    ready = clock.flag()
    clock.spawn(receive(), "receiver")
    await ready.wait()
    handles = []
    on_their_way: deque[Any] = deque()
    for number, message in enumerate(messages):
        if len(on_their_way) == len(buffers):
            await on_their_way.popleft().wait()
        buffer = buffers[number % len(buffers)]
        buffer.write(message)
        handle = await out.send(buffer, len(message), node=1, port=0)
        on_their_way.append(handle)
        handles.append(handle)
    await done.wait()
    called = [handle.sent_cycle for handle in handles]
    return {
        "payload_bytes": len(content),
        "transfer_cycles": landed[-1] - called[0],
        "latency_cycles": [end - start for start, end in zip(called, landed, strict=True)],
        "clock_hz": cluster.config.nic.clock_hz,
        "series": {
            "bytes": [len(message) for message in messages],
            "sent_cycles": [cycle - called[0] for cycle in called],
            "landed_cycles": [cycle - called[0] for cycle in landed],
            "clock_hz": cluster.config.nic.clock_hz,
        },
        "sha256_sent": hashlib.sha256(content).hexdigest(),
        "sha256_received": received.hexdigest(),
    }
