"""video-reservation: films that reserve MB/s have them, whatever the sizes of their frames, and within a bound of time.

Three films leave one node for three others, a frame a message, beside best-effort flows of web searches. Their frames
are short, so their packets are short, too: an IDT that counts packets gives them a part of what they reserved. Here the
request says how long a frame is on average and what burst the film has, and the card charges bytes.

A film is played faster than it was made. So over the time of the run its mean rate is what it asks for, however its
frames grow in it.

The points:

- `always`: every film always has its next frame ready. It is to have what it was granted, no more and no less.
- `on its clock`: frames come at their times, at `LOAD` of what was granted. All of them are to arrive, each within the
  bound that the grant states.
- controls, on their clock too. In one films reserve as the document does, where packets are charged and are taken to
  be full. In one films reserve nothing, beside flows that have not joined the best-effort flows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config
from pydantic import Field, FiniteFloat, model_validator

from ..errors import SimulationError, UserError
from ..manager.flows import FlowId
from ..manager.frames import burst_bytes, mean_bytes, read_frames
from ..manager.plan import Planned, check_plan
from ..units import KB, MB, mb_per_s, microseconds
from .framework.base import Claim, Experiment, Outcome, Point, Size, within
from .measure.gm_hosts import gm_cluster

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..systems.cluster import Cluster

__all__ = ["VideoReservation", "VideoReservationParameters"]

FOLDER = Path(__file__).with_name("video")
FILMS = ("silence-mpeg4.bytes", "starwars-mpeg1.bits", "jurassic-mpeg4.bytes")
RATES_MB_PER_S = (12.0, 2.0, 2.0)
"""The films' requests. The first one asks for more than its turn: where flows send packets in turn it has 6.8 MB/s in
its frames. With 6 it would need no reservation."""
TOLERANCE = 0.03
"""Relative: the most that the arriving bandwidth may be from the granted one."""
LOAD = 0.8
"""Load of a film on its clock, as a part of what it was granted. It is below 1: a queue that is never empty has no
bound."""
SPAN_US = {"quick": 40_000, "full": 250_000}
"""Time of a run. In the shorter one some 20 frames of the largest film go out, some 150 of the smallest. Each end is
late by a packet of each of a dozen flows at most, 0.6 ms: 1.4%."""
SOURCE, MASTER = 0, 3
BULK = tuple((port, target) for port in (3, 4, 5, 6) for target in (1, 2))
"""Ports and targets of the web searches' flows, from the films' node."""
BULK_BYTES_MAX = 64 * KB
RECEIVE_BUFFERS = 8
CASES = {
    "always": "reserved by bytes, always a frame ready",
    "clock": "reserved by bytes, on its clock",
    "packets": "control: reserved as packets of 4096 bytes",
    "nothing": "control: nothing reserved",
}


class VideoReservationParameters(Config):
    """Parameters of video-reservation."""

    films: list[Path] = Field(
        [],
        max_length=3,
        description="files of frame sizes, a frame a line, in bytes (*.bytes) or bits (*.bits); empty: three excerpts",
        json_schema_extra={"range": "list of 1 to 3 files"},
    )
    mb_per_s: list[FiniteFloat] = Field(
        [],
        max_length=3,
        description=f"what each film reserves, MB/s; empty: {', '.join(f'{one:g}' for one in RATES_MB_PER_S)}",
        json_schema_extra={"range": "list of as many rates as films, each above 0 and at most 20"},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mb_per_s and len(self.mb_per_s) != len(self.films or FILMS):
            raise ValueError(
                f"mb_per_s has {len(self.mb_per_s)} rates for {len(self.films or FILMS)} films: one for each"
            )
        for number, rate in enumerate(self.mb_per_s):
            if not 0 < rate <= 20:
                raise ValueError(f"mb_per_s[{number}] = {rate:g}: above 0 and at most 20")
        for film in self.films:
            try:
                read_frames(film)
            except UserError as error:
                raise ValueError(str(error)) from None
        return self

    def plays(self) -> list[tuple[Path, float]]:
        """Every film and the bandwidth that it reserves."""
        films = self.films or [FOLDER / name for name in FILMS]
        return list(zip(films, self.mb_per_s or RATES_MB_PER_S, strict=False))


class VideoReservation(Experiment):
    """Films beside web searches."""

    name = "video-reservation"
    asks = "Do films have the MB/s that they reserve, and each frame within the bound that is stated?"
    source = "no document: frame sizes of films, sizes of web searches"
    entry = "lanikai.sim.experiments.video_reservation:measure"
    Parameters = VideoReservationParameters
    by_flow = (
        "film_*",
        "bandwidth_mb_per_s",
        "arrived_part",
        "longest_latency_us",
        "mean_latency_us",
        "bound_us",
        "last_arrival_before_end_us",
    )
    element = "film"

    def points(self, parameters: VideoReservationParameters, size: Size) -> list[Point]:
        """A point a case. Raises UserError for films whose rates no card can keep, or the node cannot keep together."""
        films: list[dict[str, Any]] = []
        plan: list[Planned] = []
        for number, (path, rate) in enumerate(parameters.plays()):
            offered = LOAD * rate
            frames = read_frames(path)
            # More than it is granted, so that one that is too fast is seen.
            played = _cut(frames, 1.2 * rate * SPAN_US[size])
            sizes, due = _cut(frames, rate * SPAN_US[size]), _cut(frames, offered * SPAN_US[size])
            plan.append(
                Planned(
                    name=f"film {str(path)!r}",
                    flow=FlowId(SOURCE, number, 1 + number, number),
                    mb_per_s=rate,
                    message_bytes=mean_bytes(sizes),
                )
            )
            films.append(
                {
                    "name": path.stem,
                    "mb_per_s": rate,
                    "frames": played,
                    "sizes": sizes,
                    "message_bytes": mean_bytes(sizes),
                    "interval_us": sum(due) / len(due) / offered,
                    "due": due,
                }
            )
        cluster = self.cluster(parameters)
        check_plan(plan, network=cluster.network, nic=cluster.nic, by_bytes=True)
        for film in films:
            film["burst_bytes"] = burst_bytes(
                film.pop("due"), interval_us=film["interval_us"], mb_per_s=film["mb_per_s"]
            )
        names = ("name", "mb_per_s", "message_bytes", "burst_bytes", "interval_us")
        return [
            Point(
                label=label,
                parameters={"case": case, **{f"film_{key}": [film[key] for film in films] for key in names}},
                spec={"case": case, "films": films, "span_us": SPAN_US[size]},
                workload="films",
            )
            for case, label in CASES.items()
        ]

    def cluster(self, parameters: Any) -> Any:
        """A node that sends, three that receive; cards that may charge bytes."""
        config = gm_cluster()
        return config.replace(nic=config.nic.replace(rate_charge="bytes"))

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Results of every film:

        - MB/s from its first arrival to its last;
        - the part of the bytes that were due that arrived in time to be seen;
        - the longest and the mean time of a frame, from when it was due to when its receiver had it;
        - the bound.
        """
        hz = measured["clock_hz"]
        span = measured["span_cycles"]
        found: dict[str, Any] = {
            name: [] for name in (RATE, ARRIVED, LONGEST, "mean_latency_us", BOUND, LAST)
        }
        for film in measured["films"]:
            arrivals, sizes, due = film["arrivals"], film["sizes"], film["due"]
            count = len(arrivals)
            time = arrivals[-1] - arrivals[0] if count > 1 else 0
            found[RATE].append(mb_per_s(sum(sizes[1:count]), time, hz) if time else 0.0)
            bound = film["bound_us"]
            seen = [n for n, cycle in enumerate(due) if cycle + bound * hz / 1e6 <= span]
            asked = sum(sizes[n] for n in seen)
            found[ARRIVED].append(sum(sizes[n] for n in seen if n < count) / asked if asked else None)
            # A frame that has not arrived is as old as the run.
            late = [(arrivals[n] if n < count else span) - due[n] for n in seen]
            found[LONGEST].append(microseconds(max(late), hz) if late else None)
            found["mean_latency_us"].append(microseconds(sum(late) / len(late), hz) if late else None)
            found[BOUND].append(bound)
            found[LAST].append(microseconds(span - arrivals[-1], hz) if arrivals else None)
        found["bulk_mb_per_s"] = mb_per_s(measured["bulk_bytes"], span, hz)
        return found

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: what a reservation promises, and that it is the reservation that keeps it."""
        cases = {outcome.point.parameters["case"]: outcome.results for outcome in outcomes}
        usual = not parameters.films and not parameters.mb_per_s
        other = "" if usual else "the controls are made for the three excerpts"

        def films(case: str, *names: str) -> Iterator[tuple[Any, ...]]:
            """These results of every film of a case; none, if the case has not run."""
            found = cases.get(case, {})
            return zip(*(found.get(name, ()) for name in names), strict=True)

        def late(case: str) -> list[bool]:
            """Whether films are late and some of their bytes do not arrive, for a control that has run."""
            found = list(films(case, LONGEST, BOUND, ARRIVED))
            if not found:
                return []
            ages = any(age is not None and age > bound for age, bound, _ in found)
            return [ages and any(part is not None and part < 1 - TOLERANCE for _, _, part in found)]

        return [
            Claim.every(
                f"a film that always has a frame ready has what it was granted (within {TOLERANCE:.0%}), to the end",
                [
                    within(got, rate, TOLERANCE) and last is not None and last <= bound
                    for (got, last, bound), (_, rate) in zip(
                        films("always", RATE, LAST, BOUND), parameters.plays(), strict=False
                    )
                ],
            ),
            Claim.every(
                f"of a film on its clock all that was due arrives (within {TOLERANCE:.0%})",
                [got is not None and got >= 1 - TOLERANCE for (got,) in films("clock", ARRIVED)],
            ),
            Claim.every(
                "every frame arrives within the time that the grant states",
                [age is not None and age <= bound for age, bound in films("clock", LONGEST, BOUND)],
            ),
            Claim.every(
                "control: where packets are charged and taken to be full a film is late, some of it does not arrive",
                late("packets"),
            ).unless(other),
            Claim.every(
                "control: without a reservation a film is late, and some of it does not arrive",
                late("nothing"),
            ).unless(other),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Draw a panel for each point: age of every frame when it arrived, over time. The bounds are lines, where there
        are any."""
        panels = figure.subplots(2, 2, sharex=True, sharey=True).flat
        for axes, outcome in zip(panels, outcomes, strict=False):
            bounds = outcome.results[BOUND]
            for number, film in enumerate(outcome.series["films"]):
                color = f"C{number}"
                axes.plot(film["due_ms"], film["late_ms"], ".", markersize=3, color=color, label=film["name"])
                if outcome.point.parameters["case"] != "always":  # a queue that is never empty has no bound
                    axes.axhline(bounds[number] / 1000, color=color, linewidth=0.8, linestyle="--")
            axes.set_title(outcome.point.label, fontsize=9)
            axes.set_yscale("log")
            axes.set_ylabel("age of a frame (ms)", fontsize=8)
            axes.set_xlabel("time that it was due (ms)", fontsize=8)
        figure.axes[0].legend(fontsize=7)
        figure.suptitle("Age of films' frames on arrival, and its bounds on their clock (dashed)")


