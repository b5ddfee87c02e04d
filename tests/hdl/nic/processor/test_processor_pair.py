# amaranth: UnusedElaboratable=no
"""Two processors on one card: turns at registers and SRAM, the parts that each has of its own, and the engine that they
share."""

import random

import pytest
from amaranth.lib import data
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, NicConfig, preset
from lanikai.hdl.nic.blocks import nic_registers
from lanikai.hdl.nic.nic import NIC_REGISTERS, Nic
from lanikai.hdl.nic.ports import DOORBELL_BASE, DOORBELL_PAGE_BYTES, REGISTER_BASE
from lanikai.hdl.nic.processor.pair import PairedDmaQueue
from lanikai.hdl.nic.queues.dma_queue import IN_ENGINE
from support.hdl.completion_queue import Consumer

from ..test_nic import Card

CONFIG = preset(
    NicConfig,
    "tiny",
    processors=2,
    host_dma_queue_entries=4,
    receive_doorbells="separate",
    doorbell_queue_entries=4,
)


class PairCard(Card):
    """A card whose scripts say which processor they are."""

    class One:
        """One of the processors, with the methods of `Card`."""

        read, write, event = Card.read, Card.write, Card.event

        def __init__(self, card, number):
            self.card, self.number = card, number
            self.port = getattr(card.nic, ("processor", "processor_1")[number])
            self.nic = self
            self.processor = self.port

        async def access(self, ctx, address, data=None):
            request, response = self.port.request, self.port.response
            ctx.set(request, {"valid": 1, "write": data is not None, "address": address, "data": data or 0})
            while not ctx.get(response.ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(request.valid, 0)
            return ctx.get(response.data)

    def run_pair(self, *scripts, beside=()):
        def bind(script, number):
            async def bound(ctx, card):
                await script(ctx, self.One(card, number))

            return bound

        self.run(*(bind(script, number) for number, script in enumerate(scripts)), *beside)


def test_accesses_of_both_agree_with_one_map():
    """Both access the same words and registers at random.

    Each access is done once, in the cycle in which it is taken, at most one a cycle. It waits for one of the other's at
    most.
    """
    card = PairCard(CONFIG)
    rng = random.Random(3)
    offsets = {
        name: REGISTER_BASE + NIC_REGISTERS[name].offset
        for name in ("HOST_DMA_HOST", "IMR", "HOST_INTERRUPT")
    }
    masks = {offsets["HOST_DMA_HOST"]: 0xFFFFFFFF, offsets["HOST_INTERRUPT"]: 0xFFFFFFFF}
    masks[offsets["IMR"]] = nic_registers(CONFIG)["IMR"].fields["mask"].mask
    own = {offsets["HOST_DMA_HOST"], offsets["IMR"]}
    places = [*offsets.values(), 0x40, 0x44, 0x48, 0x100000 - 4, 0x200000]
    taken, waits = [0, 0], [0, 0]

    async def bench(ctx, c):
        ports = [c.nic.processor, c.nic.processor_1]
        memory, wanted, due = {}, [None, None], [None, None]
        for _ in range(1500):
            for i, port in enumerate(ports):
                if wanted[i] is None and rng.random() < 0.8:
                    wanted[i] = rng.random() < 0.5, rng.choice(places), rng.getrandbits(32)
                write, address, word = wanted[i] or (0, 0, 0)
                ctx.set(
                    port.request,
                    {"valid": wanted[i] is not None, "write": write, "address": address, "data": word},
                )
            ready = [ctx.get(port.response.ready) and wanted[i] is not None for i, port in enumerate(ports)]
            kinds = [
                None if w is None else "register" if w[1] in masks else w[1] < CONFIG.sram_bytes
                for w in wanted
            ]
            if kinds[0] == kinds[1] and kinds[0] in ("register", True):
                assert sum(ready) == 1, "one of them goes"
            before, due = due, [None, None]
            for i, port in enumerate(ports):
                # The data of a read stand for the cycle after it, and nothing else is shown.
                assert ctx.get(port.response.data) == (before[i] or 0)
                if wanted[i] is None:
                    continue
                if not ready[i]:
                    waits[i] += 1
                    assert kinds[i] == kinds[1 - i] and ready[1 - i], "it waits for the other one alone"
                    assert waits[i] == 1, "and once"
                    continue
                write, address, word = wanted[i]
                wanted[i], waits[i] = None, 0
                taken[i] += 1
                key = (address, i) if address in own else address
                if not write:
                    due[i] = memory.get(key, 0)
                elif address in masks:
                    memory[key] = word & masks[address]
                elif address < CONFIG.sram_bytes:
                    memory[key] = word
            await ctx.tick()

    card.run(bench)
    assert min(taken) > 700


def test_each_has_its_own_events_mask_and_timer():
    card = PairCard(CONFIG)
    seen = []

    async def send(ctx, p):
        now = (await p.read(ctx, "RTC"))["ticks"]
        await p.write(ctx, "TIMER", ticks=now + 60)
        await p.event(ctx, "timer", limit=500)
        seen.append("send")
        assert (await p.read(ctx, "RTC"))["ticks"] >= now + 60
        # The other's doorbell is in this status too, and neither clears the other's bits.
        assert (await p.read(ctx, "ISR"))["receive_doorbell"]
        assert not (await p.read(ctx, "DOORBELL_QUEUE"))["valid"]
        # Both are told, and each clears it for itself.
        await p.write(ctx, "SEND_ADDRESS", address=0)
        await p.write(ctx, "SEND_CONTROL", bytes=0)
        await p.event(ctx, "send")
        assert not (await p.read(ctx, "ISR"))["send"]
        seen.append("sent")

    async def receive(ctx, p):
        await p.write(ctx, "RECEIVE_ADDRESS", address=0x200)
        await p.write(ctx, "RECEIVE_CONTROL", bytes=64)
        now = (await p.read(ctx, "RTC"))["ticks"]
        await p.write(ctx, "TIMER", ticks=now + 30)
        await p.event(ctx, "timer", limit=500)
        seen.append("receive")
        assert now + 30 <= (await p.read(ctx, "RTC"))["ticks"] < now + 40
        await p.write(ctx, "IMR", mask=NIC_REGISTERS["ISR"].fields["receive_doorbell"].mask)
        while not ctx.get(p.port.response.event):
            await ctx.tick()
        await ctx.tick().repeat(300)
        assert (await p.read(ctx, "ISR"))["receive_doorbell"]
        assert (await p.read(ctx, "DOORBELL_RECEIVE_QUEUE")) == {"channel": 2, "value": 77, "valid": 1}
        assert seen[-1] == "sent" and (await p.read(ctx, "ISR"))["send"]

    async def host(ctx, card):
        upper = DOORBELL_PAGE_BYTES // 2
        assert await card.host.write(ctx, DOORBELL_BASE + 2 * DOORBELL_PAGE_BYTES + upper, 77) == 0

    card.run_pair(send, receive, beside=[host])
    assert seen == ["receive", "send", "sent"]


@pytest.mark.parametrize("start", [100, 65000])
def test_the_earlier_timer_is_the_one_that_is_due(start):
    """This holds across the wrap of the clock's 16 bits, and for one that is armed alone."""
    nic = Nic(CONFIG, skippable=True)
    simulator = Simulator(nic)
    simulator.add_clock(1e-6)
    address = REGISTER_BASE + NIC_REGISTERS["TIMER"].offset

    async def bench(ctx):
        ctx.set(nic.clock_set.ticks, start)
        ctx.set(nic.set_clock, 1)
        await ctx.tick()
        ctx.set(nic.set_clock, 0)
        wanted = {}
        for number, ahead in ((1, 900), (0, 500), (1, 300), (1, 700), (0, 800)):
            time = (start + ahead) % 65536
            port = (nic.processor, nic.processor_1)[number]
            ctx.set(port.request, {"valid": 1, "write": 1, "address": address, "data": time})
            await ctx.tick()
            ctx.set(port.request.valid, 0)
            wanted[number] = ahead
            due = ctx.get(nic.timer_due)
            assert due.valid and due.ticks == (start + min(wanted.values())) % 65536

    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize("pipelined", [False, True])
def test_locks_are_one_processors_at_a_time_and_words_reach_the_other(pipelined):
    card = PairCard(CONFIG.replace(pipelined=pipelined))
    inside, holders, words = [], [], {0: [], 1: []}

    def script(number):
        async def use(ctx, p):
            assert (await p.read(ctx, "LOCKS"))["processor"] == number
            for turn in range(20):
                while True:
                    await p.write(ctx, "LOCKS", mine=0b100)
                    found = await p.read(ctx, "LOCKS")
                    assert found["mine"] & found["taken"] == 0
                    if found["mine"] & 0b100:
                        break
                inside.append(number)
                holders.append(len(inside))
                await ctx.tick().repeat(card.rng.randint(1, 6))
                inside.remove(number)
                await p.write(ctx, "LOCKS", free=0b100)
                await p.write(ctx, "PEER", word=100 * number + turn)
                await ctx.tick().repeat(card.rng.randint(1, 9))
                words[number].append((await p.read(ctx, "PEER"))["word"])
            # One cannot give back what the other has.
            await p.write(ctx, "LOCKS", mine=1 << number)
            await ctx.tick().repeat(300)
            await p.write(ctx, "LOCKS", free=0b11, mine=0b11)
            await ctx.tick().repeat(100)
            assert (await p.read(ctx, "LOCKS"))["mine"] == 1 << number
            await p.event(ctx, "peer")

        return use

    card.run_pair(script(0), script(1))
    assert set(holders) == {1} and len(holders) == 40
    assert words[0] == sorted(words[0]) and set(words[0]) - {0} <= set(range(100, 120))
    assert words[1] == sorted(words[1]) and set(words[1]) <= set(range(20))
    assert max(words[0]) > 110 and max(words[1]) > 10


@pytest.mark.parametrize(("stall", "pipelined"), [(0.0, False), (0.4, False), (0.4, True)])
def test_both_use_the_host_dma_engine_at_once(stall, pipelined):
    """Both have transfers, back and forth, as fast as their queues have room. Each has its results, in its order, and
    they take turns."""
    card = PairCard(CONFIG.replace(pipelined=pipelined), seed=4, stall=stall)
    source = card.rng.randbytes(0x800)
    card.memory[0x1000:0x1800] = source
    ended, count = [], 24

    def script(number):
        async def move(ctx, p):
            sizes = [random.Random(number * 100 + i).choice([4, 20, 64]) for i in range(count)]

            async def take():
                found = await p.read(ctx, "HOST_DMA_FINISHED")
                if found["valid"]:
                    ended.append((number, found["tag"], found["error"]))

            for i in range(count):
                while not (await p.read(ctx, "HOST_DMA_QUEUE"))["room"]:
                    await take()
                # Down to the SRAM, and the same up again to another place.
                to_host = i % 2
                offset = 0x400 * number + 64 * (i // 2)
                await p.write(ctx, "HOST_DMA_TAG", tag=10 * number + i, notify=1)
                await p.write(ctx, "HOST_DMA_HOST", address=(0x2000 if to_host else 0x1000) + offset)
                await p.write(ctx, "HOST_DMA_SRAM", address=0x400 + offset)
                await p.write(ctx, "HOST_DMA_CONTROL", bytes=sizes[i - to_host], to_host=to_host)
            while sum(n == number for n, *_ in ended) < count:
                await take()
            queue = await p.read(ctx, "HOST_DMA_QUEUE")
            assert queue == {"entries": 0, "room": 4, "ended": count, "refused": 0}
            assert (await p.read(ctx, "ISR"))["host_dma"]
            for i in range(0, count, 2):
                a = 0x1000 + 0x400 * number + 32 * i
                b = a + 0x1000
                assert card.memory[b : b + sizes[i]] == card.memory[a : a + sizes[i]]

        return move

    card.run_pair(script(0), script(1))
    for number in range(2):
        assert [(t, e) for n, t, e in ended if n == number] == [(10 * number + i, 0) for i in range(count)]
    firsts = [number for number, _, _ in ended[:count]]
    assert abs(firsts.count(0) - firsts.count(1)) <= 4, "turns"


def test_both_post_completions_to_one_queue():
    """Posts come as fast as they are taken. None is lost, and each processor's come in its order, as it described
    them."""
    config = CONFIG.replace(owners=2, completion_queues=1)
    card = PairCard(config, seed=6, stall=0.2)
    count, ready = 12, []

    def script(number):
        async def post(ctx, p):
            if number == 0:
                await p.write(ctx, "COMPLETION_RING", address=0x1000)
                await p.write(ctx, "COMPLETION_SETUP", queue=0, entries_log2=5, batch=1, owner=1)
                while (await p.read(ctx, "COMPLETION_SETUP"))["busy"]:
                    pass
                ready.append(True)
            while not ready:
                await ctx.tick()
            for i in range(count):
                await p.write(ctx, "COMPLETION_OF", work_queue=number, descriptor=i)
                while (await p.read(ctx, "COMPLETION_POST"))["busy"]:
                    pass
                await p.write(ctx, "COMPLETION_POST", queue=0, bytes=100 * number + i, entry=1)
            await ctx.tick().repeat(600)

        return post

    card.run_pair(script(0), script(1))
    consumer, found = Consumer(card.memory, 0x1000, 5), {0: [], 1: []}
    for _ in range(2 * count):
        entry = consumer.look()
        found[entry["work_queue"]].append((entry["descriptor"], entry["bytes"]))
        consumer.take()
    assert consumer.look() is None
    for number in range(2):
        assert found[number] == [(i, 100 * number + i) for i in range(count)]


@pytest.mark.parametrize("pipelined", [False, True])
def test_no_command_of_either_is_lost_before_a_unit_that_takes_its_time(pipelined):
    """One dispatches a flow again and again, the other writes another flow's times, at a tree of flows."""
    card = PairCard(CONFIG.replace(pipelined=pipelined, rate_structure="tree"))
    count, idt = 60, 5

    async def sets(ctx, p):
        await p.write(ctx, "RATE_SELECT", flow=1)
        await p.write(ctx, "RATE_IDT", ticks=idt)
        await p.write(ctx, "RATE_NDT", ticks=0)
        await p.write(ctx, "RATE_SELECT", flow=2)
        await p.write(ctx, "PEER", word=1)
        for i in range(count):
            await p.write(ctx, "RATE_IDT", ticks=i)
            assert await p.read(ctx, "RATE_IDT") == {"ticks": i}
            await ctx.tick().repeat(card.rng.randint(1, 5))
        while (await p.read(ctx, "PEER"))["word"] != 2:
            pass
        await p.write(ctx, "RATE_SELECT", flow=1)
        assert await p.read(ctx, "RATE_NDT") == {"ticks": count * idt}

    async def dispatches(ctx, p):
        while (await p.read(ctx, "PEER"))["word"] != 1:
            pass
        for _ in range(count):
            await p.write(ctx, "RATE_DISPATCH", flow=1)
            await ctx.tick().repeat(card.rng.randint(1, 5))
        await p.write(ctx, "PEER", word=2)

    card.run_pair(sets, dispatches)


def test_two_queues_in_front_of_an_engine_against_lists():
    """Starts, ends and takes are random. Each processor's requests are started in its order and end with its results.
    They wait for one of the other's at most."""
    rng = random.Random(11)
    dut = PairedDmaQueue(data.StructLayout({"number": 16}), 1, entries=3)
    waiting, inside, results = [[], []], [], [[], []]
    refused, ended, passed_over = [0, 0], [0, 0], [0, 0]
    served = [0, 0]

    async def bench(ctx):
        for cycle in range(1500):
            who = rng.randrange(2)
            submit, ready, take = rng.random() < 0.7, rng.random() < 0.5, rng.random() < 0.5
            done = bool(inside) and rng.random() < 0.5
            notify = rng.random() < 0.5
            result = rng.randrange(2)
            ctx.set(dut.who, who)
            ctx.set(dut.submit.valid, submit)
            ctx.set(dut.submit.payload, {"command": {"number": cycle}, "tag": cycle % 256, "notify": notify})
            ctx.set(dut.start.ready, ready)
            ctx.set(dut.done, done)
            ctx.set(dut.result, result)
            ctx.set(dut.take, take)
            assert ctx.get(dut.room) == 3 - len(waiting[who])
            assert ctx.get(dut.refused) == refused[who] % 256
            assert ctx.get(dut.ended_count) == ended[who] % 256
            assert ctx.get(dut.busy) == bool(waiting[who] or any(i == who for i, *_ in inside))
            assert ctx.get(dut.finished_valid) == bool(results[who])
            if results[who]:
                found = ctx.get(dut.finished)
                assert (found.tag, found.result) == results[who][0]
            assert ctx.get(dut.ended) == (1 << inside[0][0] if done else 0)
            starts = ctx.get(dut.start.valid) and ready
            number = ctx.get(dut.start.payload).number
            assert not ctx.get(dut.start.valid) or len(inside) < IN_ENGINE
            if take and results[who]:
                results[who].pop(0)
            if done:
                owner, tag, notified = inside.pop(0)
                ended[owner] += 1
                if notified:
                    results[owner].append((tag, result))
            if starts:
                owner = next(i for i in range(2) if waiting[i] and waiting[i][0][0] == number)
                _, tag, notified = waiting[owner].pop(0)
                inside.append((owner, tag, notified))
                served[owner] += 1
                passed_over[owner] = 0
                other = 1 - owner
                # Among those that wait only one whose result has no place yet may be passed over again.
                room = len(results[other]) + sum(i == other and n for i, _, n in inside) < 3 + IN_ENGINE
                passed_over[other] += bool(waiting[other]) and (room or not waiting[other][0][2])
                assert passed_over[other] <= 1
            if submit and ctx.get(dut.submit.ready):
                waiting[who].append((cycle, cycle % 256, notify))
            elif submit:
                refused[who] += 1
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert min(served) > 150 and min(refused) > 20


def test_one_processor_has_nothing_of_a_second():
    nic = Nic(preset(NicConfig, "tiny"))
    assert "processor_1" not in nic.signature.members
    assert not {"LOCKS", "PEER"} & set(nic_registers(preset(NicConfig, "tiny")))
    with pytest.raises(ConfigError) as caught:
        preset(NicConfig, "lanai4", processors=2)
    assert str(caught.value) == (
        "NicConfig: processors = 2: needs host_dma_queue_entries, 1 at least: each processor has a queue"
    )
