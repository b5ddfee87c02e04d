"""Mutants of mechanisms, each a change that is made inside the simulator's process before a point runs there.

`MutantSimulator` runs an experiment's points with one of them. Nothing outside of the tests knows of it. A point's
coroutine is run by `run_point`, which makes the change and runs the point's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanikai.firmware.accesses import AccessList
from lanikai.sim.experiments.framework.backend import Job, Measured, Progress, Simulator
from lanikai.sim.inside.session import load_coroutine

from . import (
    admission_mutants,
    am_mutants,
    cosched_mutants,
    fault_mutants,
    peak_mutants,
    power_mutants,
    qos_mutants,
    via_mutants,
    workload_mutants,
    wrr_mutants,
)
from .mutant import MUTANTS, mutant

__all__ = ["MODULES", "MUTANTS", "MutantSimulator", "run_point"]

MODULES = (
    __name__,
    admission_mutants.__name__,
    am_mutants.__name__,
    cosched_mutants.__name__,
    fault_mutants.__name__,
    peak_mutants.__name__,
    power_mutants.__name__,
    qos_mutants.__name__,
    wrr_mutants.__name__,
    via_mutants.__name__,
    workload_mutants.__name__,
)
"""Modules with mutants."""


@dataclass(frozen=True, kw_only=True)
class MutantSimulator(Simulator):
    """The simulator, with the mutant `name` in it; None: as it is."""

    name: str | None = None

    def run(self, model: Any, job: Job, progress: Progress) -> Measured:
        """Run the point in a simulator process, mutated."""
        spec = {"mutant": self.name, "entry": job.entry, "spec": dict(job.spec)}
        if self.name is not None:
            job = replace(job, entry=f"{__name__}:run_point", spec=spec)
        return super().run(model, job, progress)


async def run_point(system: Any, spec: Mapping[str, Any]) -> Any:
    """Inside the simulator: make the change, run the point."""
    MUTANTS[spec["mutant"]](spec["spec"])
    return await load_coroutine(spec["entry"])(system, spec["spec"])


def _costs(**cycles: int) -> None:
    from lanikai.firmware.costs import GM_COSTS

    assert cycles.keys() <= GM_COSTS.table.keys()
    GM_COSTS.table.update(cycles)


def _idts(change: Callable[[int], int], node: int | None = None) -> None:
    """Make IDTs reach the card (of one node alone, where it is named) as `change` of what they should be."""
    from lanikai.firmware.gm.sdma import Sdma

    right = Sdma.set_idt

    async def set_idt(self: Any, flow: Any, ticks: int) -> None:
        here = node in (None, self._program.node)
        await right(self, flow, change(ticks) if here else ticks)

    Sdma.set_idt = set_idt


@mutant
def idts_are_ignored(spec: Mapping[str, Any]) -> None:
    """No flow is regulated."""
    _idts(lambda ticks: 0)


@mutant
def idts_are_2_ticks_long(spec: Mapping[str, Any]) -> None:
    """The rate control unit is told 2 ticks too many."""
    _idts(lambda ticks: ticks + 2 if ticks else 0)


@mutant
def no_change_of_direction(spec: Mapping[str, Any]) -> None:
    """A change between sending and receiving costs nothing."""
    _costs(packet_turn=0)


@mutant
def half_a_change_of_direction(spec: Mapping[str, Any]) -> None:
    """A change between sending and receiving costs half of what it does."""
    _costs(packet_turn=122)


@mutant
def no_change_of_connection(spec: Mapping[str, Any]) -> None:
    """A change of connection costs nothing."""
    _costs(sdma_turn=0)


@mutant
def a_packet_is_made_in_half_the_time(spec: Mapping[str, Any]) -> None:
    """The firmware takes half of the time to make a packet."""
    _costs(sdma_packet=144)


@mutant
def receiving_is_slow(spec: Mapping[str, Any]) -> None:
    """The firmware takes much longer to receive a packet."""
    _costs(recv_data=700)


@mutant
def a_packet_is_made_in_twice_the_time(spec: Mapping[str, Any]) -> None:
    """The firmware takes twice the time to make a packet."""
    _costs(sdma_packet=1440)


@mutant
def idts_are_130_ticks_at_the_least(spec: Mapping[str, Any]) -> None:
    """A short IDT holds a flow back more than it says."""
    _idts(lambda ticks: max(ticks, 130) if ticks else 0)


@mutant
def node_1_has_twice_the_idts(spec: Mapping[str, Any]) -> None:
    """One node's flows are held to half of their rate."""
    _idts(lambda ticks: 2 * ticks, node=1)


