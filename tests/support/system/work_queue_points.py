"""Work queues from process to process: coroutines of `test_work_queue.py`, run in the simulator."""

import hashlib

from lanikai.firmware.work_queue.config import WorkQueueConfig
from lanikai.firmware.work_queue.layout import unpack_descriptor_number
from lanikai.hdl.nic.nic import NIC_REGISTERS
from lanikai.hdl.nic.owners.completion_layout import CompletionStatus
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, REGISTER_BASE
from lanikai.sim.experiments.measure.kit_hosts import start_kit
from lanikai.sim.host.config import KitConfig
from lanikai.sim.host.errors import MemoryUseError
from lanikai.sim.host.kit.driver import Driver
from lanikai.sim.host.kit.errors import DeadQueueError, KitError, OverrunError
from lanikai.sim.host.kit.process import Process
from lanikai.sim.host.memory import Buffer
from lanikai.sim.inside import native_api


async def pair(drivers, *, entries=16, stall=False):
    """A process on nodes 0 and 1 each, a completion queue of either, a channel between them."""
    found = []
    for driver in drivers[:2]:
        process = await Process.open(driver)
        if stall:
            driver.may_stall.add(process.owner)
        queue = await process.completion_queue(entries, batch=2, lag_cycles=40, stall=stall)
        found.append((process, queue, await process.channel(queue)))
    for here, there in ((0, 1), (1, 0)):
        await found[here][2].connect(node=there, channel=found[there][2].number)
    return found


