"""Coroutines of tests of admission on routers and adapters, inside their simulations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lanikai.hdl.packet import Kind
from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.host import Request, State
from lanikai.sim.admission.network import AdmittedNetwork
from lanikai.sim.admission.tables import link_tables
from lanikai.sim.experiments.qos.hosts import QosHost, Sender
from lanikai.sim.host.hca.adapters import Adapters
from lanikai.sim.systems.adapters.network import AdapterNetwork

QP = 1
"""The first queue pair of every host behind its control port: the receiver."""


async def connections(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Connections [source, destination, units], all asked for at once. Those that are open send `messages`.

    The last one frees the path. Returns for each connection its state, reason, router and cycles until its answer.
    Beside them are the messages that arrived and the routers' registers: before, while they are open, and after.
    """
    clock = system.clock
    config = AdmissionConfig(**spec["admission"])
    adapters = Adapters(system)
    await adapters.start()
    admitted = AdmittedNetwork(system, config, power=spec["power"], poll_cycles=50)
    await admitted.start(adapters.drivers)
    hosts = [QosHost(driver) for driver in adapters.drivers]
    arrived = [0]

    def count(_arrival):
        arrived[0] += 1

    for host in hosts:
        await host.start(receive_entries=64)
        receiver = await host.receiver(traffic_class=1, entries=16)
        assert receiver.pair.number == QP
        receiver.on_arrival = count

    async def quiet():
        """Return when every agent has waited for a while."""
        still = 0
        while still < 5:
            await clock.sleep(200)
            still = still + 1 if admitted.settled else 0

    def tables():
        """VL tables of adapters: those written last, and those that follow from what is open."""
        written = [port.tables for port in admitted.host_ports]
        links = [([0] * 15, [0]) for _ in written]
        for request in requests:
            if request.state is State.OPEN:
                links[request.name.source][0][request.vl] += request.units
                links[request.name.source][1][0] += request.peak
        return written, [link_tables(config, units, sum(peaks)) for units, peaks in links]

    before = await admitted.registers()
    senders: list[Sender] = []
    requests: list[Request] = []
    adapters_before, _ = tables()
    asked = clock.cycle
    for number, (source, destination, _) in enumerate(spec["connections"]):
        vl = config.real_time_vls[number % len(config.real_time_vls)]
        senders.append(
            await hosts[source].sender(traffic_class=1, vls=(vl,), entries=16, peer=(destination, QP))
        )
    for number, (source, destination, units) in enumerate(spec["connections"]):
        vl = config.real_time_vls[number % len(config.real_time_vls)]
        requests.append(
            admitted.hosts[source].open(
                destination=destination, flow=QP | number << 8, units=units, peak=units, vl=vl
            )
        )
    answered = [0] * len(requests)
    while not all(answered) or any(request.releasing for request in requests):
        await clock.sleep(50)
        for number, request in enumerate(requests):
            if request.state is not State.ASKING and not answered[number]:
                answered[number] = clock.cycle - asked
    await quiet()
    used, (adapters_used, adapters_expected) = await admitted.registers(), tables()
    states = [[r.state.name, r.reason.name, r.router] for r in requests]
    expected = [
        [agent.ledger.used_word(port) for port in range(agent.ledger.ports)] + [agent.ledger.power_left]
        for agent in admitted.routers
    ]
    sent = 0
    for number, (request, sender) in enumerate(zip(requests, senders, strict=True)):
        if request.state is not State.OPEN:
            continue
        for k in range(spec["messages"]):
            last = k == spec["messages"] - 1
            sender.post(
                spec["flits"],
                vl=request.vl,
                born=clock.cycle,
                destination=request.name.destination,
                kind=Kind.RELEASE if last else Kind.DATA,
                bandwidth=request.units if last else 0,
                generation=number,
            )
            sent += 1
        admitted.hosts[request.name.source].close(request, sent_last=True)
    began = clock.cycle
    await system.settle()
    # A write of VL tables may wait for the end of a frame, and agents with it. No lease ends in this time.
    while any(agent.records for agent in admitted.routers) and clock.cycle - began < config.lease_cycles // 2:
        await clock.sleep(500)
    freed = clock.cycle - began
    await quiet()
    after, (adapters_after, _) = await admitted.registers(), tables()
    return {
        "adapters": [adapters_before, adapters_used, adapters_expected, adapters_after],
        "states": states,
        "before": before,
        "used": used,
        "expected": expected,
        "after": after,
        "sent": sent,
        "freed_cycles": freed,
        "arrived": arrived[0],
        "harmed": sum(port.harmed for port in admitted.ports),
        "records": sum(len(agent.records) for agent in admitted.routers),
        "failed": sum(len(host.failed) for host in hosts),
    }