@mutant
def node_3_has_twice_the_idts(spec: Mapping[str, Any]) -> None:
    """Another node's flows are held to half of their rate."""
    _idts(lambda ticks: 2 * ticks, node=3)


@mutant
def the_incoming_flow_has_one_idt(spec: Mapping[str, Any]) -> None:
    """The flow from node 0 does not take the IDT of the point."""
    _idts(lambda ticks: 300, node=0)


@mutant
def the_search_tries_nothing(spec: Mapping[str, Any]) -> None:
    """The outgoing flow is not regulated, whether that hurts the incoming one or not."""
    from lanikai.sim.experiments import incoming_rate

    async def search(harmless: Callable[[int], Any], *, step_ticks: int) -> int:
        await harmless(0)
        return 0

    incoming_rate.smallest_harmless = search


@mutant
def the_unit_is_slow(spec: Mapping[str, Any]) -> None:
    """A choice of the rate control unit takes as long as making a packet."""
    from lanikai.firmware.gm.sdma import Sdma

    right = Sdma._dispatch

    async def dispatch(self: Any, accesses: AccessList) -> Any:
        self._processor.pay(accesses, sdma_packet=1)
        return await right(self, accesses)

    Sdma._dispatch = dispatch


@mutant
def messages_in_turn_are_packets_in_turn(spec: Mapping[str, Any]) -> None:
    """The connection queue is rotated after every packet."""
    _discipline("packet")


@mutant
def packets_in_turn_are_messages_in_turn(spec: Mapping[str, Any]) -> None:
    """The connection queue is rotated after every message alone."""
    _discipline("message")


def _discipline(name: str) -> None:
    from lanikai.firmware.gm.queues import ConnectionQueue

    right = ConnectionQueue.__init__

    def init(self: Any, discipline: str = "packet") -> None:
        right(self, name)

    ConnectionQueue.__init__ = init


@mutant
def an_unregulated_flow_comes_late(spec: Mapping[str, Any]) -> None:
    """The NDT of the flows of port 0 is set far ahead whenever they become ready."""
    from lanikai.firmware.gm.sdma import Sdma

    right = Sdma._command

    def command(self: Any, accesses: AccessList, flow: int, what: str) -> None:
        right(accesses, flow, what)
        if what == "enqueue" and self._program.flows[flow].key.source_port == 0:
            ticks = (1 << self._program.nic.rtc_bits) - 1
            accesses.copy(accesses.read("RTC"), "RATE_NDT", mask=ticks, add=250, keep=ticks)

    Sdma._command = command


@mutant
def rate_registers_take_every_idt_for_one_slot(spec: Mapping[str, Any]) -> None:
    """RATE_IDT is written with the same number for every flow."""
    from lanikai.firmware import registers

    right = registers.pack

    def pack(name: str, **fields: int) -> int:
        return right(name, **({"ticks": 2 * spec["ticks_per_T"]} if name == "RATE_IDT" else fields))

    registers.pack = pack


@mutant
def flow_0_has_a_thousand_times_its_idt(spec: Mapping[str, Any]) -> None:
    """One flow of the rate unit is starved."""
    _unit_idts(lambda flow, idt: 1000 * idt if flow == 0 else idt)


