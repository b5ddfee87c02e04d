"""The sink finds faults and counts the right packets."""

import random
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from amaranth.sim import Simulator
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.packet import CHECK_OFFSET, Identity, check_of, key_of, synthetic_words
from lanikai.hdl.traffic.ports import NODE, histogram_address, statistics_address
from lanikai.hdl.traffic.sink import Sink
from lanikai.hdl.traffic.statistics import bin_of

NODE_NUMBER = 2
LINKS = [LinkConfig(flit_bits=32, vls=2), LinkConfig(flit_bits=64, vls=3), LinkConfig(flit_bits=128, vls=1)]
KINDS = ("framing", "integrity", "order", "destination")


def config_of(link):
    return TrafficConfig(link=link, nodes=5, classes=3, sink_flits=4, histogram_sub_bits=1)


def flits_of(link, identity, flits, vl, route=0):
    """Flits as dicts, `vl` the one that they arrive on."""
    identity = replace(identity, only=int(flits == link.header_flits))
    words = synthetic_words(identity, flits=flits, config=link, route=route, service_level=3)
    return [{"data": word, "vl": vl, "head": i == 0, "tail": i == flits - 1} for i, word in enumerate(words)]


def make_packets(link, chance, count, born_before=60):
    """Packets of random sources and VLs, in order: (identity, flits)."""
    numbers, packets = Counter(), []
    for _ in range(count):
        source, vl = chance.randrange(5), chance.randrange(link.vls)
        identity = Identity(
            destination=NODE_NUMBER,
            source=source,
            vl=vl,
            traffic_class=chance.randrange(3),
            tagged=chance.randrange(2),
            frame_end=chance.randrange(2),
            born=-chance.randrange(1, born_before) % 2**27,
            sequence=numbers[source, vl] % 256,
        )
        numbers[source, vl] += 1
        packets.append((identity, link.header_flits + chance.choice([0, 1, 1, 2, 5])))
    return packets


def interleave(link, packets, chance):
    """The packets' flits with those of different VLs mixed: (flit, number of its packet)."""
    queues = defaultdict(list)
    for number, (identity, flits) in enumerate(packets):
        queues[identity.vl] += [
            (flit, number) for flit in flits_of(link, identity, flits, identity.vl, chance.getrandbits(20))
        ]
    stream = []
    while any(queues.values()):
        vl = chance.choice([vl for vl, queue in queues.items() if queue])
        stream.append(queues[vl].pop(0))
    return stream


def play(config, stream, *, gap=0.0, seed=0, hold=0, stall=0, unordered=0, window=range(0), check=None):
    """Play flits into a sink. Returns its errors by kind.

    It hands (`read`, cycles of the flits, credits seen) to `check`.
    """
    dut, chance = Sink(config), random.Random(seed)
    cycles, credits, errors = [], [], {}

    async def bench(ctx):
        async def access(**values):
            ctx.set(dut.access, values)
            await ctx.tick()
            ctx.set(dut.access, {})
            return ctx.get(dut.answer)

        async def read(address):
            return await access(read=1, address=address)

        ctx.set(dut.node, NODE_NUMBER)
        word = NODE["SINK"].pack(hold=hold, stall=stall, unordered=unordered)
        await access(write=1, address=NODE["SINK"].offset, data=word)
        assert await read(NODE["SINK"].offset) == word
        waiting, now = list(stream), 0
        while waiting or now < 3 * len(stream) + 40:
            ctx.set(dut.control, {"now": now, "window": now in window})
            send = bool(waiting) and chance.random() >= gap
            ctx.set(dut.rx.valid, send)
            if send:
                ctx.set(dut.rx.payload, waiting.pop(0))
                cycles.append(now)
            if ctx.get(dut.rx.credit_valid):
                credits.append((now, ctx.get(dut.rx.credit_vl)))
            await ctx.tick()
            now += 1
        counts = {kind: await read(NODE[f"{kind.upper()}_ERRORS"].offset) for kind in KINDS}
        flags = NODE["ERRORS"].unpack(await read(NODE["ERRORS"].offset))
        assert flags == {kind: int(count > 0) for kind, count in counts.items()}
        errors.update({kind: count for kind, count in counts.items() if count})
        first = NODE["FIRST_ERROR"].unpack(await read(NODE["FIRST_ERROR"].offset))
        cycle = await read(NODE["FIRST_ERROR_CYCLE"].offset)
        if errors:
            assert first["kinds"] and cycle in cycles
            assert first["vl"] == stream[cycles.index(cycle)]["vl"]
        else:
            assert cycle == 0 and not any(first.values())
        if check is not None:
            await check(read, cycles, credits)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return errors


