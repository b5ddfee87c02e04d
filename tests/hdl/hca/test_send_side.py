"""The send side of an adapter: messages from rings in host memory to flits and completions."""

import pytest
from lanikai.hdl.hca.layout import CqeStatus
from lanikai.hdl.hca.scheduler import quotient_factor
from lanikai.hdl.packet import Kind
from support.hdl.hca.adapter_host import DATA
from support.hdl.hca.send_bench import CONFIG, NODE, PEER, POSTED, Bench, packets


@pytest.mark.parametrize("size", [0, 1, 16, 17])
def test_a_message_of_one_packet_and_its_completion(size):
    bench = Bench()
    host = bench.host
    data = bench.fill(DATA + 0x40, size)

    async def script(ctx):
        await host.open(ctx, 2, owner=1, traffic_class=1, peer=(PEER, 7), life=0xA5, peer_life=0x3C)
        assert await host.rest(ctx) < 50
        await host.post(
            ctx,
            2,
            opcode=2,
            immediate=0xDEADBEEF,
            vl=1,
            service_level=6,
            tag=0x1234,
            bytes=size,
            address=DATA + 0x40,
            region=1,
            kind=Kind.RELEASE,
            bandwidth=99,
            generation=5,
        )
        await host.rest(ctx)
        (entry,) = host.completions(0)
        assert entry | {"phase": 1} == {
            "bytes": size,
            "tag": 0x1234,
            "qp": 2,
            "status": CqeStatus.OK,
            "receive": 0,
            "with_immediate": 0,
            "source": 0,
            "source_qp": 0,
            "immediate": 0,
            "vl": 0,
            "kind": 0,
            "life": 0xA5,
            "phase": 1,
        }
        assert await host.count(ctx, "MESSAGES_SENT") == 1
        assert await host.count(ctx, "PACKETS_SENT") == 1
        assert await host.count(ctx, "FLITS_SENT") == 2 + -(-size // 16)

    bench.run(script)
    ((vl, header, payload, trailer),) = packets(bench.link.flits)
    assert vl == 1
    assert payload == data
    assert header == {
        "kind": Kind.RELEASE,
        "service_level": 6,
        "route": 0x123456789AB,
        "bandwidth": 99,
        "destination": PEER,
        "source": NODE,
        "flow": 5 << 8 | 7,
        "length": size,
        "sequence": 2,
    }
    assert trailer["good"]
    del trailer["good"], trailer["crc"]
    assert trailer == {
        "immediate": 0xDEADBEEF,
        "total_bytes": size,
        "first": 1,
        "last": 1,
        "with_immediate": 1,
        "life": 0x3C,
        "source_life": 0xA5,
        "reserved": 0,
    }


def test_the_factor_divides_every_length_exactly():
    for divisor in range(2, 254):
        factor, shift = quotient_factor(divisor)
        for flits in (*range(600), 4095, 4096, 4096 + divisor - 1, *range(divisor, 4096 + divisor, divisor)):
            assert flits * factor >> shift == flits // divisor
            assert max(0, flits - 1) * factor >> shift == max(0, flits - 1) // divisor


@pytest.mark.parametrize(
    ("config", "seed", "stall"),
    [
        (CONFIG, 1, 0.0),
        (CONFIG, 2, 0.3),
        (CONFIG, 3, 0.6),
        (POSTED, 4, 0.0),
        pytest.param(POSTED, 5, 0.6, marks=pytest.mark.full),
    ],
)
def test_random_messages_are_sent_whole_once_and_in_order(config, seed, stall):
    bench = Bench(seed=seed, config=config, stall=stall, credit_stall=stall, latency=min(20, 7 * seed))
    host, rng = bench.host, bench.rng
    qps = {0: (0, (PEER, 9)), 1: (1, (PEER, 8)), 2: (1, None), 3: (0, None)}
    expected = {qp: [] for qp in qps}
    total = 0

    async def script(ctx):
        nonlocal total
        for qp, (traffic_class, peer) in qps.items():
            await host.open(ctx, qp, owner=1, traffic_class=traffic_class, peer=peer)
        for _ in range(12):
            qp = rng.choice(list(qps))
            for _ in range(rng.randint(1, 4)):
                most = 64 if qps[qp][1] is None else 400
                size, offset = rng.randint(0, most), rng.randrange(0, 8192, 16)
                data = bench.fill(place := DATA + total * 12288 % 0x30000 + offset, size)
                host.element(
                    qp,
                    destination=PEER,
                    destination_qp=7,
                    vl=qp % 2,
                    tag=total,
                    bytes=size,
                    address=place,
                    region=1,
                )
                expected[qp].append((total, data))
                total += 1
            await host.doorbell(ctx, qp)
            await ctx.tick().repeat(rng.randint(1, 60))
            if rng.random() < 0.3:
                await host.rest(ctx)
                await host.consume(ctx, 0, 1)
        await host.rest(ctx)

    bench.run(script)
    ended, sent = {qp: [] for qp in qps}, {qp: [] for qp in qps}
    for entry in host.completions(0):
        assert entry["status"] == CqeStatus.OK
        ended[entry["qp"]].append((entry["tag"], entry["bytes"]))
    for _, header, payload, trailer in packets(bench.link.flits):
        assert trailer["good"]
        qp = header["sequence"] & 0xFF
        if trailer["first"]:
            sent[qp].append(b"")
        assert header["sequence"] >> 8 == len(sent[qp][-1]) // CONFIG.payload_bytes
        sent[qp][-1] += payload
        assert trailer["last"] == (len(sent[qp][-1]) == trailer["total_bytes"])
    for qp, messages in expected.items():
        assert sent[qp] == [data for _, data in messages]
        assert ended[qp] == [(tag, len(data)) for tag, data in messages]


KINDS = [
    (1, Kind.DATA, 1, CqeStatus.OK),
    (1, Kind.RELEASE, 1, CqeStatus.FORMAT),
    (1, Kind.PROBE, 1, CqeStatus.FORMAT),
    (1, Kind.PROBE, 15, CqeStatus.FORMAT),
    (2, Kind.RELEASE, 1, CqeStatus.OK),
    (2, Kind.ACK, 1, CqeStatus.FORMAT),
    (2, Kind.NACK, 1, CqeStatus.FORMAT),
    (2, Kind.PROBE, 1, CqeStatus.FORMAT),
    (2, Kind.ACK, 15, CqeStatus.FORMAT),
    (3, Kind.ACK, 15, CqeStatus.OK),
    (3, Kind.RELEASE, 15, CqeStatus.OK),
    (3, Kind.ACK, 0, CqeStatus.FORMAT),
    (3, 7, 15, CqeStatus.FORMAT),
]
"""Queue pair, kind, VL, and the end: pair 1 is not connected, pair 2 is, and pair 3 may use VL 15."""


def test_a_kind_is_for_those_whom_the_driver_has_given_the_means_to():
    """Only a queue pair that may use VL 15 sends there, and answers and probes nowhere else. A connected one may end
    its own reservation. Nobody sends a kind that is none."""
    bench = Bench(config=CONFIG.replace(link=CONFIG.link.replace(vls=16)))
    host = bench.host

    async def script(ctx):
        await host.open(ctx, 1, owner=1, vls=0xFF)
        await host.open(ctx, 2, owner=1, vls=0xFF, peer=(PEER, 7))
        await host.open(ctx, 3, owner=1, vls=0x8001)
        for qp, kind, vl, _ in KINDS:
            await host.post(
                ctx, qp, opcode=1, kind=kind, destination=PEER, vl=vl, bytes=16, address=DATA, region=1
            )
            await host.rest(ctx)
        assert [entry["status"] for entry in host.completions(0)] == [end for *_, end in KINDS]

    bench.run(script)
    sent = [(vl, header["kind"]) for vl, header, _, _ in packets(bench.link.flits)]
    assert sent == [(vl, kind) for _, kind, vl, end in KINDS if end == CqeStatus.OK]
