"""Mutants of VIA: of its programs, its hosts, and the experiments' programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .mutant import mutant


@mutant
def svia_takes_ten_times_as_long(spec: Mapping[str, Any]) -> None:
    """Every step of SVIA takes ten times its cycles; those of the other designs do not."""
    from lanikai.firmware.via.program import ViaProgram

    table = ViaProgram.default_costs
    ViaProgram.default_costs = table.replace(**{step: 10 * cycles for step, cycles in table.table.items()})


def _parallel_costs(change: Callable[[str, int], int], *tables: str) -> None:
    """Change the costs of parallel VIA programs, step by step."""
    from lanikai.firmware.via.parallel import costs

    for name in tables:
        table = getattr(costs, name).table
        table.update({step: change(step, cycles) for step, cycles in table.items()})


@mutant
def parallel_designs_take_ten_times_as_long(spec: Mapping[str, Any]) -> None:
    """Every step of PVIA and QoSVIA takes ten times its cycles."""
    _parallel_costs(lambda step, cycles: 10 * cycles, "PVIA_COSTS", "QOSVIA_COSTS")


@mutant
def pvia_pays_for_stamps(spec: Mapping[str, Any]) -> None:
    """A doorbell costs PVIA more than QoSVIA pays for a doorbell and its stamp."""
    _parallel_costs(lambda step, cycles: cycles + 2000 * (step == "doorbell"), "PVIA_COSTS")


@mutant
def descriptors_are_always_fetched_by_the_card(spec: Mapping[str, Any]) -> None:
    """No descriptor tailgates, and no process writes a shadow."""
    from lanikai.firmware.via.stages import Stages
    from lanikai.sim.host.via import queue

    Stages.tailgates = lambda self, vi, pieces: False  # type: ignore[method-assign]
    queue.pack_shadow = lambda descriptor, index: None


def _spans(change: Callable[[Any, int], int | None]) -> None:
    """Change the begin of each stage that a trace of VIA's messages notes; None: leave it out."""
    from lanikai.firmware.via.trace import Trace

    right = Trace.span

    def span(self: Any, message: Any, stage: Any, begin: int, end: int | None = None) -> None:
        begin_here = change(stage, begin)
        if begin_here is not None:
            right(self, message, stage, begin_here, end)

    Trace.span = span  # type: ignore[method-assign]


@mutant
def messages_of_base_overlap(spec: Mapping[str, Any]) -> None:
    """Every stage is noted as if it had begun long before."""
    _spans(lambda stage, begin: begin - 3000)


@mutant
def descriptors_leave_no_trace(spec: Mapping[str, Any]) -> None:
    """Stage 4 is never noted."""
    from lanikai.firmware.via.trace import Stage

    _spans(lambda stage, begin: None if stage == Stage.DESCRIPTOR else begin)


@mutant
def one_message_at_a_time(spec: Mapping[str, Any]) -> None:
    """Every design of the ladder runs the sequential program."""
    from lanikai.firmware.via.config import ViaConfig
    from lanikai.firmware.via.ladder import Rung

    Rung.config = lambda self, **changes: ViaConfig(**changes)  # type: ignore[method-assign]


def _via_costs(times: Mapping[str, float]) -> None:
    """Make the steps of designs of VIA take `times` as long as they should, by the name of their cost table."""
    from lanikai.firmware.via.costs import SVIA_COSTS
    from lanikai.firmware.via.ladder_costs import LADDER_COSTS
    from lanikai.firmware.via.parallel.costs import PVIA_COSTS, QOSVIA_COSTS

    for costs in (SVIA_COSTS, PVIA_COSTS, QOSVIA_COSTS, LADDER_COSTS):
        assert isinstance(costs.table, dict)
        factor = times.get(costs.program, 1)
        costs.table.update({step: int(factor * cycles) for step, cycles in costs.table.items()})


@mutant
def firmware_of_via_is_slow(spec: Mapping[str, Any]) -> None:
    """Every step of every design takes 10 times its cycles.

    With 30 times the firmware opens the driver's channel later than the driver waits for it.
    """
    _via_costs({"svia": 10, "pvia": 10, "qosvia": 10, "ladder": 10})


@mutant
def svia_takes_no_cycles(spec: Mapping[str, Any]) -> None:
    """The steps of SVIA cost nothing but their accesses; those of PVIA and QoSVIA take twice as long."""
    _via_costs({"svia": 0, "pvia": 2, "qosvia": 2})


@mutant
def qosvia_is_slow(spec: Mapping[str, Any]) -> None:
    """The steps of QoSVIA take 5 times their cycles."""
    _via_costs({"qosvia": 5})


@mutant
def parallel_designs_take_no_cycles(spec: Mapping[str, Any]) -> None:
    """The steps of the parallel designs cost nothing but their accesses."""
    _via_costs({"pvia": 0, "qosvia": 0, "ladder": 0})


@mutant
def parallel_designs_are_slow(spec: Mapping[str, Any]) -> None:
    """The steps of the parallel designs take 30 times their cycles."""
    _via_costs({"pvia": 30, "qosvia": 30, "ladder": 30})


@mutant
def qosvia_has_no_stamps(spec: Mapping[str, Any]) -> None:
    """Cards of QoSVIA run PVIA."""
    from lanikai.sim.experiments.via import traffic

    right = traffic.via_program
    traffic.via_program = lambda name, order=None: right("pvia" if name == "qosvia" else name)