@mutant
def every_flow_has_ten_times_its_idt(spec: Mapping[str, Any]) -> None:
    """All flows of the rate unit are slow."""
    _unit_idts(lambda flow, idt: 10 * idt)


def _unit_idts(change: Callable[[int, int], int]) -> None:
    from lanikai.sim.systems.rate_unit import RateUnit

    right = RateUnit.set_flow

    async def set_flow(self: Any, flow: int, *, idt_ticks: int, ndt_ticks: int) -> None:
        await right(self, flow, idt_ticks=change(flow, idt_ticks), ndt_ticks=ndt_ticks)

    RateUnit.set_flow = set_flow


@mutant
def premium_idts_are_not_set(spec: Mapping[str, Any]) -> None:
    """A reservation is granted, and its IDT does not reach the card."""
    from lanikai.sim.manager.local import NodeManager

    async def set_idt(self: Any, flow: Any, ticks: int, message_bytes: int | None = None) -> None:
        pass

    NodeManager._set_idt = set_idt


@mutant
def shares_are_not_set(spec: Mapping[str, Any]) -> None:
    """Best-effort flows are told no IDTs; premium flows are."""
    from lanikai.sim.manager.local import NodeManager

    right = NodeManager._command_idt

    async def set_idt(self: Any, flow: Any, ticks: int, message_bytes: int | None = None) -> None:
        await right(self, flow, ticks, message_bytes)

    async def command_idt(self: Any, flow: Any, ticks: int, message_bytes: int | None) -> None:
        pass

    NodeManager._set_idt, NodeManager._command_idt = set_idt, command_idt


@mutant
def best_effort_flows_are_always_held(spec: Mapping[str, Any]) -> None:
    """A best-effort flow that may have all is held a little."""
    from lanikai.sim.manager.capacity import Pace

    right = Pace.best_effort_idt
    Pace.best_effort_idt = lambda self, rate, *, longest: max(right(self, rate, longest=longest), 100)


@mutant
def flows_have_unequal_weights(spec: Mapping[str, Any]) -> None:
    """The second best-effort flow of a node weighs twice as much."""
    from lanikai.sim.manager.client import BandwidthClient

    right = BandwidthClient.join

    async def join(self: Any, node: int, port: int, *, weight: int = 1, priority: int = 0) -> Any:
        return await right(self, node, port, weight=1 + port % 2, priority=priority)

    BandwidthClient.join = join


@mutant
def idts_are_4_percent_long(spec: Mapping[str, Any]) -> None:
    """The rate control unit is told a little too much."""
    _idts(lambda ticks: round(1.04 * ticks))


@mutant
def packets_are_charged_in_place_of_bytes(spec: Mapping[str, Any]) -> None:
    """A packet costs its flow an IDT, however short it is."""
    from lanikai.firmware.gm.sdma import Sdma

    Sdma._charged = lambda self, flow, packet: 0


@mutant
def bytes_are_charged_in_place_of_packets(spec: Mapping[str, Any]) -> None:
    """A packet costs its flow the charge of its bytes, where packets are to be charged."""
    from lanikai.firmware.gm.sdma import Sdma

    Sdma._charged = lambda self, flow, packet: (
        0 if packet.length == self._program.nic.charge_unit_bytes else packet.length
    )


@mutant
def nothing_competes(spec: Mapping[str, Any]) -> None:
    """There are no web searches beside the films."""
    from lanikai.sim.experiments import video_reservation

    video_reservation.BULK = ()