RATE, ARRIVED, LONGEST = "bandwidth_mb_per_s", "arrived_part", "longest_latency_us"
BOUND, LAST = "bound_us", "last_arrival_before_end_us"


def _cut(frames: Sequence[int], needed: float) -> list[int]:
    """The film's start of so many bytes, over again if it is shorter."""
    played: list[int] = []
    total = 0
    while total < needed:
        played.append(frames[len(played) % len(frames)])
        total += played[-1]
    return played


def search_bytes(share: float) -> int:
    """The size of a web search's flow that a part `share` of all flows are below, 1 to `BULK_BYTES_MAX`.

    It lies on straight lines between the points of `websearch.cdf`.
    """
    points = [
        (float(size), float(percent) / 100)
        for size, percent in (line.split() for line in (FOLDER / "websearch.cdf").read_text().splitlines())
    ]
    for (x0, y0), (x1, y1) in pairwise(points):
        if share <= y1:
            return max(1, min(BULK_BYTES_MAX, round(x0 + (x1 - x0) * (share - y0) / (y1 - y0))))
    return BULK_BYTES_MAX


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from lanikai.firmware.gm import GmConfig

    from ..manager.client import BandwidthClient
    from ..manager.config import ManagerConfig
    from ..manager.start import start_managers
    from .measure.gm_hosts import start_gm

    case, clock, nic = spec["case"], cluster.clock, cluster.config.nic
    charge = "packets" if case == "packets" else "bytes"
    hosts = start_gm(cluster, GmConfig.for_nic(nic, charge=charge))
    managers = await start_managers(hosts, cluster.network, ManagerConfig(master=MASTER))
    random, bulk_bytes = cluster.random, 0
    cycles_a_us = nic.clock_hz / 1e6
    span = round(spec["span_us"] * cycles_a_us)
    started = 0

    async def bulk(port: Any, target: int, number: int) -> None:
        """Keep a web search under way, and the next one ready."""
        nonlocal bulk_bytes
        into = await hosts[target].open_port(number)
        for _ in range(RECEIVE_BUFFERS):
            await into.provide_receive_buffer(await into.dma_malloc(BULK_BYTES_MAX))
        out = await port.dma_malloc(BULK_BYTES_MAX)
        if case != "nothing":
            await BandwidthClient(managers[SOURCE], port).join(target, number)

        async def send() -> None:
            under_way: deque[Any] = deque()
            while True:
                size = search_bytes(random.random())
                under_way.append(await port.send(out, size, node=target, port=number))
                if len(under_way) == 2:
                    await under_way.popleft().wait()

        async def receive() -> None:
            nonlocal bulk_bytes
            while True:
                message = await into.receive()
                bulk_bytes += message.length
                await into.provide_receive_buffer(message.buffer)

        clock.spawn(receive(), f"bulk to {target}.{number}")
        clock.spawn(send(), f"bulk from {number} to {target}")

    class Film:
        """A film from port `number` to the node after it."""

        def __init__(self, number: int, film: Mapping[str, Any]) -> None:
            self.number, self.film, self.target = number, film, 1 + number
            self.due: list[int] = []
            self.arrivals: list[int] = []
            self.bound_us = 0.0

        async def prepare(self) -> None:
            """Prepare ports, buffers, and the reservation."""
            most = max(self.film["frames"])
            self.into = await hosts[self.target].open_port(self.number)
            for _ in range(2 * RECEIVE_BUFFERS):
                await self.into.provide_receive_buffer(await self.into.dma_malloc(most))
            self.port = await hosts[SOURCE].open_port(self.number)
            self.out = await self.port.dma_malloc(most)
            self.content = random.randbytes(most)
            self.out.write(self.content)
            client, rate = BandwidthClient(managers[SOURCE], self.port), self.film["mb_per_s"]
            burst = self.film["burst_bytes"]
            # The bound is the same whether there is a reservation that keeps it or not.
            self.bound_us = managers[SOURCE].latency_us(round(rate * MB), burst)
            if case == "packets":
                await client.request(self.target, self.number, rate)
            elif case != "nothing":
                grant = await client.request(
                    self.target, self.number, rate, message_bytes=self.film["sizes"], burst_bytes=burst
                )
                assert grant.latency_us == self.bound_us

        async def play(self) -> None:
            """Send every frame when it is due, or as soon as a token is free."""
            under_way: deque[Any] = deque()
            for number, size in enumerate(self.film["frames"]):
                if case == "always":
                    if len(under_way) == 4:
                        await under_way.popleft().wait()
                    self.due.append(clock.cycle)
                else:
                    self.due.append(started + round(number * self.film["interval_us"] * cycles_a_us))
                    if self.due[-1] > clock.cycle:
                        await clock.sleep(self.due[-1] - clock.cycle)
                    while not self.port.send_tokens:
                        await under_way.popleft().wait()
                under_way.append(await self.port.send(self.out, size, node=self.target, port=self.number))

        async def receive(self) -> None:
            for size in self.film["frames"]:
                message = await self.into.receive()
                if message.read() != self.content[:size]:
                    raise SimulationError(f"a frame of {self.film['name']} did not arrive as it was sent")
                self.arrivals.append(clock.cycle)
                await self.into.provide_receive_buffer(message.buffer)

    films = [Film(number, film) for number, film in enumerate(spec["films"])]
    for film in films:
        await film.prepare()
    ports: dict[int, Any] = {}
    for number, target in BULK:
        if number not in ports:
            ports[number] = await hosts[SOURCE].open_port(number)
        await bulk(ports[number], target, number)
    started, bulk_bytes = clock.cycle, 0
    for film in films:
        clock.spawn(film.receive(), f"receiver of {film.film['name']}")
        clock.spawn(film.play(), f"player of {film.film['name']}")
    for step in range(20):
        await clock.sleep(span * (step + 1) // 20 - (clock.cycle - started))
        cluster.progress((step + 1) / 20, f"{len(films[0].arrivals)} frames of the first film")
    due = [[cycle - started for cycle in film.due] for film in films]
    arrived = [[cycle - started for cycle in film.arrivals if cycle <= started + span] for film in films]
    return {
        "clock_hz": nic.clock_hz,
        "span_cycles": span,
        "bulk_bytes": bulk_bytes,
        "films": [
            {"arrivals": b, "due": a, "sizes": film.film["frames"], "bound_us": film.bound_us}
            for film, a, b in zip(films, due, arrived, strict=True)
        ],
        "series": {
            "films": [
                {
                    "name": film.film["name"],
                    "due_ms": [one / cycles_a_us / 1000 for one in a[: len(b)]],
                    "late_ms": [(y - x) / cycles_a_us / 1000 for x, y in zip(a, b, strict=False)],
                }
                for film, a, b in zip(films, due, arrived, strict=True)
            ]
        },
    }
