"""Your own firmware step: the card's processor looks at every packet before it is sent, and that takes its time."""

from lanikai.firmware.costs import GM_COSTS, CostTable
from lanikai.firmware.gm.program import GmProgram

import lanikai


class Inspecting(GmProgram):
    """The GM control program with one more step, `inspect`, of 2000 cycles of the processor."""

    default_costs = CostTable("inspecting", {**GM_COSTS.table, "inspect": 2000})

    def start(self):
        super().start()
        self.inspected, self.chosen = 0, self.processor.port.flag()
        self.dispatched = lambda cycle, node, key: self.chosen.set()
        self.processor.port.spawn(self.inspect(), "inspect")

    async def inspect(self):
        while True:
            await self.chosen.wait()
            self.chosen.clear()
            async with self.processor.step("inspect"):
                self.inspected += 1
                print(f"card {self.node}: packet {self.inspected} inspected")


async def sender(host):
    port = await host.gm.open_port(0)
    buffer = await port.dma_malloc(64)
    start = host.microseconds
    for _ in range(3):
        await (await port.send(buffer, 64, node=1, port=0)).wait()
    return round(host.microseconds - start, 1)


async def receiver(host):
    port = await host.gm.open_port(0)
    for _ in range(3):
        await port.provide_receive_buffer(await port.dma_malloc(64))
    for _ in range(3):
        await port.receive()


for firmware in ("gm", Inspecting):
    run = lanikai.Cluster(nodes=4, firmware=firmware).run([sender, receiver])
    print(
        f"{firmware if isinstance(firmware, str) else firmware.__name__}: three messages in {run.values[0]} us"
    )