async def messages(cluster, spec):
    """Send `spec["bursts"]` bursts of `spec["burst"]` messages from 0 to 1, posted with one doorbell each burst,
    received into buffers over page ends. The receiver blocks, the sender spins. Returns the costs."""
    wakeups = cluster.clock.count_wakeups()
    programs, drivers = start_kit(cluster, WorkQueueConfig(descriptors=spec["descriptors"]))
    (sender, sent_queue, out), (receiver, arrived, into) = await pair(drivers)
    size, burst, rng = spec["bytes"], spec["burst"], cluster.random
    page = 4096
    source = await sender.allocate(2 * page, writable=False)
    target = await receiver.allocate(2 * page)
    content = rng.randbytes(2 * page)
    source.buffer.write(content)
    writes = sender.page.writes
    latency, got = [], hashlib.sha256()
    for _ in range(spec["bursts"]):
        if most := spec.get("silence_cycles"):
            await cluster.clock.sleep(rng.randrange(1, most))
        # Some lie over the end of a page, whose neighbour is elsewhere in memory.
        places = [
            4 * rng.randrange(page // 2, page // 4 * 3) % (2 * page - size) // 4 * 4 for _ in range(burst)
        ]
        places[0] = page - size // 2 // 4 * 4
        slots = [page - 20 + i * size for i in range(burst)]
        await into.receive.post_all([(target, slot, size) for slot in slots])
        start = cluster.clock.cycle
        first = await out.send.post_all([(source, place, size) for place in places])
        for i in range(burst):
            told = await arrived.wait()
            assert (told.status, told.bytes, told.work_queue) == (CompletionStatus.OK, size, into.number)
            assert unpack_descriptor_number(told.descriptor) == (first[i], True)
            latency.append(told.cycle - start)
            data = target.buffer.read(size, slots[i])
            assert data == content[places[i] : places[i] + size], f"message {first[i]} is not what was sent"
            got.update(data)
        for i in range(burst):
            told = await sent_queue.spin()
            assert unpack_descriptor_number(told.descriptor) == (first[i], False)
            assert await out.send.done(first[i]) == (CompletionStatus.OK, size)
    return {
        "sha256": got.hexdigest(),
        "latency_cycles": latency,
        "operations": [dict(program.operations) for program in programs],
        "page_writes": sender.page.writes - writes,
        "interrupts": arrived.interrupts,
        "dropped": programs[1].dropped,
        "wakeups": [wakeups[f"work queues[{node}]"] for node in (0, 1)],
    }


async def silent(cluster, spec):
    """Do as `messages`, with silences in between.

    Returns, beside its results, the end, every register that can be read without an effect, and the cycles that were
    passed over.
    """
    if spec.get("check"):
        native_api.check_quiet()
    found = await messages(cluster, spec)
    await cluster.clock.sleep(spec["silence_cycles"])
    names = [
        name
        for name, register in NIC_REGISTERS.items()
        if name not in ("DOORBELL_QUEUE", "DOORBELL_RECEIVE_QUEUE", "DOORBELL_WORD", "HOST_DMA_FINISHED")
        and any(field.sw_readable for field in register.fields.values())
    ]
    registers = [
        [await node.processor.read(REGISTER_BASE + NIC_REGISTERS[name].offset) for name in names]
        for node in cluster.nodes
    ]
    skipped = cluster.skipped_cycles
    return found | {"end": cluster.clock.cycle, "registers": registers, "skipped": skipped}


async def refusals(cluster, spec):
    """The acts that are forbidden to processes, on node 0: A (owner 1) and B (owner 2)."""
    _, drivers = start_kit(cluster, WorkQueueConfig(descriptors="shadow", queue_entries=2))
    (a, told, out), (there, arrived, into) = await pair(drivers)
    b = await Process.open(drivers[0])
    secret = await b.allocate(64)
    secret.buffer.write(b"secret" * 10)
    before = secret.buffer.read()
    source, gone = await a.allocate(4096, writable=False), await a.allocate(100)
    target = await there.allocate(256)
    target.buffer.write(bytes([0xEE]) * 256)
    statuses, errors = {}, {}

    async def send(region, length=None, *, room=128):
        """Post a message and, unless `room` is None, a buffer for it. Returns how they ended."""
        if room is not None:
            await into.receive.post(target, length=room)
        await out.send.post(region, length=length)
        ended = await told.wait()
        return ended.status, (await arrived.wait()).status if room is not None else None

    async def refused(name, call):
        try:
            await call
        except (KitError, ValueError) as error:
            errors[name] = str(error)

    statuses["somebody else's region"], _ = await send(secret, room=None)
    await a.deregister(gone)
    statuses["a region that is gone"], _ = await send(gone, room=None)
    again = await a.register(gone.buffer)
    assert again.number != gone.number or again.key != gone.key
    statuses["the same region number registered anew"], _ = await send(gone, room=None)
    await refused("regions", _three(a))
    await out.send.post(source, offset=2, length=8)
    statuses["not at a word"] = (await told.wait()).status
    statuses["longer than a packet"], _ = await send(source, 129, room=None)
    _, statuses["longer than the buffer"] = await send(source, 100, room=96)
    intact = target.buffer.read() == bytes([0xEE]) * 256
    read_only = await there.allocate(128, writable=False)
    await into.receive.post(read_only)
    await out.send.post(source, length=64)
    await told.wait()
    statuses["a write into a region that may only be read"] = (await arrived.wait()).status
    intact = intact and read_only.buffer.read() == bytes(128) and secret.buffer.read() == before

    await refused("foreign channel", b.page.ring(out.number, 1))
    await refused("foreign queue", b.page.consume(told.number, 0))
    await refused("shadow", a.page.shadow(0x3FC, (1, 2)))
    await refused("outside", out.send.post(source, offset=4089, length=9))
    await refused("route", out.connect(node=7, channel=1))
    await refused("twice", a.deregister(gone))
    await refused("entries", a.completion_queue(12))
    await refused("stall", a.completion_queue(4, stall=True))
    # Two are under way; a third waits for one to end.
    for _ in range(2):
        await into.receive.post(target, length=128)
    await refused("full", out.send.post_all([(source, 0, 128)] * 3))
    await out.send.post_all([(source, 0, 128)] * 2)
    await refused("none free", out.send.post(source, length=4))
    for _ in range(2):
        assert (await told.wait()).status == (await arrived.wait()).status == CompletionStatus.OK
    await refused("old", out.send.done(0))
    afterwards = target.buffer.read(128) == bytes(128)
    await out.close()
    await refused("closed", out.send.post(source, length=4))
    names = {name: CompletionStatus(status).name for name, status in statuses.items()}
    return {"statuses": names, "errors": errors, "intact": intact, "afterwards": afterwards}


async def _three(process):
    for _ in range(3):
        await process.allocate(4)


async def mistakes(cluster, spec):
    """Calls that are refused leave nothing behind: not a descriptor that goes with the next doorbell, not a page."""
    _, drivers = start_kit(cluster, WorkQueueConfig(descriptors=spec["descriptors"], queue_entries=2))
    (a, told, out), (there, arrived, into) = await pair(drivers)
    b = await Process.open(drivers[0])
    own = await b.completion_queue(2)
    late = await a.channel(told)
    source, target = await a.allocate(66_000), await there.allocate(64)
    source.buffer.write(bytes(range(1, 9)))
    errors = {}

    async def refused(name, call):
        try:
            await call
        except (KitError, MemoryUseError, ValueError) as error:
            errors[name] = str(error)

    async def message(channel, offset):
        """Send a message of a word. Returns the event that comes, and its number."""
        await into.receive.post(target)
        await channel.send.post(source, offset=offset, length=4)
        number, _ = unpack_descriptor_number((await told.wait()).descriptor)
        return list(target.buffer.read((await arrived.wait()).bytes)), number

    # Twice, so that slots have been used before what is refused.
    heard = [await message(out, 0), await message(out, 4)]
    await refused("second of two too long", out.send.post_all([(source, 0, 4), (source, 0, 65_536)]))
    heard.append(await message(out, 4))
    await refused("not connected", late.send.post_all([(source, 0, 4)] * 2))
    await refused("channel", late.connect(node=1, channel=70_000))
    await refused("driver's channel", late.connect(node=1, channel=0))
    await late.connect(node=1, channel=into.number)
    await into.connect(node=0, channel=late.number)
    heard.append(await message(late, 4))
    await out.close()
    await refused("closed", out.send.post(source, length=4))
    free = out.send.free, late.send.free
    await refused("foreign queue", b.channel(told))
    await refused("another host's queue", b.channel(own, arrived))
    await refused("foreign region", b.deregister(source))
    pages = drivers[0].pages.free_bytes
    await refused("negative", a.allocate(-1))
    return {
        "errors": errors,
        "heard": heard,
        "free": free,
        "more": await told.poll() is not None or await arrived.poll() is not None,
        "pages": drivers[0].pages.free_bytes - pages,
    }


async def ringing(cluster, spec):
    """A process never stops ringing, beside another one of the same card that sends `spec["messages"]`. Returns how
    many came, and how often the first one rang."""
    _, drivers = start_kit(cluster)
    (a, told, out), (there, arrived, into) = await pair(drivers)
    b = await Process.open(drivers[0])
    bell = await b.channel(await b.completion_queue(2))
    await bell.connect(node=1, channel=into.number)
    source, target = await a.allocate(64), await there.allocate(64)
    rings, came, stop = 0, 0, False

    async def ring():
        nonlocal rings
        while not stop:
            await drivers[0].bus.write_all([(bell_address, bell.number)] * 16)
            rings += 16

    async def send():
        nonlocal came
        for _ in range(spec["messages"]):
            await into.receive.post(target)
            await out.send.post(source)
            await told.wait()
            await arrived.wait()
            came += 1

    bell_address = DOORBELL_BASE + DOORBELL_PAGE_BYTES * b.owner
    for task in (ring, ring, send):
        drivers[0].bus.spawn(task(), task.__name__)
    await drivers[0].bus.sleep(30_000)
    found, stop = came, True
    await drivers[0].bus.sleep(2_000)
    return {"came": found, "rings": rings}


async def overrun(cluster, spec):
    """A sender looks at its completions too late."""
    _, drivers = start_kit(cluster)
    (a, _, _), (there, arrived, into) = await pair(drivers)
    told = await a.completion_queue(2)
    out = await a.channel(told)
    await out.connect(node=1, channel=into.number)
    await into.connect(node=0, channel=out.number)
    source, target = await a.allocate(64), await there.allocate(64)
    for _ in range(4):
        await into.receive.post(target)
        await out.send.post(source)
        await arrived.wait()
    seen = [[], []]
    error = None
    try:
        while True:
            seen[0].append(unpack_descriptor_number((await told.wait()).descriptor)[0])
    except OverrunError as found:
        error = str(found)
    await told.remake()
    await into.receive.post(target)
    await out.send.post(source)
    seen[1].append(unpack_descriptor_number((await told.wait()).descriptor)[0])
    return {"error": error, "seen_before": seen[0], "seen_after": seen[1]}


async def remake(cluster, spec):
    """A completion queue that lives is made anew while messages are told there, `waits` cycles after they were posted.

    Returns for each time the numbers that were told after that of those posted before, and of those posted since.
    """
    _, drivers = start_kit(cluster)
    (a, _, _), (there, arrived, into) = await pair(drivers)
    told = await a.completion_queue(16, batch=2, lag_cycles=200)
    out = await a.channel(told)
    await out.connect(node=1, channel=into.number)
    await into.connect(node=0, channel=out.number)
    source, target = await a.allocate(64), await there.allocate(64)

    async def post(count):
        for _ in range(count):
            await into.receive.post(target)
            await out.send.post(source)

    def numbers(found):
        return [unpack_descriptor_number(one.descriptor)[0] for one in found]

    rounds = []
    for wait in spec["waits"]:
        await post(3)
        await drivers[0].bus.sleep(wait)
        await told.remake()
        for _ in range(3):
            await arrived.wait()
        await drivers[0].bus.sleep(3_000)
        late = numbers(await told.reap())
        await post(3)
        seen = numbers([await told.wait() for _ in range(3)])
        for _ in range(3):
            await arrived.wait()
        rounds.append((late, seen))
    return rounds


async def both_ways(cluster, spec):
    """Send as many messages as the queues hold, both ways at once. Returns how many came to each, and the end."""
    programs, drivers = start_kit(cluster, WorkQueueConfig(descriptors="tailgated", queue_entries=16))
    ends = await pair(drivers, entries=32)
    size, count = spec["bytes"], spec["messages"]
    contents = [cluster.random.randbytes(size * count) for _ in ends]
    buffers = []
    for (process, _, channel), content in zip(ends, contents, strict=True):
        source, target = await process.allocate(len(content)), await process.allocate(len(content))
        source.buffer.write(content)
        buffers.append((source, target))
        await channel.receive.post_all([(target, size * i, size) for i in range(count)])
    for (_, _, channel), (source, _) in zip(ends, buffers, strict=True):
        await channel.send.post_all([(source, size * i, size) for i in range(count)])
    for _, queue, _ in ends:
        for _ in range(2 * count):
            assert (await queue.wait()).status == CompletionStatus.OK
    for (_, target), content in zip(buffers, reversed(contents), strict=True):
        assert target.buffer.read() == content
    return {"came": [program.received for program in programs], "end": cluster.clock.cycle}


async def no_firmware(cluster, spec):
    """A driver alone."""
    node = cluster.nodes[0]
    driver = Driver(node.host, nic=cluster.config.nic, routes={})
    await (await Process.open(driver)).completion_queue(4)


async def costs(cluster, spec):
    """Cycles of registering and deregistering 1 page and 5, of a message that is blocked for, and of one that is spun
    for, with `spec["kit"]`."""
    _, drivers = start_kit(cluster, kit=KitConfig(**spec["kit"]))
    (a, told, out), (b, arrived, into) = await pair(drivers)
    found = {}

    async def timed(name, call):
        start = cluster.clock.cycle
        result = await call
        found[name] = cluster.clock.cycle - start
        return result

    for pages in (1, 5):
        region = await timed(f"register {pages}", a.register(a.memory.allocate(4096 * pages)))
        await timed(f"deregister {pages}", a.deregister(region))
    source, target = await a.allocate(64), await b.allocate(64)
    for way in (arrived.spin, arrived.wait) * 2:
        await into.receive.post(target)
        await out.send.post(source)
        await timed(f"receive by {way.__name__}", way())
        await told.spin()
    return found


async def strangers(cluster, spec):
    """B (node 0) and R (node 1) are connected with each other. C, on B's host, and D, on R's own, name R's channel. So
    does a packet that has come to the wrong node, and one that is no message."""
    programs, drivers = start_kit(cluster)
    (b, told, out), (r, arrived, into) = await pair(drivers)
    c = await Process.open(drivers[0])
    queue = await c.completion_queue(4)
    channel = await c.channel(queue)
    await channel.connect(node=1, channel=into.number)
    good, evil, buffer = await b.allocate(16), await c.allocate(16), await r.allocate(16)
    good.buffer.write(b"from B, a friend")
    evil.buffer.write(b"from C, a wolf..")
    await into.receive.post(buffer)
    await channel.send.post(evil)
    assert (
        await queue.spin()
    ).status == CompletionStatus.OK  # it has left the card: delivery is not its business
    await cluster.clock.sleep(3000)
    untouched = buffer.buffer.read() == bytes(16) and await arrived.poll() is None
    # From here on node 1's firmware believes to be another one: what comes is not for it.
    programs[1].node = 3
    await out.send.post(good)
    await told.spin()
    await cluster.clock.sleep(3000)
    untouched = untouched and await arrived.poll() is None
    programs[1].node = 1
    await out.send.post(good)
    completion = await arrived.spin()
    return {
        "untouched": untouched,
        "status": completion.status.name,
        "bytes": buffer.buffer.read().decode(),
        "drops": dict(programs[1].drops),
    }


async def slow_consumer(cluster, spec):
    """B's queue stalls, and B looks late. A rings its own doorbell `spec["rings"]` times meanwhile, more often than the
    card's queue holds, and the driver registers memory for it. Returns the completions that B has reaped, and when all
    had ended."""
    programs, drivers = start_kit(cluster)
    (b, told, out), (_, _, into) = await pair(drivers, entries=4, stall=True)
    a = await Process.open(drivers[0])
    bell = await a.channel(await a.completion_queue(4))
    await bell.connect(node=1, channel=into.number)
    source = await b.allocate(16)
    start = cluster.clock.cycle
    found = {"reaped": [], "rang": 0, "waits": ""}

    async def ring():
        await cluster.clock.sleep(8_000)
        for _ in range(spec["rings"]):
            await a.page.ring(bell.number, 0)
            found["rang"] += 1

    async def work():
        for _ in range(6):
            await out.send.post(source)
        await cluster.clock.sleep(20_000)
        found["waits"] = "; ".join(programs[0].waiting())
        found["rang before"] = found["rang"]
        for _ in range(6):
            found["reaped"].append(unpack_descriptor_number((await told.spin()).descriptor)[0])
        found["cycles"] = cluster.clock.cycle - start

    for task in (ring, work):
        drivers[0].bus.spawn(task(), task.__name__)
    await cluster.clock.sleep(40_000)
    return found


async def never_looks(cluster, spec):
    """A trusted process never looks at its queue, which stalls: the run ends, and says who waits for what."""
    _, drivers = start_kit(cluster)
    (b, _, out), _ = await pair(drivers, entries=4, stall=True)
    source = await b.allocate(16)
    for _ in range(8):
        await out.send.post(source)
    await cluster.clock.sleep(500_000)


async def broken_ring(cluster, spec):
    """The bus answers the card's writes into the ring of A's queue with errors. A blocks, or spins; B goes on."""
    _, drivers = start_kit(cluster)
    (a, told, out), (_, _, into) = await pair(drivers)
    b = await Process.open(drivers[0])
    queue = await b.completion_queue(4)
    other = await b.channel(queue)
    await other.connect(node=1, channel=into.number)
    source, mine = await a.allocate(16), await b.allocate(16)
    # The ring is moved to where there is no memory.
    ring = told.ring
    told.ring = Buffer(1 << 30, ring.length, ring.data)
    await told.remake()
    told.ring = ring
    await out.send.post(source)
    try:
        await getattr(told, spec["way"])()
        error = ""
    except DeadQueueError as found:
        error = str(found)
    await other.send.post(mine)
    goes_on = (await queue.spin()).status.name
    await told.remake()
    await out.send.post(source)
    again = (await told.wait()).status.name
    return {"error": error, "goes on": goes_on, "again": again}


async def rung_while_sending(cluster, spec):
    """Doorbells of a queue come while its message is on its way: each descriptor is sent once."""
    programs, drivers = start_kit(cluster)
    (a, told, out), _ = await pair(drivers)
    source = await a.allocate(128)
    for number in range(spec["messages"]):
        await out.send.post(source, length=128)
        if number >= 6:
            await told.spin()
    await cluster.clock.sleep(20_000)
    return {"sent": programs[0].sent, "posted": out.send.posted}
