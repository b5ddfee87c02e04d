"""A random history of a cluster's managers, for tests."""

from __future__ import annotations

import random

from lanikai.sim.bandwidth.errors import BandwidthError
from lanikai.sim.host.errors import ClosedPortError
from lanikai.sim.manager.flows import FlowId

from .fake_gm import THESIS_MB_PER_S, WIRE_CYCLES, FakeCluster
from .plain_manager import Plain

NODES = 4
SETTLED = 20_000_000
RATES = (5.0, 20.0, 39.0, 60.0, 85.0)


class History:
    """One history on a cluster of four nodes, by a seed: its events, and the checks after each step."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        policy = self.chance.choice(["set_aside", "max_min"])
        chained = self.chance.random() < 0.5
        self.loss_percent = self.chance.choice([0, 0, 5, 30])
        most = self.chance.choice([None, THESIS_MB_PER_S])
        self.cluster = FakeCluster(NODES, chained=chained, best_effort=policy, receive_mb_per_s=most)
        self.cluster.fate = self._fate
        self.held: dict[FlowId, object] = {}
        self.leaving: set[FlowId] = set()
        self.restarts = self.grants = 0

    def run(self) -> None:
        self.cluster.run(self._main, limit=20_000_000_000)

    def _fate(self, source: int, target: int, message: bytes) -> list[int]:
        loss = self.loss_percent
        if self.chance.randrange(100) < loss:
            return []
        copies = 1 + (self.chance.randrange(100) < loss)
        return [WIRE_CYCLES + self.chance.randrange(1 + 500 * loss) for _ in range(copies)]

    async def _end(self) -> None:
        """End the faults: nothing goes wrong any more."""
        self.loss_percent = 0

    async def _main(self, cluster: FakeCluster) -> None:
        capacity = cluster.master.ledger.capacity
        self.model = Plain(cluster.network, capacity.node.curve, capacity.node.shared, capacity.port)
        cluster.world.spawn(self._watch(), "watch")
        for _ in range(self.chance.randint(6, 14)):
            steps = [self._step() for _ in range(self.chance.choice([1, 1, 2, 3]))]
            await cluster.world.gather(*steps)
            self._check()
        await self._end()
        for node in range(NODES):
            await self._start(node)
        await cluster.world.sleep(SETTLED)
        # Whatever was granted and not given back is still there, and can be given back.
        for flow, what in list(self.held.items()):
            record = cluster.record(flow.source)
            if (record.premium.get(flow) or record.best_effort.get(flow)) == what:
                client = await cluster.client(flow.source, flow.source_port)
                self.leaving.add(flow)
                await (client.release(what) if hasattr(what, "idt_ticks") else client.leave(what))
        for node in range(NODES):
            for number in [number for number in cluster.gms[node].ports if number != 7]:
                self._forget(node, number)
                await cluster.gms[node].ports[number].close()
        last = await cluster.client(0)
        await last.leave(await last.join(1, 0))
        await cluster.world.sleep(SETTLED)
        self._check()
        assert not cluster.newest().entries()
        assert cluster.master.leading and cluster.master.ledger.counters() == {}

    async def _watch(self) -> None:
        """Look between the steps, too."""
        while True:
            await self.cluster.world.sleep(40_000)
            self._check()

    def _check(self) -> None:
        # The flows that programs hold count whatever their managers know. A program gives a flow up with the call: it
        # counts no longer, and is not regulated after it.
        counted = {*self.cluster.holding(), *self.held} - self.leaving
        going = {flow: self.cluster.card_rate(flow) for flow in counted}
        # IDTs are whole ticks: 1%.
        fits = self.model.fits({flow: rate / 1.011 for flow, rate in going.items() if rate > 100})
        assert fits, f"the cards send more than there is: {going}"

    async def _start(self, node: int) -> None:
        if self.cluster.managers[node].ended and 7 not in self.cluster.gms[node].ports:
            self.cluster.managers[node] = await self.cluster.start(node)

    async def _step(self) -> None:
        await self.cluster.world.sleep(self.chance.randrange(1, 60_000))
        what = self.chance.choice(
            ["request"] * 4 + ["join"] * 3 + ["end"] * 3 + ["close", "stop", "stop", "all"]
        )
        node = self.chance.randrange(NODES)
        try:
            if what in ("stop", "all"):
                await self._restart(range(NODES) if what == "all" else [node])
            else:
                await self._call(what, node, self.chance.randrange(2))
        except (BandwidthError, ClosedPortError):
            pass

    async def _restart(self, nodes) -> None:
        """End managers, and have them come back at once or after a while."""
        stopped = [node for node in nodes if not self.cluster.managers[node].ended]
        for node in stopped:
            await self.cluster.managers[node].stop()
        self.restarts += len(stopped)
        await self.cluster.world.sleep(self.chance.choice([1, 1000, 100_000, 3_000_000]))
        for node in stopped:
            await self._start(node)

    async def _call(self, what: str, node: int, port: int) -> None:
        client = await self.cluster.client(node, port)
        target = (node + self.chance.randint(1, NODES - 1)) % NODES
        flow = FlowId(node, port, target, port)
        if what == "request":
            grant = await client.request(target, port, self.chance.choice(RATES))
            self.grants += 1
            self._keep(flow, grant)
        elif what == "join":
            self._keep(flow, await client.join(target, port, weight=self.chance.choice([1, 1, 2, 5])))
        elif what == "close":
            self._forget(node, port)
            await self.cluster.gms[node].ports[port].close()
        elif flow in self.held:
            held = self.held.pop(flow)
            stays = hasattr(held, "idt_ticks") and self.chance.random() < 0.3
            if stays:
                self._keep(flow, await client.release(held, best_effort=True))
                return
            self.leaving.add(flow)
            try:
                await (client.release(held) if hasattr(held, "idt_ticks") else client.leave(held))
            finally:
                self.leaving.discard(flow)

    def _forget(self, node: int, port: int) -> None:
        """Forget what a port's flows held: they hold nothing any more."""
        for held in [held for held in self.held if held[:2] == (node, port)]:
            del self.held[held]

    def _keep(self, flow: FlowId, what: object) -> None:
        """Note that a program holds it, if its port was not closed meanwhile."""
        port = self.cluster.gms[flow.source].ports.get(flow.source_port)
        if port is not None and port.is_open:
            self.held[flow] = what