@settings(max_examples=6)
@given(st.sampled_from(LINKS), st.integers(0, 2**32), st.sampled_from([0.0, 0.4]))
def test_statistics_are_those_of_the_flits(link, seed, gap):
    config, chance = config_of(link), random.Random(seed)
    packets = make_packets(link, chance, 12)
    stream = interleave(link, packets, chance)
    window = range(10, 45)

    async def check(read, cycles, credits):
        accepted, latencies, frames = Counter(), defaultdict(list), Counter()
        position = Counter()
        for (flit, number), cycle in zip(stream, cycles, strict=True):
            identity, _ = packets[number]
            position[number] += 1
            if cycle in window and position[number] >= link.header_flits:
                first = position[number] == link.header_flits
                accepted[identity.traffic_class] += link.header_flits if first else 1
            if flit["tail"] and identity.tagged:
                latencies[identity.traffic_class].append((cycle - identity.born) % 2**27)
                frames[identity.traffic_class] += identity.frame_end
        for c in range(config.classes):
            seen = latencies[c]
            expected = {
                "ACCEPTED_FLITS": accepted[c],
                "LATENCY_PACKETS": len(seen),
                "LATENCY_SUM": sum(seen) & 0xFFFFFFFF,
                "LATENCY_SUM_HIGH": sum(seen) >> 32,
                "LATENCY_MIN": min(seen, default=0xFFFFFFFF),
                "LATENCY_MAX": max(seen, default=0),
                "FRAMES": frames[c],
            }
            shown = {name: await read(statistics_address(c, name)) for name in expected}
            assert shown == expected
            bins = Counter(bin_of(latency, config) for latency in seen)
            for position_ in range(20):
                assert await read(histogram_address(c, position_, config)) == bins[position_]
            assert sum(bins[p] for p in range(20)) == len(seen)
        assert sorted(vl for _, vl in credits) == sorted(flit["vl"] for flit, _ in stream)

    errors = play(config, [flit for flit, _ in stream], gap=gap, seed=seed, window=window, check=check)
    assert errors == {}


def mutate(link, stream, what, place, chance):
    """The stream with one fault near `place`, and the kinds of error of which one must be seen."""
    stream = [dict(flit) for flit in stream]
    if what == "flip":
        # Any bit but the route's, which is not checked: routers change it.
        bit = chance.randrange(link.flit_bits)
        before = [flit for flit in stream[:place] if flit["vl"] == stream[place]["vl"]]
        if stream[place]["head"]:
            bit = chance.choice([*range(8), *range(56, link.flit_bits)])
        elif link.flit_bits == 32 and before[-1]["head"]:
            bit = chance.randrange(24, 32)
        stream[place]["data"] ^= 1 << bit
    elif what == "lose":
        del stream[place]
    elif what == "double":
        stream.insert(place, dict(stream[place]))
    elif what == "swap":
        vl = stream[place]["vl"]
        later = next(i for i in range(place + 1, len(stream)) if stream[i]["vl"] == vl)
        if all(stream[i]["head"] and stream[i]["tail"] for i in (place, later)):
            # Whole packets of two sources may come in either order, so the second one is doubled in place of that.
            stream[place] = dict(stream[later])
        else:
            stream[place], stream[later] = stream[later], stream[place]
    elif what == "unmark":
        place = next(i for i in range(place, -1, -1) if stream[i]["tail"] or i == 0)
        stream[place]["tail"] ^= True
    elif what == "behead":
        stream[place]["head"] ^= True
    return stream


@settings(max_examples=16)
@given(
    st.sampled_from(LINKS),
    st.integers(0, 2**32),
    st.sampled_from(["flip", "lose", "double", "swap", "unmark", "behead"]),
)
@example(
    next(link for link in LINKS if link.flit_bits == 128), 34, "swap"
)  # two whole packets of two sources
def test_every_fault_is_found(link, seed, what):
    config, chance = config_of(link), random.Random(seed)
    packets = make_packets(link, chance, 4)
    # Something must follow on every VL, as a loss at the very end cannot be seen.
    numbers = Counter((identity.source, identity.vl) for identity, _ in packets)
    place = chance.randrange(sum(flits for _, flits in packets))
    for identity, _ in list(packets):
        key = identity.source, identity.vl
        packets.append((replace(identity, sequence=numbers[key]), link.header_flits + 1))
        numbers[key] += 1
    flits = [flit for flit, _ in interleave(link, packets[:4], chance)]
    flits += [flit for flit, _ in interleave(link, packets[4:], chance)]
    assert play(config, flits) == {}
    assert play(config, mutate(link, flits, what, place, chance)) != {}


def lone(link, flits=None, **changes):
    identity = Identity(**({"destination": NODE_NUMBER, "source": 1, "tagged": 1} | changes))
    return flits_of(link, identity, flits or link.header_flits + 2, identity.vl)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: str(link.flit_bits))
def test_kinds_of_errors(link):
    config = config_of(link)
    good = lone(link)
    assert play(config, good) == {}
    assert play(config, lone(link, destination=3)) == {"destination": 1}
    assert play(config, lone(link, sequence=1)) == {"order": 1}
    assert play(config, lone(link, sequence=1), unordered=1) == {}
    # A packet that was sent twice, one that was lost, two that changed places.
    again = [lone(link, sequence=i) for i in range(4)]
    assert play(config, again[0] + again[0]) == {"order": 1}
    assert play(config, again[0] + again[2] + again[3]) == {"order": 1}
    assert play(config, again[0] + again[2] + again[1] + again[3])["order"] >= 2
    # Its tail is lost, and the next packet is whole.
    assert play(config, good[:-1] + again[1]) == {"framing": 1, "order": 1}
    assert play(config, good[1:])["framing"] >= 1
    foreign = lone(link, source=2)
    assert play(config, [*good[:-1], foreign[-1]]) == {"integrity": 1}
    if link.header_flits > 1:
        short = [*good[:-3], good[-3] | {"tail": True}]
        assert play(config, short) == {"framing": 1}


