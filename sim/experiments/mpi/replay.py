"""mpi-replay: a recorded MPI program, alone and beside a competing flow, without and with reserved bandwidth.

The program is sweep3d on 2 x 2 ranks (`host/mpi/trace.py`), a wavefront. A rank receives 36 KB from each neighbour
before it, computes, and sends to those behind it. Another program's flow from one node to another shares card, host bus
and switch port with it.

A reservation asks the bandwidth manager for the program's flow that goes the same way, by MPI's attributes
(gulati-thesis-2001 4.4.2). The competing flow is then one of best effort (3.3.2) and has what is left. A reserved flow
is in the mean never faster than what it reserved, and the program waits for single messages. So it asks for all that
MPI can use.

The program is protected because the competing flow is slowed, and that flow is slowed only as a member of best effort.
A flow that has not joined the manager takes what it can, whoever reserved what. Three points show that it is the
reservation that does it, and how:

- *member*: the competing flow has joined, nothing is reserved. It is slowed by nobody, and slows the program.
- *throttled*: nothing is reserved, nobody has joined. The competing flow has by hand the IDT that the reservation of 52
  MB/s leaves it. It slows the program no more than beside the reservation.
- *a sixteenth*: so much is reserved, without a competing flow. The program's flow moves 5.5 MB/s in the mean, and it
  may make up for what it does not use while the program computes. So a quarter, 13 MB/s, holds it up no more than 52. A
  sixteenth, 3.25 MB/s, slows the program: the reservation's IDT is on the card.

The trace's machine computed 26 ms a step and communicated for less than 1 ms, so that no flow could slow it by more
than a few percent. `compute_scale` shortens the computing until the program waits for its messages most of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lanikai.hdl.config import Config
from pydantic import Field, model_validator

from ...errors import UserError
from ...units import KB, mb_per_s, microseconds
from ..framework.base import Claim, Experiment, Outcome, Point, Size
from ..measure.gm_hosts import NODES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...host.mpi.comm.intracomm import Intracomm
    from ...host.mpi.qos import QosRequest
    from ...host.mpi.trace import Trace
    from ...systems.cluster import Cluster

__all__ = ["MpiReplay", "MpiReplayParameters"]

MESSAGES = {"quick": 5, "full": 15}
"""First messages from each rank to each other that are played; the excerpt has 30 or 60 of each flow."""
SLOWER = 0.10
"""Relative: the least slowing of the program by a competing flow."""
RESTORED = 0.05
"""Relative: the most that the program takes longer than alone, with a reservation beside the competing flow."""
COMPETING_PORT = 5
"""Port of the competing flow at both nodes. MPI has port 0, the managers port 7."""
COMPETING_BYTES = 64 * KB
PROGRESS_CALLS = 8
WARM_UP_CYCLES = 20_000
"""Cycles between the start of the competing flow and the program's."""
RESERVED_MB_PER_S = 52.0
THROTTLED_TICKS = 434
"""IDT of the competing flow beside a reservation of 52 MB/s of MPI's messages, as the manager computes it."""
PART = 1 / 16
"""Part of the reservation, in the point that has a part of it."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A point.

    - `competing`: whether there is a competing flow.
    - `member`: whether that flow is a member of best effort.
    - `idt_ticks`: that flow's IDT (0: none).
    - `reserved`: the part of the reservation that is made.
    """

    competing: bool = False
    member: bool = False
    idt_ticks: int = 0
    reserved: float = 0.0


CASES = {
    "alone": Case(),
    "reserved": Case(reserved=1.0),
    "a sixteenth reserved": Case(reserved=PART),
    "competing": Case(competing=True),
    "competing, member": Case(competing=True, member=True),
    "competing, throttled": Case(competing=True, idt_ticks=THROTTLED_TICKS),
    "competing, reserved": Case(competing=True, member=True, reserved=1.0),
}
"""The points, by label."""


