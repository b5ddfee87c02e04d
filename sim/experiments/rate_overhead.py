"""rate-overhead: the cost of rate control for a flow that is not regulated.

gulati-thesis-2001 5.2, figures 5.1 and 5.2: ping-pong latency and bandwidth over a range of message sizes, with
unmodified GM and with the rate-controlled version. As there, the two also differ in segmentation. The unmodified
program cuts a message into equal packets, the rate-controlled one into MTU-sized ones and a rest ("we have disabled
that feature for our version"). A third program tells the two apart: rate-controlled, but with equal packets.

**The judged numbers.** The published ones are of the second program, so they are held against that one. With equal
packets in both they would hold with 0.00%, and say nothing. The thesis reports losses for some sizes and gains for
others: these come from the segmentation. The third program is there for the unit alone.

**The unit's cost.** The third program differs from the first in how it chooses a packet: by the unit's registers in
place of a queue in SRAM. The cycles of the queue's steps (`sdma_head`, `sdma_link`, `sdma_relink`: 5) are not derived
from instructions. They are set to what the accesses to the unit take (5), by the thesis' "less than 1%". So 0 cycles
apart means that the unit makes no packet wait longer than that, which is measured. If the queue took no time at all,
the unit would cost 5 cycles of the 1584 of a full packet, 0.3%.

**The range.** The thesis' means and its worst case are over "a range of message sizes" that it does not name. It was
fixed from the text before anything was run:

- Sizes have the same ratio, since the measurements are those of a ping-pong from small messages to large ones.
- They end at 64 KB, the longest message of the thesis (5.3, 5.4).
- They are no multiples of a packet alone, since "for some message sizes, the modified version of GM appears to perform
  better". That takes messages that the two programs cut unlike.

So the range is half octaves from 4 bytes to 64 KB; in the quick size every third.

**The deviation.** Just above the MTU the second packet is a few bytes long, and costs nearly as much work as the first.
Beside the range stand sizes of that kind (`BESIDE`). They lose more than the thesis' worst case, 4.5%, "for any message
size in the same range". Either its range had none of them, or its card had something that this one has not.

The measurement is as in 5.1. Latency: the standard ping-pong, a mean of whole round trips. Bandwidth: "pumping a large
number of messages, getting a small-sized acknowledgement from the receiver, and dividing the total volume of data
transferred by the total elapsed time". A point is one program and one message size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ..errors import SimulationError
from ..published import source, table
from ..units import KB, mb_per_s, microseconds
from .framework.base import Claim, Experiment, Outcome, Point, Size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..host.gm.port import GmPort
    from ..host.memory import Buffer
    from ..systems.cluster import Cluster

__all__ = ["RateOverhead", "RateOverheadParameters"]

PUBLISHED = table("rate-overhead")
PROGRAMS: Mapping[str, Mapping[str, Any]] = {
    "unmodified": {"rate_controlled": False, "segmentation": "equal"},
    "rate-controlled": {"rate_controlled": True, "segmentation": "mtu"},
    "equal packets": {"rate_controlled": True, "segmentation": "equal"},
}
"""By name: changes of `GmConfig`."""
SHORTEST_BYTES, STEPS = 4, 28
RANGE = {
    size: [round(SHORTEST_BYTES * 2 ** (step / 2)) for step in range(0, STEPS + 1, every)]
    for size, every in (("quick", 3), ("full", 1))
}
"""Message sizes, bytes: see above."""
BESIDE = {"quick": [4100], "full": [4100, 5000, 9000, 15000]}
"""Message sizes beside the range, bytes: MTU-sized packets and a short one."""
MTU_BYTES: int = table("rtc")["mtu_bytes"]
ROUND_TRIPS = {"quick": 4, "full": 8}
PUMPED_BYTES = {"quick": 200 * KB, "full": 300 * KB}
PUMPED_MESSAGES = {"quick": (4, 24), "full": (10, 60)}
"""Fewest and most messages of a bandwidth measurement. Nothing is random: the number matters for the ends of the pump,
not for luck."""
WORST_PCT = PUBLISHED["bandwidth_loss_worst_max_pct"]
IN_FLIGHT = 4
"""Messages that have been sent and not acknowledged."""
Bytes = Annotated[int, Field(ge=1, le=256 * KB)]


class RateOverheadParameters(Config):
    """Parameters of rate-overhead."""

    message_bytes: list[Bytes] = Field(
        [],
        max_length=64,
        description="message sizes, bytes; empty: those of the size",
        json_schema_extra={"range": f"list of sizes, each 1 to {256 * KB}"},
    )


class RateOverhead(Experiment):
    """Unmodified and rate-controlled programs, side by side."""

    name = "rate-overhead"
    asks = "What do latency and bandwidth of an unregulated flow lose to rate control?"
    source = source("rate-overhead")
    entry = "lanikai.sim.experiments.rate_overhead:measure"
    Parameters = RateOverheadParameters

    def points(self, parameters: RateOverheadParameters, size: Size) -> list[Point]:
        """A point a program and message size. Sizes that the user names are the only ones, and make no range."""
        least, most = PUMPED_MESSAGES[size]
        named = parameters.message_bytes
        lengths = [(length, not named) for length in named or RANGE[size]]
        if not named:
            lengths += [(length, False) for length in BESIDE[size]]
        return [
            Point(
                label=f"{program} {length}",
                parameters={"program": program, "message_bytes": length, "in_range": in_range},
                spec={
                    "program": program,
                    "message_bytes": length,
                    "round_trips": ROUND_TRIPS[size],
                    "messages": min(most, max(least, PUMPED_BYTES[size] // length)),
                },
            )
            for length, in_range in lengths
            for program in PROGRAMS
        ]

    def cluster(self, parameters: RateOverheadParameters) -> Any:
        """Two nodes, and two that stay idle."""
        from .measure.gm_hosts import gm_cluster

        return gm_cluster()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Mean round trip and bandwidth; the cycles of all round trips and of the whole transfer."""
        hz = measured["clock_hz"]
        payload = point.spec["messages"] * point.spec["message_bytes"]
        return {
            "round_trip_us": microseconds(measured["round_trips_cycles"] / point.spec["round_trips"], hz),
            "bandwidth_mb_per_s": mb_per_s(payload, measured["transfer_cycles"], hz),
            "round_trips_cycles": measured["round_trips_cycles"],
            "transfer_cycles": measured["transfer_cycles"],
        }

    def claims(self, parameters: RateOverheadParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: the section's, on the range; one on the sizes beside it; and that the unit itself costs nothing,
        on all sizes. The texts have the measured numbers."""
        latency = relative(outcomes, "round_trips_cycles")
        # The bytes are the same: a loss of bandwidth is a gain of time, against the longer one.
        loss = {length: one / (1 + one) for length, one in relative(outcomes, "transfer_cycles").items()}
        beside = {
            one.point.parameters["message_bytes"] for one in outcomes if not one.point.parameters["in_range"]
        }
        by_unit = [
            mine - other
            for name in ("round_trips_cycles", "transfer_cycles")
            for mine, other in _pairs(outcomes, name, "equal packets").values()
        ]
        ranged = [_without(latency, beside), _without(loss, beside)]
        mean_latency, mean_loss = (100 * sum(one) / len(one) if one else 0.0 for one in ranged)
        worst = 100 * max(ranged[1], default=0.0)
        least = 100 * min(latency.values(), default=0.0)
        named = "" if ranged[0] else "the message sizes were named, and are no range"
        claims = [
            Claim(
                text=f"latency grows by less than {PUBLISHED['latency_overhead_mean_max_pct']:g}% in the mean "
                f"over message sizes: {mean_latency:+.2f}%",
                holds=mean_latency < PUBLISHED["latency_overhead_mean_max_pct"],
            ).unless(named),
            Claim(
                text=f"bandwidth falls by less than {PUBLISHED['bandwidth_loss_mean_max_pct']:g}% in the mean "
                f"over message sizes: {mean_loss:.2f}%",
                holds=mean_loss < PUBLISHED["bandwidth_loss_mean_max_pct"],
            ).unless(named),
            Claim(
                text=f"and by at most {WORST_PCT:g}% for any of them: {worst:.2f}%",
                holds=worst <= WORST_PCT,
            ).unless(named),
            Claim(
                text="for some message sizes the rate-controlled version is the faster one, by its segmentation: "
                f"latency {least:+.2f}% at the least",
                holds=least < 0,
            ).unless("" if any(_unlike(one) for one in latency) else "no message is cut unlike by the two"),
            Claim.every(
                "with the same segmentation the run with the unit and the run with a queue of as many cycles are "
                f"0 cycles apart for every message size: {min(by_unit, default=0):+d} to {max(by_unit, default=0):+d}",
                (not one for one in by_unit),
            ),
        ]
        if beside and not named:
            length = max(beside, key=lambda one: loss[one])
            claims.append(
                Claim.unjudged(
                    f"bandwidth falls by at most {WORST_PCT:g}% beside the range, too: {100 * loss[length]:.1f}% at "
                    f"{length} bytes, latency grows by {100 * max(latency[one] for one in beside):.1f}%",
                    "a deviation, if the thesis' unnamed range has sizes just above a multiple of the MTU",
                )
            )
        return claims

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw bandwidth and round trip against message size above, a line a program. Below is each one's loss against
        the unmodified one. Sizes beside the range are hollow points."""
        panels = figure.subplots(2, 2, sharex=True)
        named = {one.point.parameters["message_bytes"]: one.point.parameters["in_range"] for one in outcomes}
        # Sizes that the user names are all there are, and stand beside none.
        beside = {length for length, inside in named.items() if not inside and any(named.values())}
        for program, (mark, color) in zip(PROGRAMS, (("o-", "C0"), ("s:", "C1"), ("x--", "C2")), strict=True):
            mine = sorted(
                (one for one in outcomes if one.point.parameters["program"] == program),
                key=lambda one: int(one.point.parameters["message_bytes"]),
            )
            absolute: list[dict[int, float]] = [
                {one.point.parameters["message_bytes"]: one.results[key] for one in mine}
                for key in ("bandwidth_mb_per_s", "round_trip_us")
            ]
            loss, late = (
                {n: 100 * part(x, y) for n, (x, y) in sorted(_pairs(outcomes, key, program).items())}
                for key, part in (
                    ("transfer_cycles", lambda mine, other: 1 - other / mine),
                    ("round_trips_cycles", lambda mine, other: mine / other - 1),
                )
            )
            for axes, values in zip(panels.flat, [*absolute, loss, late], strict=True):
                ranged = {n: value for n, value in values.items() if n not in beside}
                style = {"color": color, "markersize": 4}
                axes.plot(list(ranged), list(ranged.values()), mark, label=program, **style)
                apart = [(n, values[n]) for n in values if n in beside]
                axes.plot(
                    *zip(*apart, strict=True) if apart else ([], []), mark[0], markerfacecolor="w", **style
                )
        labels = ("bandwidth (MB/s)", "round trip (µs)", "bandwidth lost (%)", "latency added (%)")
        for axes, label in zip(panels.flat, labels, strict=True):
            axes.set_ylabel(label)
            axes.set_xscale("log", base=2)
        panels[0, 1].set_yscale("log")
        bound = panels[1, 0].axhline(
            WORST_PCT, color="black", linewidth=0.8, label=f"published: at most {WORST_PCT:g}%"
        )
        panels[0, 0].legend(fontsize="small")
        handles = [bound]
        if beside:
            hollow = {"color": "grey", "markerfacecolor": "w", "label": "beside the range"}
            handles += panels[1, 0].plot([], [], "o", markersize=4, **hollow)
        panels[1, 0].legend(handles=handles, loc="center left", fontsize="small")
        for axes in panels[1]:
            axes.set_xticks([4, 64, KB, 16 * KB], ["4", "64", "1 K", "16 K"])
            axes.set_xlabel("message (bytes)")
        figure.suptitle("Unmodified and rate-controlled GM, no flow regulated")


def relative(outcomes: Sequence[Outcome], name: str) -> dict[int, float]:
    """The result `name` of the rate-controlled program above the unmodified program's, as a part of the latter, by
    message size."""
    pairs = _pairs(outcomes, name, "rate-controlled")
    return {length: (mine - other) / other for length, (mine, other) in pairs.items()}


def _pairs(outcomes: Sequence[Outcome], name: str, program: str) -> dict[int, tuple[int, int]]:
    """The result `name` of a program, and of the unmodified one, by message size."""
    found: dict[str, dict[int, int]] = {who: {} for who in PROGRAMS}
    for one in outcomes:
        found[one.point.parameters["program"]][one.point.parameters["message_bytes"]] = one.results[name]
    return {length: (mine, found["unmodified"][length]) for length, mine in found[program].items()}


def _without(values: Mapping[int, float], left_out: set[int]) -> list[float]:
    return [one for length, one in values.items() if length not in left_out]


def _unlike(length: int) -> bool:
    """Whether the two segmentations cut a message of `length` bytes unlike."""
    return length > MTU_BYTES and length % MTU_BYTES != 0


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point between nodes 0 and 1: first the ping-pong, then the pump."""
    from lanikai.firmware.gm import GmConfig

    from .measure.gm_hosts import start_gm

    gm = GmConfig.for_nic(cluster.config.nic, **PROGRAMS[spec["program"]])
    hosts = start_gm(cluster, gm)[:2]
    ports = [await host.open_port(0) for host in hosts]
    content = cluster.random.randbytes(spec["message_bytes"])
    buffers = []
    for port in ports:
        buffer = await port.dma_malloc(len(content))
        buffer.write(content)
        buffers.append(buffer)
        for _ in range(2 * IN_FLIGHT):
            await port.provide_receive_buffer(await port.dma_malloc(len(content)))
    clock = cluster.clock
    clock.spawn(_answer(ports[1], buffers[1], spec, content), "node 1")

    start = clock.cycle
    for _ in range(spec["round_trips"]):
        await ports[0].send(buffers[0], node=1, port=0)
        await _receive(ports[0], content)
    round_trips = clock.cycle - start
    cluster.progress(0.3, "bandwidth")

    start = clock.cycle
    on_their_way: deque[Any] = deque()
    for _ in range(spec["messages"]):
        if len(on_their_way) == IN_FLIGHT:
            await on_their_way.popleft().wait()
        on_their_way.append(await ports[0].send(buffers[0], node=1, port=0))
    await ports[0].receive()
    return {
        "round_trips_cycles": round_trips,
        "transfer_cycles": clock.cycle - start,
        "clock_hz": cluster.config.nic.clock_hz,
    }


async def _receive(port: GmPort, content: bytes) -> None:
    """Receive a message, look at its bytes, give its buffer back."""
    message = await port.receive()
    if message.read() != content:
        raise SimulationError(f"a message from node {message.node} did not arrive as it was sent")
    await port.provide_receive_buffer(message.buffer)


async def _answer(port: GmPort, buffer: Buffer, spec: Mapping[str, Any], content: bytes) -> None:
    """Serve as node 1: every message of the ping-pong comes back; the last one pumped is answered by one byte."""
    for _ in range(spec["round_trips"]):
        await _receive(port, content)
        await port.send(buffer, node=0, port=0)
    for _ in range(spec["messages"]):
        await _receive(port, content)
    await port.send(buffer, 1, node=0, port=0)
