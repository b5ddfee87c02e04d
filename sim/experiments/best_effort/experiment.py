"""best-effort: flows without a reservation have what premium flows leave, and follow as these come and go.

gulati-thesis-2001 5.6, figures 5.11 and 5.12: one node sends. Its best-effort flows have joined the bandwidth manager
(`lanikai.sim.manager`). Premium flows ask it for 40 and 20 MB/s, send for some time, and end. As in the thesis, the
bandwidth is read off the packet dispatch frequency: the clock at which the control program chooses each packet. The
requests travel over the same network as the packets, to a master on a node that also receives.

Two more points hold the thesis' way of sharing, "sub-optimal in terms of overall network utilization" (4.3), against
weighted max-min sharing. One of two best-effort flows of a node goes to a node that a premium flow of another node
leaves 15 MB/s. The 15 MB/s are the thesis': there a node takes in no more than one sender's peak.

In the last point premium flows have all that a node carries both ways, which the manager's refusal tells. A best-effort
flow beside them has nothing.

**The stages.** A point is a list of stages. In each, flows that end stop sending and give back what they hold; flows
that begin get it and start to send. After `SETTLE_CYCLES` a window is measured: each flow's dispatches in it.
Dispatches that its ends cut count in part (`gm_windows`).

**The fit.** A node's sum of bandwidths, 78 MB/s, is the manager's constant (`sim/manager/capacity.py`), taken from the
sums of the published bandwidths. So 38, 18, 39 and 29 MB/s follow from it and from the requests of premium flows. The
judged question is whether the flows have what the manager gives them, on the cards, as others come and go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanikai.hdl.config import Config
from pydantic import Field

from ...published import source
from ...units import KB, MB, mb_per_s
from ..framework.base import Claim, Experiment, Outcome, Point, Size, within
from ..measure.gm_flows import BANDWIDTH_TOLERANCE, SHARE_TOLERANCE, Flow, prepare_flows
from ..measure.gm_windows import amount_within, wait_for_next
from .cases import CASES, PEAK_MB_PER_S, REST, Case, case_named
from .plot import draw

if TYPE_CHECKING:
    from lanikai.firmware.gm import GmProgram
    from lanikai.firmware.gm.wire import FlowKey
    from matplotlib.figure import Figure

    from ...systems.cluster import Cluster

__all__ = ["BestEffortExperiment", "BestEffortParameters"]

PREMIUM_TOLERANCE = 0.02
"""Relative: the most that a premium flow may be from what it was promised."""
GAIN = 1.25
"""The least factor by which max-min sharing must raise the sum of the best-effort flows, in the point that is made for
it.

The flow that is held to 15 MB/s leaves 24 of the 39 MB/s that 4.3 sets aside for it.
"""
RATES, ALLOWED, LATE = "_mb_per_s", "_allowed_mb_per_s", "_idt_error_ticks"
MASTER = 3
WINDOW_CYCLES = {"quick": 400_000, "full": 600_000}
"""The window of a stage.