@mutant
def films_stop(spec: Mapping[str, Any]) -> None:
    """Every film stops for good after some frames."""
    from lanikai.sim.host.gm.port import GmPort

    right = GmPort.send
    sent: Counter[int] = Counter()

    async def send(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.number < len(spec["films"]):
            sent[self.number] += 1
            if sent[self.number] > 6:
                await self._bus.flag().wait()
        return await right(self, *arguments, **options)

    GmPort.send = send


@mutant
def reservations_are_not_given_back(spec: Mapping[str, Any]) -> None:
    """A premium flow's end is not told to the manager. This is for figure 5.12, where best-effort flows can end
    nevertheless."""
    from lanikai.sim.manager.client import BandwidthClient

    if spec["case"] != "two":
        return

    async def release(self: Any, grant: Any, *, best_effort: bool = False) -> None:
        pass

    BandwidthClient.release = release


@mutant
def max_min_sets_aside(spec: Mapping[str, Any]) -> None:
    """Max-min sharing is that of 4.3."""
    from lanikai.sim.manager import sharing, start

    start.POLICIES = {"set_aside": sharing.set_aside, "max_min": sharing.set_aside}


@mutant
def reservations_give_a_sixteenth(spec: Mapping[str, Any]) -> None:
    """A reservation's IDT is 16 times as long."""
    from lanikai.sim.manager.capacity import Pace

    right = Pace.premium_idt
    Pace.premium_idt = lambda self, rate: 16 * right(self, rate)


@mutant
def copies_cost_nothing(spec: Mapping[str, Any]) -> None:
    """The MPI layer copies in no time."""
    from lanikai.sim.host.mpi.config import MpiCosts

    MpiCosts.copy_ns = lambda self, length: 0


@mutant
def no_reservation_is_made(spec: Mapping[str, Any]) -> None:
    """The program asks for nothing."""
    from lanikai.sim.experiments.mpi import replay as mpi_replay

    async def reserve(world: Any, requests: Any) -> None:
        pass

    mpi_replay._reserve = reserve


@mutant
def a_member_is_throttled_whoever_reserves(spec: Mapping[str, Any]) -> None:
    """Nothing is reserved, and the competing flow holds itself back."""
    from lanikai.sim.manager.client import BandwidthClient

    no_reservation_is_made(spec)

    async def join(self: Any, node: int, port: int, **options: Any) -> None:
        await self._port.set_idt(node=node, port=port, ticks=434)

    BandwidthClient.join = join


@mutant
def a_program_beside_another_sends_less(spec: Mapping[str, Any]) -> None:
    """The trace is cut shorter where a flow competes."""
    from lanikai.sim.experiments.mpi import replay as mpi_replay

    right = mpi_replay._read
    mpi_replay._read = lambda paths, messages: right(paths, messages - (spec["competing"] is not None))


@mutant
def a_received_byte_is_wrong(spec: Mapping[str, Any]) -> None:
    """The last byte of a message is read as another one."""
    from lanikai.sim.host.gm import message

    right = message.Received.read

    def read(self: Any) -> bytes:
        content = right(self)
        return content[:-1] + bytes([content[-1] ^ 1])

    message.Received.read = read


@mutant
def a_queue_is_slower_than_none(spec: Mapping[str, Any]) -> None:
    """The firmware sleeps before it feeds a queue."""
    from lanikai.sim.experiments import dma_bandwidth

    right = dma_bandwidth._Engine.ends

    async def ends(self: Any) -> None:
        if self._queued:
            await self._port.sleep(4000)
        await right(self)

    dma_bandwidth._Engine.ends = ends


@mutant
def a_doorbell_takes_longer_the_higher_its_channel(spec: Mapping[str, Any]) -> None:
    """An entry of the doorbell queue is read more slowly for higher channels; a word, if there are 16 channels."""
    from lanikai.firmware.processor import Processor

    right = Processor.read

    async def read(self: Any, name: str) -> Any:
        found = await right(self, name)
        if name == "DOORBELL_QUEUE":
            await self.port.sleep(1 + found["channel"] % 7)
        if name == "DOORBELL_WORD" and found["valid"] and spec["channels"] == 16:
            await self.port.sleep(300)
        return found

    Processor.read = read


@mutant
def each_way_moves_other_bytes(spec: Mapping[str, Any]) -> None:
    """The bytes that are sent depend on the way in which descriptors come to the card."""
    import random

    right = random.Random.randbytes
    random.Random.randbytes = lambda self, n: spec["way"][:1].encode() + right(self, n)[1:]


@mutant
def descriptors_are_always_fetched(spec: Mapping[str, Any]) -> None:
    """The card knows no other way."""
    from lanikai.sim.experiments.measure import kit_hosts

    right = kit_hosts.start_kit
    kit_hosts.start_kit = lambda cluster, config: right(cluster, config.replace(descriptors="fetched"))


@mutant
def tailgating_costs_every_message(spec: Mapping[str, Any]) -> None:
    """The host takes longer to post where descriptors tailgate."""
    from lanikai.sim.experiments.measure import kit_hosts
    from lanikai.sim.host.config import KitConfig

    right = kit_hosts.start_kit
    kit = KitConfig(post_ns=20_000) if spec["way"] == "tailgated" else None
    kit_hosts.start_kit = lambda cluster, config: right(cluster, config, kit)


@mutant
def sinks_lose_a_fifth(spec: Mapping[str, Any]) -> None:
    """Sinks count four of five flits that come."""
    _counts(lambda network: 0.8)


@mutant
def wavefront_loses_half(spec: Mapping[str, Any]) -> None:
    """Behind the wavefront allocator sinks count half of the flits that come."""
    _counts(lambda network: 0.5 if network.config.network.router.allocator == "wavefront" else 1.0)


def _counts(part: Callable[[Any], float]) -> None:
    from lanikai.sim.systems.traffic_network import TrafficNetwork

    right = TrafficNetwork.measure

    async def measure(self: Any, **options: Any) -> Any:
        found = await right(self, **options)
        counts = [
            [replace(one, accepted_flits=int(one.accepted_flits * part(self))) for one in node]
            for node in found.counts
        ]
        return replace(found, counts=counts)

    TrafficNetwork.measure = measure


@mutant
def the_flood_takes_every_vl(spec: Mapping[str, Any]) -> None:
    """The flood has the VLs of the well-behaved class, too."""
    _classes(lambda number, setup: setup.replace(vl_first=0) if number == 1 else setup)


@mutant
def the_flood_is_a_trickle(spec: Mapping[str, Any]) -> None:
    """The flood floods nothing."""
    _classes(lambda number, setup: setup.replace(load=0.01) if number == 1 else setup)


@mutant
def vls_send_little(spec: Mapping[str, Any]) -> None:
    """Sources ask for too little to fill the link."""
    _classes(lambda number, setup: setup.replace(mode="random", load=0.02))


def _classes(change: Callable[[int, Any], Any]) -> None:
    from lanikai.sim.systems.traffic_network import TrafficNetwork

    right = TrafficNetwork.set_classes

    async def set_classes(self: Any, classes: Any, nodes: Any = None) -> None:
        await right(self, [change(number, setup) for number, setup in enumerate(classes)], nodes)

    TrafficNetwork.set_classes = set_classes


@mutant
def a_table_has_equal_weights(spec: Mapping[str, Any]) -> None:
    """All entries of a VL table get the weight of its first one."""
    from lanikai.sim.models.router_agent import RouterAgent

    right = RouterAgent.write_tables

    async def write_tables(self: Any, *, high: Any, low: Any, **options: Any) -> None:
        await right(self, high=high, low=[(vl, low[0][1]) for vl, _ in low], **options)

    RouterAgent.write_tables = write_tables


@mutant
def senders_die(spec: Mapping[str, Any]) -> None:
    """Every sender stops for good after some messages."""
    from lanikai.sim.experiments.measure.gm_flows import Sender

    right = Sender.start

    def start(self: Any) -> None:
        send, left = self._port.send, [3]

        async def send_some(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                await self._cluster.clock.flag().wait()
            return await send(*arguments, **options)

        self._port.send = send_some
        right(self)

    Sender.start = start
