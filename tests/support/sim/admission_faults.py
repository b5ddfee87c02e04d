"""A coroutine of tests of admission on RTL whose control packets are lost, late, doubled and harmed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from lanikai.sim.admission.config import AdmissionConfig
from lanikai.sim.admission.host import State
from lanikai.sim.admission.messages import Control
from lanikai.sim.admission.network import AdmittedNetwork
from lanikai.sim.admission.router import Release
from lanikai.sim.admission.rtl import AdapterHostPort, SimulatedRouterPort
from lanikai.sim.host.hca.adapters import Adapters
from lanikai.sim.systems.adapters.network import AdapterNetwork

from ..admission.mutants import MUTANTS

LATE_CYCLES = 15_000
FAULTS = {"lost": 0.10, "twice": 0.08, "late": 0.08, "harmed": 0.04}


class _Patch:
    """Sets attributes for good: the process ends with the simulation."""

    setattr = staticmethod(setattr)


class FaultyRouterPort(SimulatedRouterPort):
    """A router's port on which packets that are sent meet `FAULTS`. Late ones leave at a later `send` or `next`."""

    chance: random.Random
    counts: Counter[str]

    def faulty(self, chance: random.Random, counts: Counter[str]) -> None:
        """Its faults from now on."""
        self.chance, self.counts = chance, counts
        self._held: list[tuple[int, Control, int]] = []

    async def send(self, control: Control, route: int) -> None:
        await self._late()
        fault = _fault(self.chance, self.counts)
        if fault == "late":
            self._held.append((self.cycle + self.chance.randrange(1, LATE_CYCLES), control, route))
        elif fault == "harmed":
            flits = control.flits(route, self._router.link)
            flits[self.chance.randrange(1, len(flits) - 1)] ^= 1 << self.chance.randrange(128)
            await self._agent.send(flits)
        elif fault != "lost":
            for _ in range(1 + (fault == "twice")):
                await super().send(control, route)

    async def next(self, until: int | None) -> Control | Release | None:
        await self._late()
        due = min((at for at, *_ in self._held), default=None)
        if due is not None:
            until = due if until is None else min(until, due)
        return await super().next(until)

    async def _late(self) -> None:
        ready = [one for one in self._held if one[0] <= self.cycle]
        self._held = [one for one in self._held if one[0] > self.cycle]
        for _, control, route in ready:
            await super().send(control, route)


def _fault(chance: random.Random, counts: Counter[str]) -> str:
    """The fault that a packet meets, none for most."""
    at = chance.random()
    for name, part in FAULTS.items():
        if at < part:
            counts[name] += 1
            return name
        at -= part
    counts["whole"] += 1
    return ""


def _spoil(
    port: AdapterHostPort, system: AdapterNetwork, chance: random.Random, counts: Counter[str]
) -> None:
    """Packets that a host sends meet the same faults. Harmed ones are lost: its adapter makes the CRC."""
    whole = port.send

    async def later(cycles: int, control: Control, route: int) -> None:
        await system.clock.sleep(cycles)
        await whole(control, route)

    async def send(control: Control, route: int) -> None:
        fault = _fault(chance, counts)
        if fault == "late":
            system.clock.spawn(later(chance.randrange(1, LATE_CYCLES), control, route), "late packet")
        elif fault not in ("lost", "harmed"):
            for _ in range(1 + (fault == "twice")):
                await whole(control, route)

    port.send = send


async def history(system: AdapterNetwork, spec: Mapping[str, Any]) -> Any:
    """Random requests under faults, by the simulation's seed. All are closed in the end.

    At every look no link is promised twice, and each connection that is open is reserved at all of its routers. Returns
    the faults of that kind, states and faults that came up, and what is left in ledgers and registers.
    """
    if spec["mutant"]:
        (breaks,) = [one for one in MUTANTS if one.__name__ == spec["mutant"]]
        breaks(_Patch())
    clock, network = system.clock, system.config.network
    config = AdmissionConfig(**spec["admission"])
    chance, counts = random.Random(system.seed), Counter[str]()
    adapters = Adapters(system)
    await adapters.start()
    admitted = AdmittedNetwork(system, config, poll_cycles=50)
    for router in range(network.routers):
        port = FaultyRouterPort(clock, system.agent(router), network.router, poll_cycles=50)
        port.faulty(random.Random(f"{system.seed}/{router}"), counts)
        admitted.ports[router] = port
    await admitted.start(adapters.drivers)
    for host in admitted.hosts:
        _spoil(host._port, system, random.Random(f"{system.seed}/host {host.admission.place.number}"), counts)

    async def quiet() -> None:
        still = 0
        while still < 5:
            await clock.sleep(200)
            still = still + 1 if admitted.settled else 0

    await quiet()
    before = await admitted.registers()
    requests: list[Any] = []
    wrong: list[str] = []
    opened = set()

    def look() -> None:
        for agent in admitted.routers:
            words = [agent.ledger.used_word(port) for port in range(agent.ledger.ports)]
            if any(max(word & 0xFFFF, word >> 16) > config.most_units for word in words):
                wrong.append(f"{clock.cycle}: a link of router {agent.place.number} is promised twice")
        for one in requests:
            if one.state is State.OPEN:
                opened.add(one.name)
                for router, _ in network.path(one.name.source, one.name.destination):
                    if one.name not in admitted.routers[router].records:
                        wrong.append(f"{clock.cycle}: {one.name} is open and not reserved at {router}")

    nodes = len(admitted.hosts)
    for flow in range(spec["requests"]):
        node = chance.randrange(nodes)
        there = chance.choice([one for one in range(nodes) if one != node])
        units = chance.randint(5, 60)
        requests.append(
            admitted.hosts[node].open(destination=there, flow=flow, units=units, peak=units, vl=flow % 3)
        )
        for _ in range(chance.randint(1, 8)):
            await clock.sleep(500)
            look()
        if chance.random() < 0.7:
            still_open = [one for one in requests if one.state is State.OPEN]
            one = chance.choice(still_open if still_open and chance.random() < 0.3 else requests)
            # Some say that their last packet is on its way, and it never comes.
            admitted.hosts[one.name.source].close(one, sent_last=chance.random() < 0.3)
    states = Counter(one.state.name for one in requests)
    for one in requests:
        admitted.hosts[one.name.source].close(one, sent_last=False)
    began = clock.cycle
    while clock.cycle - began < 2 * config.lease_cycles and (
        any(agent.records for agent in admitted.routers) or not all(one.settled for one in requests)
    ):
        await clock.sleep(500)
        look()
    took = clock.cycle - began
    await quiet()
    return {
        "wrong": wrong,
        "states": states,
        "opened": len(opened),
        "faults": counts,
        "cycles": took,
        "before": before,
        "after": await admitted.registers(),
        "records": sum(len(agent.records) for agent in admitted.routers),
        "hosts": [host.admission.ledger.used_word(0) for host in admitted.hosts],
        "harmed": sum(port.harmed for port in admitted.ports),
    }