Each packet is early or late by at most a packet of another flow, 1600 cycles: 0.4% of the shorter window at either end.
So two flows that share equally are seen to within 1%.
"""
SETTLE_CYCLES = 20_000
"""Rest before a window: a packet of the slowest flow that was dispatched under the old IDT, and some. Then arrears are
served."""
BIN_TICKS = {"quick": 1000, "full": 2000}
"""Ticks of a point of the plot."""


class BestEffortParameters(Config):
    """Parameters of best-effort."""

    message_bytes: int = Field(16 * KB, ge=1, le=64 * KB, description="bytes of a message")


class BestEffortExperiment(Experiment):
    """Best-effort flows beside premium flows that come and go."""

    name = "best-effort"
    asks = "Do best-effort flows get what premium flows leave, as these come and go?"
    source = source("best-effort")
    entry = "lanikai.sim.experiments.best_effort.experiment:measure"
    Parameters = BestEffortParameters
    by_flow = ("*_mb_per_s", "*_idt_error_ticks")

    def points(self, parameters: BestEffortParameters, size: Size) -> list[Point]:
        """A point a case."""
        return [self._point(case, parameters, size) for case in CASES]

    def _point(self, case: Case, parameters: BestEffortParameters, size: Size) -> Point:
        published = dict(case.published) if parameters.message_bytes % 4096 == 0 else {}
        return Point(
            label=case.label,
            parameters={
                "case": case.name,
                "policy": case.policy,
                "message_bytes": parameters.message_bytes,
            },
            spec={
                "case": case.name,
                "message_bytes": parameters.message_bytes,
                "window_cycles": WINDOW_CYCLES[size],
                "bin_ticks": BIN_TICKS[size],
            },
            published=published or None,
            tolerance=dict.fromkeys(published, BANDWIDTH_TOLERANCE) or None,
        )

    def cluster(self, parameters: BestEffortParameters) -> Any:
        """A sender and three receivers."""
        from ..measure.gm_hosts import gm_cluster

        return gm_cluster()

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Results of every stage:

        - bandwidth of every flow;
        - the bandwidth that its node's manager said that it may have (None without a standing);
        - the difference between the IDT on a premium flow's card and the granted one (None for others);
        - counters of the master that are not zero at the end.
        """
        hz, mtu = measured["clock_hz"], measured["mtu_bytes"]
        found: dict[str, Any] = {}
        for stage in measured["stages"]:
            found[stage["name"] + RATES] = [
                mb_per_s(mtu * count, stage["window_cycles"], hz) for count in stage["packets"]
            ]
            found[stage["name"] + LATE] = list(stage["idt_error_ticks"])
            found[stage["name"] + ALLOWED] = list(stage["allowed_mb_per_s"])
        found["counters_left"] = measured["counters_left"]
        if "first" + RATES in found:
            packets_per_s = found["first" + RATES][0] * MB / mtu
            found["packets_per_1000_ticks_first"] = packets_per_s * 1000 * measured["tick_cycles"] / hz
        best_effort = [n for n, flow in enumerate(_case(point).flows) if flow.mb_per_s is None]
        last = _case(point).stages[-1].name
        found["best_effort_sum_mb_per_s"] = sum(found[last + RATES][n] for n in best_effort)
        return found

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """The section's claims, on every stage of every point; then the gain of max-min sharing."""
        stages = [(_case(outcome.point).flows, stage) for outcome in outcomes for stage in _stages(outcome)]
        found = {outcome.point.parameters["case"]: outcome.results for outcome in outcomes}
        if missing := [case.label for case in CASES if case.name not in found]:
            return [
                Claim.unjudged(
                    "what premium and best-effort flows have in every stage",
                    f"no point {missing[0]!r} has run",
                )
            ]
        one, two, aside, max_min = (found[name] for name in ("one", "two", "set_aside", "max_min"))
        gain = max_min["best_effort_sum_mb_per_s"] / (aside["best_effort_sum_mb_per_s"] or float("inf"))
        errors = [
            error
            for outcome in outcomes
            for stage in _case(outcome.point).stages
            for error in outcome.results[stage.name + LATE]
            if error is not None
        ]
        return [
            Claim.every(
                f"a premium flow has what it was promised (within {PREMIUM_TOLERANCE:.0%}), whoever comes or goes",
                (
                    within(achieved, may if flow.mb_per_s == REST else flow.mb_per_s, PREMIUM_TOLERANCE)
                    for flows, (rates, allowed) in stages
                    for flow, achieved, may in zip(flows, rates, allowed, strict=True)
                    if flow.mb_per_s is not None and may is not None
                ),
            ),
            Claim.every(
                "its card paces it by the IDT that it was granted, to the tick",
                (error == 0 for error in errors),
            ),
            Claim.every(
                "the packet rate of a best-effort flow follows the status of the premium flows (within "
                f"{BANDWIDTH_TOLERANCE:.0%} of what the manager allows)",
                (
                    within(achieved, may, BANDWIDTH_TOLERANCE)
                    for flows, (rates, allowed) in stages
                    for flow, achieved, may in zip(flows, rates, allowed, strict=True)
                    if flow.mb_per_s is None and may is not None
                ),
            ),
            Claim.every(
                "an uncontended best-effort flow sends at peak rate, before and after (within "
                f"{SHARE_TOLERANCE:.0%})",
                (
                    within(rate, PEAK_MB_PER_S, SHARE_TOLERANCE)
                    for rate in (
                        one["none" + RATES][0],
                        one["none_again" + RATES][0],
                        two["uncontended" + RATES][0],
                        two["uncontended_again" + RATES][1],
                    )
                ),
            ),
            Claim.every(
                "what is not allocated to premium flows is shared equally by two best-effort flows (within "
                f"{SHARE_TOLERANCE:.0%})",
                (
                    two[name + RATES][1] > 0
                    and within(two[name + RATES][0], two[name + RATES][1], SHARE_TOLERANCE)
                    for name in ("none", "premium", "none_again")
                ),
            ),
            Claim(
                text=f"after the premium flow's end the best-effort flows have what they had (within "
                f"{SHARE_TOLERANCE:.0%})",
                holds=all(two["none_again" + RATES][:2])
                and within(two["none_again" + RATES][:2], two["none" + RATES][:2], SHARE_TOLERANCE),
            ),
            Claim.every(
                "nothing is held at the end", (not outcome.results["counters_left"] for outcome in outcomes)
            ),
            Claim(
                text=f"beyond the thesis: max-min sharing gives best-effort flows {gain - 1:.0%} more (at least "
                f"{GAIN - 1:.0%}) where one of them is held elsewhere, and none less (within "
                f"{PREMIUM_TOLERANCE:.0%})",
                holds=gain >= GAIN
                and all(
                    b >= (1 - PREMIUM_TOLERANCE) * a
                    for a, b in zip(aside["premium" + RATES], max_min["premium" + RATES], strict=True)
                ),
            ),
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Packets per 1000 ticks over time, a panel a point."""
        draw(
            figure,
            [
                (o, [flow.name for flow in case.flows], [stage.name for stage in case.stages])
                for o, case in ((o, _case(o.point)) for o in outcomes)
            ],
        )


def _case(point: Point) -> Case:
    return case_named(point.parameters["case"])


def _stages(outcome: Outcome) -> list[tuple[list[float], list[float | None]]]:
    """The bandwidths of the flows in each stage: those achieved, and those that they might have had."""
    found = outcome.results
    return [(found[stage.name + RATES], found[stage.name + ALLOWED]) for stage in _case(outcome.point).stages]


async def measure(cluster: Cluster, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Run one point."""
    from ...bandwidth.errors import RefusedError
    from ...manager.client import BandwidthClient
    from ...manager.config import ManagerConfig
    from ...manager.start import start_managers
    from ..measure.gm_hosts import start_gm

    case = case_named(spec["case"])
    clock, nic = cluster.clock, cluster.config.nic
    dispatched: list[list[int]] = [[] for _ in case.flows]
    programs: list[GmProgram] = []

    def record(program: GmProgram) -> None:
        def choose(cycle: int, node: int, key: FlowKey) -> None:
            # The managers' messages come from a port that no flow has.
            if key.source_port < len(case.flows) and case.flows[key.source_port].source == program.node:
                dispatched[key.source_port].append(cycle)

        program.dispatched = choose
        programs.append(program)

    hosts = start_gm(cluster, started=record)
    config = ManagerConfig(master=MASTER, best_effort=case.policy, receive_mb_per_s=PEAK_MB_PER_S)
    managers = await start_managers(hosts, cluster.network, config)
    # Flow n has port n at both ends: so every port has one flow.
    flows = [
        Flow(
            source=flow.source,
            source_port=number,
            target=flow.target,
            target_port=number,
            message_bytes=spec["message_bytes"],
            idt_ticks=None,
        )
        for number, flow in enumerate(case.flows)
    ]
    senders = await prepare_flows(cluster, hosts, flows, lambda flow, length: None)
    clients = [
        BandwidthClient(managers[flow.source], sender.port)
        for flow, sender in zip(flows, senders, strict=True)
    ]
    held: dict[int, Any] = {}

    async def begin(number: int) -> None:
        rate, flow = case.flows[number].mb_per_s, flows[number]
        if rate is None:
            held[number] = await clients[number].join(flow.target, flow.target_port)
        else:
            if rate == REST:
                rate = await left(number)
            held[number] = await clients[number].request(flow.target, flow.target_port, rate)
        senders[number].start()

    async def left(number: int) -> float:
        try:
            await clients[number].request(flows[number].target, flows[number].target_port, PEAK_MB_PER_S)
        except RefusedError as refusal:
            return refusal.left_mb_per_s
        raise AssertionError("a point that asks for what is left leaves less than the peak")

    async def end(number: int) -> None:
        await senders[number].stop()
        if case.flows[number].mb_per_s is None:
            await clients[number].leave(held.pop(number))
        else:
            await clients[number].release(held.pop(number))

    def idt_error(number: int) -> int | None:
        flow = flows[number]
        if case.flows[number].mb_per_s is None or number not in held:
            return None
        (on_card,) = (
            one.idt_ticks
            for one in programs[flow.source].flows.values()
            if one.connection.node == flow.target and one.key.source_port == number
        )
        error: int = on_card - held[number].idt_ticks
        return error

    stages: list[dict[str, Any]] = []
    changes: list[int] = []
    started = clock.cycle
    for place, stage in enumerate(case.stages):
        changes.append(clock.cycle - started)
        for number in stage.ends:
            await end(number)
        for number in stage.begins:
            await begin(number)
        await clock.sleep(SETTLE_CYCLES)
        opened = clock.cycle
        await clock.sleep(spec["window_cycles"])
        closed = clock.cycle
        await wait_for_next(
            cluster, lambda: [max(cycles, default=0) for cycles in dispatched], opened, closed
        )
        stages.append(
            {
                "name": stage.name,
                "packets": [
                    amount_within([(cycle, 1.0) for cycle in cycles], opened, closed) for cycles in dispatched
                ],
                "window_cycles": closed - opened,
                "idt_error_ticks": [idt_error(number) for number in range(len(flows))],
                "allowed_mb_per_s": [
                    clients[number].rate(flow.target, flow.target_port) for number, flow in enumerate(flows)
                ],
            }
        )
        cluster.progress((place + 1) / len(case.stages), stage.name)
    finished = clock.cycle
    # Premium flows first: a best-effort flow that they leave nothing could not end.
    for number in sorted(held, key=lambda number: case.flows[number].mb_per_s is None):
        await end(number)
    master = managers[MASTER].master
    assert master is not None
    bins = int((finished - started) / nic.tick_cycles) // spec["bin_ticks"]
    return {
        "stages": stages,
        "counters_left": len(master.ledger.counters()),
        "clock_hz": nic.clock_hz,
        "tick_cycles": float(nic.tick_cycles),
        "mtu_bytes": nic.mtu_bytes,
        "series": {
            "bin_ticks": spec["bin_ticks"],
            "packets": [
                _binned(cycles, started, float(nic.tick_cycles) * spec["bin_ticks"], bins)
                for cycles in dispatched
            ],
            "stage_ticks": [cycle / float(nic.tick_cycles) for cycle in changes],
        },
    }


def _binned(cycles: Sequence[int], start: int, width: float, bins: int) -> list[int]:
    """The number of `cycles` in each of `bins` stretches of `width` cycles from `start`."""
    counts = [0] * bins
    for cycle in cycles:
        place = int((cycle - start) // width)
        if 0 <= place < bins:
            counts[place] += 1
    return counts