@pytest.mark.parametrize("link", LINKS, ids=lambda link: str(link.flit_bits))
def test_order_goes_on_from_the_last_good_packet(link):
    """The number in a bad packet is not believed."""
    bad = lone(link, sequence=5)
    bad[-1]["data"] ^= 1
    assert play(config_of(link), lone(link) + bad + lone(link, sequence=1)) == {"integrity": 1}


@pytest.mark.parametrize("link", LINKS, ids=lambda link: str(link.flit_bits))
def test_a_packet_of_another_kind_is_wrong_though_its_check_is_right(link):
    packet = lone(link)
    packet[0]["data"] ^= 1
    packet[CHECK_OFFSET // link.flit_bits]["data"] ^= 1 << CHECK_OFFSET % link.flit_bits
    assert play(config_of(link), packet) == {"integrity": 1}


def test_the_first_error_is_kept():
    """It is kept with its kind, VL, source and cycle, whatever comes after it."""
    link = LINKS[0]
    bad = lone(link, source=4, vl=1)
    bad[-1]["data"] ^= 1

    async def check(read, cycles, credits):
        first = NODE["FIRST_ERROR"].unpack(await read(NODE["FIRST_ERROR"].offset))
        assert first == {"kinds": 1 << KINDS.index("integrity"), "vl": 1, "source": 4}
        assert await read(NODE["FIRST_ERROR_CYCLE"].offset) == cycles[len(bad) - 1]

    stream = bad + lone(link, source=3, sequence=9)
    assert play(config_of(link), stream, check=check) == {"integrity": 1, "order": 1}


def test_a_bad_packet_counts_nowhere():
    link = LINKS[2]
    config = config_of(link)

    async def check(read, cycles, credits):
        assert await read(statistics_address(0, "LATENCY_PACKETS")) == 0
        assert len(credits) == len(cycles)

    bad = lone(link)
    bad[1]["data"] ^= 1 << 100
    assert play(config, bad, check=check) == {"integrity": 1}


@pytest.mark.parametrize("link", LINKS, ids=lambda link: str(link.flit_bits))
def test_every_bit_is_checked(link):
    # A packet for each bit, with that one wrong: all but those of the route.
    bits = [*range(8), *range(56, 128), *range(128, 128 + 2 * link.flit_bits)]
    flits = []
    for bit in bits:
        packet = lone(link, born=bit)
        packet[bit // link.flit_bits]["data"] ^= 1 << bit % link.flit_bits
        flits += packet
    errors = play(config_of(link), flits)
    # `only` is a bit of the header.
    assert errors == {"integrity": len(bits), "framing": 1}


def test_checks_of_different_headers_differ():
    identity = Identity(destination=NODE_NUMBER, source=1, born=12345)
    assert check_of(0, 0) != 0
    assert key_of(identity.pack()) != key_of(replace(identity, born=12346).pack())


def test_credits_held_and_stalled():
    link = LINKS[1]
    config = config_of(link)
    flits = [flit for vl in range(3) for flit in flits_of(link, Identity(destination=2, vl=vl), 4, vl)]

    async def none(read, cycles, credits):
        assert credits == []

    async def late(read, cycles, credits):
        assert [vl for _, vl in credits] == [flit["vl"] for flit in flits][: len(credits)]
        assert len(credits) > 3
        assert any(back > cycle + 2 for (back, _), cycle in zip(credits, cycles, strict=False))

    async def at_once(read, cycles, credits):
        assert [back for back, _ in credits] == [cycle + 2 for cycle in cycles]

    play(config, flits, hold=1, check=none)
    play(config, flits, stall=160, check=late)
    play(config, flits, check=at_once)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: str(link.flit_bits))
def test_a_packet_longer_than_any_is_wrong_at_the_first_flit_beyond(link):
    """This holds though the flits beyond, counted modulo the range of a length, would be a header again and its
    body."""
    config = config_of(link).replace(max_packet_flits=7)
    again = [flit | {"head": 0} for flit in lone(link, flits=7)]
    assert play(config, lone(link, flits=9)[:8] + again) == {"integrity": 1}
    assert play(config, lone(link, flits=8)) == {"integrity": 1}
    assert play(config, lone(link, flits=7)) == {}


def test_sequence_numbers_go_over_their_wrap():
    """Packet 256 has number 0 again, and is looked at as any other."""
    link = LINKS[2]
    packets = [flit for i in range(259) for flit in lone(link, flits=1, sequence=i % 256)]
    assert play(config_of(link), packets) == {}
    assert play(config_of(link), packets[:257] + packets[258:]) == {"order": 1}
