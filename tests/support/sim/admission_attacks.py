"""Coroutines of tests of admission on RTL: a process that forges control packets, and agents that all send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanikai.hdl.packet import Kind
from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.host import State
from lanikai.sim.admission.ledger import Reason
from lanikai.sim.admission.messages import Control, payload_size
from lanikai.sim.admission.network import AdmittedNetwork
from lanikai.sim.admission.rtl import SimulatedRouterPort
from lanikai.sim.host.hca.adapters import Adapters
from lanikai.sim.host.hca.control import CONTROL_QP
from lanikai.sim.systems.adapters.network import AdapterNetwork

ATTACKER = 5
"""The page of the process that forges."""


async def _quiet(system: AdapterNetwork, admitted: AdmittedNetwork) -> None:
    """Return when every agent has waited for a while."""
    still = 0
    while still < 5:
        await system.clock.sleep(200)
        still = still + 1 if admitted.settled else 0


async def forged(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Node 1 has a connection to node 0, and is asking for another. A process of node 0 knows all about both, and sends
    answers, probes and releases to the control queue pair of node 1, as data and as they are.

    Returns states and registers before and after, and the packets dropped.
    """
    clock = system.clock
    config = AdmissionConfig(**spec["admission"])
    adapters = Adapters(system)
    await adapters.start()
    admitted = AdmittedNetwork(system, config, poll_cycles=50)
    await admitted.start(adapters.drivers)
    driver, link = adapters.drivers[0], system.config.hca.link
    queue = await driver.create_completion_queue(owner=ATTACKER, entries=64)
    pair = await driver.create_queue_pair(
        owner=ATTACKER,
        traffic_class=0,
        vls=range(15),
        send_completions=queue,
        receive_completions=queue,
        send_entries=16,
    )
    size = payload_size(link)
    memory = await driver.register(ATTACKER, driver.allocate(ATTACKER, 4096))
    victim = admitted.hosts[1]
    request = victim.open(destination=0, flow=1, units=30, peak=40, vl=0)
    while request.state is State.ASKING:
        await clock.sleep(50)
    await _quiet(system, admitted)

    async def seen() -> Any:
        ledgers = [
            [one.ledger.used_word(port) for port in range(one.ledger.ports)] for one in admitted.routers
        ]
        host = [one.admission.ledger.used_word(0) for one in admitted.hosts]
        return [await admitted.registers(), ledgers, host, request.state.name, request.incarnation]

    before = await seen()
    true = Control(
        kind=Kind.NACK,
        **request.name._asdict(),
        incarnation=request.incarnation,
        attempt=request.attempt,
        units=request.units,
        peak=request.peak,
        vl=request.vl,
        about=Kind.PROBE,
        reason=Reason.LINK,
    )
    other = replace(true, flow=2, source=0, destination=1, kind=Kind.PROBE)
    forgeries = [
        true,
        replace(true, kind=Kind.ACK),
        replace(true, about=Kind.RELEASE, kind=Kind.ACK),
        replace(true, kind=Kind.RELEASE),
        other,
        replace(other, ask_host=True),
    ]
    statuses: dict[int, int] = {}
    sent = 0
    for vl in (0, 7, 14, 15):
        for control in forgeries:
            for kind in (Kind.DATA, control.kind):
                memory.buffer.write(control.payload(size), 0)
                where = {"vl": vl, "destination": 1, "destination_qp": CONTROL_QP}
                pair.send(memory, memory.start, size, kind=kind, **where)
                sent += 1
                for one in await queue.wait():
                    statuses[one.status] = statuses.get(one.status, 0) + 1
    await _quiet(system, admitted)
    drops = (await adapters.drivers[1].port.registers.read("RECEIVE_LANE_DROPS"))["packets"]
    return {
        "before": before,
        "after": await seen(),
        "sent": sent,
        "statuses": sorted(statuses.items()),
        "drops": drops,
    }


async def both_ways(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """All nodes ask for `requests` connections to the next node, at once.

    `deaf`: agents take nothing while they wait to send. Returns the states, the cycles until all were answered or given
    up, and the control packets that agents could not send.
    """
    clock = system.clock
    if spec["deaf"]:

        async def send(port: SimulatedRouterPort, control: Control, route: int) -> None:
            await port._agent.send(control.flits(route, port._router.link))

        SimulatedRouterPort.send = send
    config = AdmissionConfig(**spec["admission"])
    adapters = Adapters(system)
    await adapters.start()
    admitted = AdmittedNetwork(system, config, poll_cycles=50)
    await admitted.start(adapters.drivers)
    nodes = len(admitted.hosts)
    requests = [
        host.open(destination=(node + 1) % nodes, flow=flow, units=1, peak=1, vl=0)
        for flow in range(spec["requests"])
        for node, host in enumerate(admitted.hosts)
    ]
    began = clock.cycle
    while any(one.state is State.ASKING for one in requests) and clock.cycle - began < spec["limit_cycles"]:
        await clock.sleep(100)
    return {
        "states": sorted({one.state.name for one in requests}),
        "cycles": clock.cycle - began,
        "unsent": [port.unsent for port in admitted.ports],
    }
