"""Random lists of accesses on both processors of a card, beside a host that writes into the SRAM."""

from random import Random

from lanikai.firmware.accesses import AccessList
from lanikai.hdl.nic.ports import SRAM_BASE

WORDS = 64
"""Words of SRAM that are used."""
READ = ("RTC", "ISR", "HOST_DMA_HOST", "SEND_ADDRESS")
WRITTEN = ("HOST_DMA_HOST", "SEND_ADDRESS")


def random_list(random):
    """A list of accesses that does nothing but with SRAM and registers without effect."""
    accesses, readings = AccessList(), []
    for _ in range(random.randrange(1, 25)):
        word = SRAM_BASE + 4 * random.randrange(WORDS)
        kind = random.choice(
            [
                "load",
                "load",
                "store",
                "store",
                "read",
                "write",
                "copy",
                "pause",
                "wait",
                "skip",
                "stop",
                "mark",
            ]
        )
        if kind == "load":
            readings += accesses.load(word, random.choice([1, 1, 4]))
        elif kind == "store":
            accesses.store(word, *(random.getrandbits(32) for _ in range(random.choice([1, 1, 4]))))
        elif kind == "read":
            readings.append(accesses.read(random.choice(READ)))
        elif kind == "write":
            accesses.write(random.choice(WRITTEN), address=random.getrandbits(8) * 4)
        elif kind == "pause":
            accesses.pause(random.choice([0, 1, 2, 9, 100]))
        elif kind == "mark":
            accesses.mark(random.choice([0, 1, 5]))
        elif kind == "wait":
            # The clock's last digits, which may or may not come in time.
            mask = random.choice([1, 3])
            readings.append(
                accesses.wait(
                    "RTC",
                    mask=mask,
                    value=random.randrange(mask + 1),
                    every_cycles=random.choice([0, 1, 4]),
                    most_reads=random.choice([1, 5, 40]),
                )
            )
        elif readings:
            reading = random.choice(readings)
            condition = {"mask": random.choice([1, 3, 0x80]), "value": random.choice([0, 1])}
            if kind == "copy":
                accesses.copy(
                    reading,
                    random.choice(WRITTEN),
                    mask=random.getrandbits(32),
                    left=random.randrange(-31, 32),
                    flip=random.getrandbits(8) & ~3,
                    add=random.choice([0, 4, -4]),
                    keep=0xFFC,
                )
            elif kind == "skip":
                accesses.skip_if(reading, **condition, differs=random.random() < 0.5, records=2)
                accesses.store(word, 1)
                accesses.pause(1)
            elif random.random() < 0.3:
                accesses.stop_if(reading, **condition, differs=random.random() < 0.5)
    return accesses


async def play(cluster, spec):
    """Each processor of node 0 carries out `spec["lists"]` random lists; some are interrupted at a mark.

    Gives for each its cycles, its end, and what it read; at the end the SRAM, and the wake-ups of Python. With
    `spec["late"]` one list takes one cycle more.
    """
    clock, node = cluster.clock, cluster.nodes[0]
    found, over = [], []
    done = clock.flag()
    seeds = Random(cluster.random.random())

    async def work(number, port, random):
        ended = clock.flag()
        for count in range(spec["lists"]):
            await port.sleep(random.randrange(1, 30))
            accesses = random_list(random)
            interrupts, lead = random.random() < 0.3, random.choice([0, 0, 3])
            lead += spec["late"] == [number, count]
            began = port.cycle
            while True:
                ended.clear()
                port.start(accesses, ended.set, lead_cycles=lead)
                if interrupts:
                    await port.sleep(random.randrange(1, 40))
                    port.interrupt()
                await ended.wait()
                words = list(accesses.words)
                found.append([number, count, began, port.cycle, accesses.why.name, accesses.reached, words])
                if accesses.why.name != "MARKED":
                    break
                accesses.reached += 1
                accesses.interrupted = interrupts = False
                lead = 1
        over.append(number)
        if len(over) == len(node.processors) + 1:
            done.set()

    async def host(random):
        while len(over) < len(node.processors):
            await node.host.write(SRAM_BASE + 4 * random.randrange(WORDS), random.getrandbits(32))
            await clock.sleep(random.randrange(1, 60))
        over.append("host")
        done.set()

    for number, port in enumerate(node.processors):
        clock.spawn(work(number, port, Random(seeds.random())), f"processor {number}")
    clock.spawn(host(Random(seeds.random())), "host")
    await done.wait()
    sram = [await node.processor.read(SRAM_BASE + 4 * word) for word in range(WORDS)]
    return {"found": sorted(found), "sram": sram, "end": clock.cycle}