@mutant
def a_send_queue_in_hardware_is_slow(spec: Mapping[str, Any]) -> None:
    """Where the card has one, the firmware takes three times as long."""
    from lanikai.sim.experiments.via import traffic

    right = traffic.start_via

    def start(cluster: Any, *arguments: Any, **options: Any) -> Any:
        if cluster.config.nic.send_queue_entries:
            _via_costs({"qosvia": 3})
        return right(cluster, *arguments, **options)

    traffic.start_via = start


@mutant
def vis_are_not_declared(spec: Mapping[str, Any]) -> None:
    """A node has the VIs that are active, and no others."""
    from lanikai.sim.experiments.via import rounds

    async def declare(*arguments: Any) -> list[int]:
        return []

    rounds.declare = declare


@mutant
def a_doorbell_costs_a_look_at_every_declared_vi(spec: Mapping[str, Any]) -> None:
    """In the parallel designs of the ladder."""
    from lanikai.firmware.via.ladder_costs import LADDER_COSTS
    from lanikai.sim.experiments.via import rounds

    right, table = rounds.declare, LADDER_COSTS.table
    assert isinstance(table, dict)

    async def declare(agent: Any, owner: int, others: Any) -> list[int]:
        table["doorbell"] += 2 * len(others)
        return await right(agent, owner, others)

    rounds.declare = declare


@mutant
def immediate_messages_are_all_long(spec: Mapping[str, Any]) -> None:
    """An immediate message has 64 bytes, whatever it should have."""
    from lanikai.firmware.via.descriptor import Descriptor
    from lanikai.sim.experiments.via import rounds
    from lanikai.sim.host.via.descriptor import VipDescriptor

    rounds.message = lambda program, spec: VipDescriptor(request=Descriptor(immediate=bytes(64)))


@mutant
def completion_queues_are_searched(spec: Mapping[str, Any]) -> None:
    """A look at a completion queue takes as long as a look at every VI that is declared."""
    from lanikai.sim.experiments.via import rounds
    from lanikai.sim.host.via.vipl.checks import agent_of

    right, begin, declared = rounds.VipCQDone, rounds.Process.begin, [0]

    def begins(self: Any, load: Mapping[str, Any]) -> None:
        declared[0] = load["declared_vis"]
        begin(self, load)

    async def done(queue: Any) -> Any:
        found = await right(queue)
        if found is not None:
            await agent_of(queue.nic).spend(20 * declared[0])
        return found

    rounds.VipCQDone, rounds.Process.begin = done, begins  # type: ignore[method-assign]


@mutant
def descriptors_of_via_are_always_fetched(spec: Mapping[str, Any]) -> None:
    """They never tailgate, and never stand in a shadow."""
    from lanikai.sim.experiments.via import rounds

    right = rounds.rung

    class Fetched:
        def __init__(self, name: str) -> None:
            self._rung = right(name)

        def config(self, **changes: Any) -> Any:
            return self._rung.config(**{**changes, "descriptors": "fetched"})

    rounds.rung = Fetched


@mutant
def virtualclock_forgets(spec: Mapping[str, Any]) -> None:
    """A channel's auxVC begins anew with every message."""
    from lanikai.firmware.virtual_clock import VirtualClock

    right = VirtualClock.stamp

    def stamp(self: Any, channel: int, now_ticks: int) -> int:
        self.look(now_ticks)
        self.forget(channel)
        return right(self, channel, now_ticks)

    VirtualClock.stamp = stamp


@mutant
def best_effort_has_the_first_stamps(spec: Mapping[str, Any]) -> None:
    """VirtualClock gives best effort a Vtick of 0."""
    from lanikai.firmware.via.schedulers.virtual_clock import VirtualClockScheduler

    right = VirtualClockScheduler.open

    def open_vi(self: Any, vi: int, rate: Any) -> None:
        right(self, vi, rate)
        if rate is None:
            self._clock.set_vtick(vi, 0)

    VirtualClockScheduler.open = open_vi


@mutant
def best_effort_has_the_last_stamps(spec: Mapping[str, Any]) -> None:
    """WF2Q+ and deficit round robin put best effort behind all others."""
    from lanikai.firmware.via.schedulers.deficit import DeficitScheduler
    from lanikai.firmware.via.schedulers.wf2q import Wf2qScheduler

    for kind in (Wf2qScheduler, DeficitScheduler):
        right = kind._stamp

        def stamp(self: Any, vi: int, flow: Any, count: int, right: Any = right) -> tuple[int, int]:
            order, start = right(self, vi, flow, count)
            return (order + self.most_ahead // 2 if flow is self._best_effort else order), start

        kind._stamp = stamp


@mutant
def cards_of_via_promise_everything(spec: Mapping[str, Any]) -> None:
    """Admission grants every demand."""
    from lanikai.sim.host.via.admission import CardAdmission, Grant

    def reserve(self: Any, **asked: Any) -> Any:
        return Grant(part_ns=0)

    CardAdmission.reserve = reserve


@mutant
def every_channel_of_via_asks(spec: Mapping[str, Any]) -> None:
    """Nobody is let in without having asked."""
    from lanikai.sim.experiments.via import traffic

    right = traffic.start_via
    traffic.start_via = lambda cluster, config, kit, admit_all: right(cluster, config, kit, admit_all=False)