class MpiReplayParameters(Config):
    """Parameters of mpi-replay."""

    traces: list[Path] = Field(
        [],
        max_length=NODES,
        description="trace files, one a rank; empty: the excerpt of sweep3d that comes with the package",
        json_schema_extra={"range": "list of files"},
    )
    messages: int = Field(
        0, ge=0, le=10_000, description="first messages from each rank to each other; 0: those of the size"
    )
    compute_scale: float = Field(
        0.01, ge=0, le=10, description="computing takes so many times the recorded time"
    )
    competing: list[int] = Field(
        [3, 2],
        min_length=2,
        max_length=2,
        description="nodes that the competing flow goes from and to",
        json_schema_extra={"range": f"list of 2 different nodes, each 0 to {NODES - 1}"},
    )
    reserve: list[list[int]] = Field(
        [],
        max_length=NODES * (NODES - 1),
        description="flows of the program that have bandwidth reserved; empty: the one that goes the competing one's "
        "way",
        json_schema_extra={"range": "list of [sender, receiver], ranks of the trace"},
    )
    reserve_mb_per_s: float = Field(
        RESERVED_MB_PER_S,
        gt=0,
        le=100,
        description="bandwidth reserved for each of them, MB/s of its messages",
        json_schema_extra={"range": "above 0, at most what a rank can do with these messages"},
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        source, target = self.competing
        if source == target or not {source, target} <= set(range(NODES)):
            raise ValueError(f"competing = {self.competing}: two different nodes of 0 to {NODES - 1}")
        # A bad file is refused here, before anything is built; its error names file and line.
        traces = _read(self.traces, 0)
        if len(traces) > NODES:
            raise ValueError(f"the trace has {len(traces)} ranks: one a node, at most {NODES}")
        longest = _longest(traces)
        for flow in self.flows:
            if tuple(flow) not in longest:
                used = ", ".join(str(list(one)) for one in longest)
                raise ValueError(f"reserve: the program sends nothing from rank to rank {flow}, but {used}")
            peak = _peak_mb_per_s(longest[flow[0], flow[1]])
            if self.reserve_mb_per_s > peak:
                raise ValueError(
                    f"reserve_mb_per_s = {self.reserve_mb_per_s:g}: at most {peak:.1f}, which is what a rank can do "
                    f"with the messages from {flow[0]} to {flow[1]}"
                )
        return self

    @property
    def flows(self) -> list[list[int]]:
        """The flows that have bandwidth reserved."""
        return self.reserve or [self.competing]


def _read(paths: Sequence[Path | str], messages: int) -> list[Trace]:
    """The traces, cut. Raises TraceError."""
    from ...host.mpi.trace import cut, example_traces, read_traces

    traces = read_traces([Path(path) for path in paths] or example_traces())
    return cut(traces, messages) if messages else traces


def _peak_mb_per_s(message_bytes: int) -> float:
    """The bandwidth that a rank of these experiments can reach with messages of such a length."""
    from ...host.config import HostConfig
    from ...host.mpi.config import MpiConfig, MpiCosts
    from ...host.mpi.estimate import peak_mb_per_s

    return peak_mb_per_s(message_bytes, MpiCosts(), MpiConfig(), HostConfig())


def _longest(traces: Sequence[Trace]) -> dict[tuple[int, int], int]:
    """The length of the longest message of each flow that the traces use, 1 at least."""
    found: dict[tuple[int, int], int] = {}
    for trace in traces:
        for call in trace.calls:
            if call.name == "MPI_Send":
                flow = (trace.rank, call.peer)
                found[flow] = max(1, call.length, found.get(flow, 0))
    return dict(sorted(found.items()))


class MpiReplay(Experiment):
    """A recorded MPI program beside a competing flow."""

    name = "mpi-replay"
    asks = "How much does another program's flow slow an MPI program, and does a reservation undo it?"
    source = "gulati-thesis-2001 4.4.2 and 1.1; a trace of sweep3d on 2 x 2 ranks"
    entry = "lanikai.sim.experiments.mpi.replay:measure"
    Parameters = MpiReplayParameters
    by_flow = ("inside_mpi_share",)
    element = "rank"

    def points(self, parameters: MpiReplayParameters, size: Size) -> list[Point]:
        """Alone and beside the competing flow, without and with a reservation, and the points that tell the two apart.
        Raises UserError for reservations that the cluster cannot keep together."""
        self._check_reservations(parameters)
        messages = parameters.messages or MESSAGES[size]
        return [
            Point(
                label=label,
                parameters={
                    "competing": case.competing,
                    "member": case.member,
                    "competing_idt_ticks": case.idt_ticks,
                    "reserved": case.reserved > 0,
                    "messages": messages,
                    "compute_scale": parameters.compute_scale,
                    "reserve": parameters.flows if case.reserved else [],
                    "reserve_mb_per_s": parameters.reserve_mb_per_s * case.reserved,
                },
                spec={
                    "traces": [str(path.resolve()) for path in parameters.traces],
                    "messages": messages,
                    "compute_scale": parameters.compute_scale,
                    "competing": parameters.competing if case.competing else None,
                    "member": case.member,
                    "competing_idt_ticks": case.idt_ticks,
                    "reserve": parameters.flows if case.reserved else [],
                    "reserve_mb_per_s": parameters.reserve_mb_per_s * case.reserved,
                },
            )
            for label, case in CASES.items()
        ]

    def _check_reservations(self, parameters: MpiReplayParameters) -> None:
        """As the managers do, before anything is built: each rank is at port 0 of its node, and asks in turn."""
        from ...host.mpi.config import MpiConfig
        from ...host.mpi.estimate import raw_mb_per_s
        from ...manager.flows import FlowId
        from ...manager.plan import Planned, check_plan

        cluster, longest = self.cluster(parameters), _longest(_read(parameters.traces, 0))
        plan = []
        for source, target in sorted(parameters.flows, key=lambda flow: flow[0]):
            size, mtu_bytes = longest[source, target], cluster.nic.mtu_bytes
            name = f"reserve_mb_per_s = {parameters.reserve_mb_per_s:g} from rank {source} to rank {target}"
            raw = raw_mb_per_s(parameters.reserve_mb_per_s, size, MpiConfig(), mtu_bytes)
            plan.append(Planned(name=name, flow=FlowId(source, 0, target, 0), mb_per_s=raw))
        check_plan(plan, network=cluster.network, nic=cluster.nic)

    def cluster(self, parameters: MpiReplayParameters) -> Any:
        """A rank on each node."""
        from ..measure.gm_hosts import gm_cluster

        return gm_cluster()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Time of the program, the part of it that its ranks were inside MPI, the competing flow's bandwidth."""
        hz = measured["clock_hz"]
        return {
            "replay_us": microseconds(measured["replay_cycles"], hz),
            "inside_mpi_share": [inside / measured["replay_cycles"] for inside in measured["call_cycles"]],
            "messages": measured["messages"],
            "competing_mb_per_s": mb_per_s(measured["competing_bytes"], measured["replay_cycles"], hz),
        }

    def claims(self, parameters: MpiReplayParameters, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The claims: the effect of a competing flow, the use of a reservation, and that it is the reservation."""
        time = {one.point.label: one.results["replay_us"] for one in outcomes}
        rate = {one.point.label: one.results["competing_mb_per_s"] for one in outcomes}
        messages = {one.results["messages"] for one in outcomes}
        if missing := [name for name in CASES if name not in time]:
            return [
                Claim.unjudged(
                    "what a competing flow and a reservation do to the program",
                    f"no point {missing[0]!r} has run",
                )
            ]
        alone, restored = time["alone"], time["competing, reserved"]
        other = ""
        if (parameters.reserve_mb_per_s, parameters.flows) != (RESERVED_MB_PER_S, [parameters.competing]):
            other = f"the IDT is that of one reserved flow of {RESERVED_MB_PER_S:g} MB/s"
        return [
            Claim(
                text=f"a competing flow slows the program, by {SLOWER:.0%} at least",
                holds=time["competing"] >= (1 + SLOWER) * alone,
            ),
            Claim(
                text=f"with a reservation it takes what it takes alone, at most {RESTORED:.0%} more, beside the "
                f"same flow as a member of best effort, which then has {rate['competing, reserved']:.1f} MB/s in place "
                f"of {rate['competing']:.1f}",
                holds=restored <= (1 + RESTORED) * alone,
            ),
            Claim(
                text=f"it is the reservation that does it: with the same member and none the program is slowed by "
                f"{SLOWER:.0%} at least",
                holds=time["competing, member"] >= (1 + SLOWER) * alone,
            ),
            Claim(
                text="it does it by the competing flow's IDT: with that IDT set by hand, and nothing reserved, the "
                f"program takes at most {RESTORED:.0%} more than alone",
                holds=time["competing, throttled"] <= (1 + RESTORED) * alone,
            ).unless(other),
            Claim(
                text=f"the reserved flow has its IDT: with a sixteenth reserved the program takes {SLOWER:.0%} longer "
                "at least, though nothing competes",
                holds=time["a sixteenth reserved"] >= (1 + SLOWER) * alone,
            ),
            Claim(
                text=f"the reservation alone costs it no more than that ({RESTORED:.0%})",
                holds=time["reserved"] <= (1 + RESTORED) * alone,
            ),
            Claim(
                text="the same messages are sent every time", holds=len(messages) == 1 and 0 not in messages
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Time of the program in each case, as a multiple of what it takes alone."""
        axes = figure.add_subplot()
        alone = outcomes[0].results["replay_us"]
        for place, one in enumerate(outcomes):
            ratio, beside = one.results["replay_us"] / alone, one.results["competing_mb_per_s"]
            axes.bar(place, ratio, color=f"C{place}")
            axes.text(
                place,
                min(ratio, 1.0) / 2,  # below the lines
                f"{one.results['replay_us'] / 1000:.1f} ms\n"
                + (f"beside\n{beside:.1f} MB/s" if beside else "beside\nnothing"),
                ha="center",
                va="center",
                color="white",
                fontsize="small",
            )
        axes.axhline(1, color="black", linewidth=0.8)
        axes.axhline(
            1 + RESTORED,
            color="black",
            linewidth=0.8,
            linestyle="dashed",
            label=f"restored: at most {1 + RESTORED:g}",
        )
        axes.legend()
        labels = [one.point.label.replace(", ", ",\n").replace(" reserved", "\nreserved") for one in outcomes]
        axes.set_xticks(range(len(outcomes)), labels, fontsize="small")
        axes.set_ylabel("time of the program, alone = 1")
        axes.set_title("A replayed MPI program beside a competing flow")


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from ...host.mpi.gm_transport import GmTransport
    from ...host.mpi.qos import QosRequest, attach_bandwidth
    from ...host.mpi.replay import replay
    from ...host.mpi.world import run_ranks
    from ...manager.client import BandwidthClient
    from ...manager.start import start_managers
    from ..measure.gm_flows import Flow, prepare_flows
    from ..measure.hosts import open_programs, start_hosts

    traces = _read(spec["traces"], spec["messages"])
    longest = _longest(traces)
    clock = cluster.clock
    hosts = start_hosts(cluster, "mpi")
    managers = await start_managers(hosts, cluster.network)
    worlds = await open_programs(cluster, "mpi", hosts[: len(traces)])
    for world in worlds:
        transport = world.process.transport
        assert isinstance(transport, GmTransport)
        attach_bandwidth(world, BandwidthClient(managers[world.rank], transport.port))
        requests = [
            QosRequest(
                dest=target,
                mb_per_s=spec["reserve_mb_per_s"],
                message_bytes=longest[source, target],
            )
            for source, target in spec["reserve"]
            if source == world.rank
        ]
        if requests:
            await _reserve(world, requests)
    competing_bytes = 0
    running = False

    def deliver(flow: int, length: int) -> None:
        nonlocal competing_bytes
        if running:
            competing_bytes += length

    if spec["competing"] is not None:
        source, target = spec["competing"]
        flow = Flow(
            source=source,
            source_port=COMPETING_PORT,
            target=target,
            target_port=COMPETING_PORT,
            message_bytes=COMPETING_BYTES,
            idt_ticks=spec["competing_idt_ticks"],
        )
        (sender,) = await prepare_flows(cluster, hosts, [flow], deliver)
        if spec["member"]:
            client = BandwidthClient(managers[source], sender.port)
            await client.join(target, COMPETING_PORT)
        sender.start()
    await clock.sleep(WARM_UP_CYCLES)
    calls = sum(len(trace.calls) for trace in traces)
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done % PROGRESS_CALLS == 0:
            cluster.progress(done / calls, f"{done} of {calls} calls")

    running = True
    began = clock.cycle
    played = await run_ranks(
        clock,
        worlds,
        lambda world: replay(world, traces[world.rank], spec["compute_scale"], count),
        ending=False,
    )
    running = False
    return {
        "replay_cycles": clock.cycle - began,
        "call_cycles": [one.call_cycles for one in played],
        "messages": sum(one.messages for one in played),
        "competing_bytes": competing_bytes,
        "clock_hz": cluster.config.nic.clock_hz,
    }


async def _reserve(world: Intracomm, requests: Sequence[QosRequest]) -> None:
    """Ask for bandwidth for flows of a rank. Raises UserError if it is refused."""
    from ...host.mpi.qos import QOS

    await world.Set_attr(QOS, requests)
    answer = world.Get_attr(QOS)
    if not answer.granted:
        raise UserError(f"mpi-replay: rank {world.rank}: {answer.reason}; reserve_mb_per_s is too high")
