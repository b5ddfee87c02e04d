"""Random use of all parts of cards without firmware, with pauses about as long as it takes a card to rest."""

from random import Random

from lanikai.firmware import registers
from lanikai.hdl.nic.nic import HOST_REGISTERS
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, REGISTER_BASE, SRAM_BASE
from lanikai.hdl.packet import Header
from lanikai.sim.inside import native_api
from lanikai.sim.systems.cluster import settle_cycles

from .list_points import WORDS, random_list
from .skip_points import READ_WITHOUT_EFFECT

OUT, IN = 0x400, 0xC00
"""Places in the SRAM for packets."""
BYTES = 64


async def play(cluster, spec):
    """Until cycle `spec["end"]` processors and hosts of all nodes do random things, with random pauses.

    Gives what each saw and when, and at the end the SRAM, the registers and the cycles passed over.
    """
    if spec.get("check"):
        native_api.check_quiet()
    clock, config = cluster.clock, cluster.config
    end, settle = spec["end"], settle_cycles(config)
    mask = (1 << config.nic.rtc_bits) - 1
    found = []
    over = clock.flag()
    left = [0]

    def pause(random):
        kind = random.random()
        if kind < 0.5:
            cycles = random.randrange(1, 30)
        elif kind < 0.8:
            cycles = settle + random.randrange(-12, 40)
        elif kind < 0.97:
            cycles = random.randrange(100, 3000)
        else:
            cycles = random.randrange(1, spec["longest_cycles"])
        return max(1, min(cycles, end - clock.cycle))

    async def processor(name, node, port, random):
        def note(*what):
            found.append([clock.cycle, name, *what])

        async def read(register):
            note(register, await port.read(registers.address(register)))

        async def write(register, **fields):
            await port.write(registers.address(register), registers.pack(register, **fields))

        async def choose_stamp(engine):
            """The next transfer's stamp: the flow's next one, whose Vtick is set anew now and then, or any."""
            if random.random() < 0.3:
                await write(f"{engine}_FLOW", flow=0)
                await write(f"{engine}_STAMP", ticks=random.getrandbits(config.nic.rtc_bits))
                return
            await write(f"{engine}_FLOW", flow=random.randrange(config.nic.stamp_flows), stamped=1)
            if random.random() < 0.3:
                await write(f"{engine}_VTICK", ticks=random.choice([0, 7, 500, mask]))

        while clock.cycle < end:
            await port.sleep(pause(random))
            kind = random.randrange(8)
            flow = random.randrange(config.nic.flows)
            if kind == 0:
                ended, accesses = clock.flag(), random_list(random)
                port.start(accesses, ended.set, lead_cycles=random.choice([0, 0, 5, 300]))
                await ended.wait()
                note(accesses.why.name, accesses.reached, list(accesses.words))
            elif kind == 1:
                await read(random.choice(["RATE_NDT", "RTC", "ISR", "RATE_DISPATCH", "CRC_ERRORS"]))
            elif kind == 2:
                await write("RATE_SELECT", flow=flow)
                await write("RATE_IDT", ticks=random.choice([0, 30, 900, mask]))
                await write("RATE_COMMAND", **{random.choice(["enqueue", "enqueue", "clear"]): 1})
            elif kind == 3:
                word = await port.read(registers.address("RATE_DISPATCH"))
                if registers.unpack("RATE_DISPATCH", word)["valid"]:
                    await write("RATE_DISPATCH", flow=registers.unpack("RATE_DISPATCH", word)["flow"])
                    note("dispatched", word)
            elif kind == 4:
                now = await port.read(registers.address("RTC"))
                ticks = random.choice([0, 1, 3, 40, settle, random.randrange(3000)])
                await write("ISR", timer=1)
                await write("TIMER", ticks=now + ticks & mask)
                await write("IMR", mask=1 << 5)
                if random.random() < 0.7:
                    await port.event()
                    note("timer")
                    await write("ISR", timer=1)
                    await write("IMR", mask=0)
            elif kind == 5:
                await write("HOST_DMA_HOST", address=4 * random.randrange(64))
                await write("HOST_DMA_SRAM", address=4 * random.randrange(64))
                if config.nic.stamps_host_dma:
                    await choose_stamp("HOST_DMA")
                await write(
                    "HOST_DMA_CONTROL", bytes=4 * random.randrange(1, 16), to_host=random.randrange(2)
                )
            elif kind == 6:
                peer = random.choice([one for one in range(len(cluster.nodes)) if one != node])
                route = cluster.network.source_route(node, peer)
                header = Header(
                    route=route, destination=peer, source=node, length=BYTES, sequence=flow
                ).pack()
                for word in range(4):
                    await port.write(SRAM_BASE + OUT + 4 * word, header >> 32 * word & 0xFFFFFFFF)
                await write("SEND_ADDRESS", address=OUT)
                if config.nic.stamps_send:
                    await choose_stamp("SEND")
                await write("SEND_CONTROL", bytes=BYTES)
                await write("RECEIVE_ADDRESS", address=IN)
                await write("RECEIVE_CONTROL", bytes=BYTES)
            else:
                await write("HOST_INTERRUPT", vector=clock.cycle)
        ended_one()

    async def host(node, random):
        bus, rings = cluster.nodes[node].host, 0

        def note(*what):
            found.append([clock.cycle, f"host {node}", *what])

        while clock.cycle < end:
            await bus.sleep(pause(random))
            kind = random.randrange(5)
            if kind == 0:
                await bus.write(SRAM_BASE + 4 * random.randrange(WORDS), random.getrandbits(32))
            elif kind == 1:
                note("read", await bus.read(SRAM_BASE + 4 * random.randrange(WORDS)))
            elif kind == 2 and rings < config.nic.doorbell_queue_entries:
                # A full queue would hold the bus.
                rings += 1
                channel = random.randrange(config.nic.channels)
                await bus.write(DOORBELL_BASE + DOORBELL_PAGE_BYTES * channel, random.getrandbits(20))
            elif kind == 3:
                # Its memory, with nothing done that would wake the card.
                for _ in range(random.randrange(1, 60)):
                    await bus.sleep(random.randrange(1, 9))
                    note("memory", int(bus.memory[:1024].view("u4").sum()))
            else:
                await bus.write(REGISTER_BASE + HOST_REGISTERS["HOST_IMR"].offset, random.choice([0, 1, 1]))
        ended_one()

    async def interrupts(node):
        bus = cluster.nodes[node].host
        while True:
            await bus.interrupt()
            vector = await bus.read(REGISTER_BASE + HOST_REGISTERS["HOST_VECTOR"].offset)
            found.append([clock.cycle, f"interrupt {node}", vector])
            await bus.write(REGISTER_BASE + HOST_REGISTERS["HOST_ISR"].offset, 1)

    async def watch(node):
        bus = cluster.nodes[node].host
        watch = bus.watch(0, 128)
        while True:
            await watch.wait()
            found.append([clock.cycle, f"watch {node}", bus.memory[:128].tobytes().hex()])

    def ended_one():
        left[0] -= 1
        if not left[0]:
            over.set()

    seeds = Random(cluster.random.random())
    for number, node in enumerate(cluster.nodes):
        for i, port in enumerate(node.processors):
            name = f"processor {number}.{i}"
            clock.spawn(processor(name, number, port, Random(seeds.random())), name)
            left[0] += 1
        clock.spawn(host(number, Random(seeds.random())), f"host {number}")
        left[0] += 1
        clock.spawn(interrupts(number), f"interrupt {number}")
        clock.spawn(watch(number), f"watch {number}")
    await over.wait()
    while spec.get("hang"):
        await clock.sleep(7_777)
    last = clock.cycle
    words = [
        [
            [
                await port.read(REGISTER_BASE + registers.address(name) % REGISTER_BASE)
                for name in READ_WITHOUT_EFFECT
            ]
            for port in node.processors
        ]
        for node in cluster.nodes
    ]
    sram = [
        [await node.processor.read(SRAM_BASE + 4 * word) for word in range(WORDS)] for node in cluster.nodes
    ]
    return {
        "found": found,
        "registers": words,
        "sram": sram,
        "end": last,
        "skipped": cluster.skipped_cycles,
        "evaluated": native_api.evaluated(),
    }
