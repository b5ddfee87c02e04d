"""Packets through routers in Amaranth's simulator, held against a plain Python expectation."""

import random
from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import LinkConfig
from lanikai.hdl.packet import Kind
from lanikai.hdl.router.agent import ROUTER_REGISTERS


@dataclass(kw_only=True)
class Packet:
    """A packet `flits` long from end `source` on VL `vl`, its head on the link in cycle `start` at the earliest.

    - `hops`: output port at each router.
    - `end`: where it must come out (None: dropped).
    - `number`: tells it apart.
    - `target`: the low 10 bits of the route where routers look at the destination, which they do not strip.
    - `service_level`, `kind`: fields of the header, noise if None.
    - `out_vls`: VLs that it may come out on (None: `vl`).
    """

    number: int
    source: int
    hops: list[int]
    end: int | None
    vl: int = 0
    flits: int = 1
    start: int = 0
    target: int | None = None
    target_bits: int = 10
    service_level: int | None = None
    kind: Kind | None = None
    out_vls: tuple[int, ...] | None = None

    def words(self, link: LinkConfig, *, hops_left: int) -> list[int]:
        """Data words with the first hops gone from the route.

        The rest of the route field carries the number, so that it is seen to move down unharmed.
        """
        field_bits = 24 if link.flit_bits == 32 else 48
        route = self.number + 1
        if self.target is not None:
            route = route << self.target_bits | self.target
        else:
            for hop in reversed(self.hops):
                route = route << link.hop_bits | hop
            route >>= link.hop_bits * (len(self.hops) - hops_left)
        assert route < 1 << field_bits
        noise = random.Random(self.number)
        first = noise.getrandbits(link.flit_bits)
        first &= ~((1 << field_bits) - 1 << 8)
        if self.kind is not None:
            first = first & ~0xF | self.kind.value
        if self.service_level is not None:
            first = first & ~0xF0 | self.service_level << 4
        return [first | route << 8] + [noise.getrandbits(link.flit_bits) for _ in range(self.flits - 1)]


@dataclass
class Result:
    """Record of what came out.

    - `seen[number]`: (cycle of the head, cycle of the tail) on the last output link.
    - `sent[number]`: the same at the first input link.
    - `busy[end]`: the cycles with a flit on that end's output link.
    - `vl[number]`: the VL there.
    - `order[end]`: the VLs of those cycles.
    """

    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)
    busy: dict[int, list[int]] = field(default_factory=dict)
    vl: dict[int, int] = field(default_factory=dict)
    order: dict[int, list[int]] = field(default_factory=dict)


def run_packets(
    top,
    ends,
    link: LinkConfig,
    packets: list[Packet],
    *,
    buffer_flits: int,
    sink_flits: int | None = None,
    stall: float = 0.0,
    gap: float = 0.0,
    seed: int = 0,
    limit: int = 3000,
    before=None,
    after=None,
    target_bits: int = 0,
) -> Result:
    """Send `packets` into `ends` [(rx, tx) of each end] and check everything that comes out.

    - A sender holds `buffer_flits` credits a VL, picks a VL that can send at random and idles with probability `gap`.
    - A receiver of `sink_flits` a VL frees a flit of a random VL with probability `1 - stall` a cycle.
    - `before(ctx)` and `after(ctx)` are awaited at the ends.
    - `target_bits`: bits of the route below the number, where routers look at the destination.

    Every packet must be whole, unharmed and unmixed on its VL, at the right end, in order for each (source, end, VL).
    There must be no credit too few or too many, and nothing left at the end.
    """
    sink_flits = buffer_flits if sink_flits is None else sink_flits
    chance = random.Random(seed)
    result = Result(busy={end: [] for end in range(len(ends))})
    by_number = {packet.number: packet for packet in packets}

    async def bench(ctx):
        if before is not None:
            await before(ctx)
        queues = {(e, v): deque() for e in range(len(ends)) for v in range(link.vls)}
        for packet in packets:
            words = packet.words(link, hops_left=len(packet.hops))
            for i, word in enumerate(words):
                queues[packet.source, packet.vl].append((packet, i, word))
        credits = dict.fromkeys(queues, buffer_flits)
        held = dict.fromkeys(queues, 0)
        partial = {key: [] for key in queues}
        order = {}
        due = {packet.number for packet in packets if packet.end is not None}
        idle, cycle = 0, 0
        while due or any(queues.values()) or any(held.values()) or idle < 40:
            assert cycle < limit, f"not through after {limit} cycles: {sorted(due)}"
            moved = False
            for e, (rx, tx) in enumerate(ends):
                if ctx.get(tx.valid):
                    moved = True
                    flit = ctx.get(tx.payload)
                    vl, got = flit.vl, partial[e, flit.vl]
                    held[e, vl] += 1
                    assert held[e, vl] <= sink_flits, f"end {e} VL {vl}: sent without a credit"
                    assert bool(flit.head) == (not got), f"end {e} VL {vl}: packets mixed"
                    got.append((cycle, flit.data))
                    result.busy[e].append(cycle)
                    result.order.setdefault(e, []).append(vl)
                    if flit.tail:
                        data = [word for _, word in got]
                        field_bits = 24 if link.flit_bits == 32 else 48
                        number = ((data[0] >> 8 & (1 << field_bits) - 1) >> target_bits) - 1
                        packet = by_number[number]
                        assert packet.end == e
                        assert vl in (packet.out_vls or (packet.vl,))
                        assert data == packet.words(link, hops_left=0)
                        result.vl[number] = vl
                        flow = (packet.source, packet.vl, e, vl)
                        assert order.get(flow, -1) < number, f"{flow}: out of order"
                        order[flow] = number
                        due.remove(number)
                        result.seen[number] = (got[0][0], cycle)
                        got.clear()
                if ctx.get(rx.credit_valid):
                    moved = True
                    vl = ctx.get(rx.credit_vl)
                    credits[e, vl] += 1
                    assert credits[e, vl] <= buffer_flits, f"end {e} VL {vl}: a credit too many"
                back = [v for v in range(link.vls) if held[e, v]]
                free = bool(back) and chance.random() >= stall
                ctx.set(tx.credit_valid, free)
                if free:
                    vl = chance.choice(back)
                    held[e, vl] -= 1
                    ctx.set(tx.credit_vl, vl)
                ready = [
                    v
                    for v in range(link.vls)
                    if credits[e, v] and queues[e, v] and queues[e, v][0][0].start <= cycle
                ]
                send = bool(ready) and chance.random() >= gap
                ctx.set(rx.valid, send)
                if send:
                    moved = True
                    vl = chance.choice(ready)
                    packet, i, word = queues[e, vl].popleft()
                    credits[e, vl] -= 1
                    tail = i == packet.flits - 1
                    ctx.set(rx.payload, {"data": word, "vl": vl, "head": i == 0, "tail": tail})
                    result.sent[packet.number] = (result.sent.get(packet.number, (cycle,))[0], cycle)
            idle = 0 if moved else idle + 1
            cycle += 1
            await ctx.tick()
        assert not any(partial.values())
        assert set(credits.values()) == {buffer_flits}, "credits are missing"
        if after is not None:
            await after(ctx)

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return result


async def access(ctx, router, address, value=None):
    """One access of the router's agent: writes `value`, or reads. It may wait 400 cycles at most."""
    request = {"valid": 1, "write": value is not None, "address": address, "data": value or 0}
    ctx.set(router.agent.request, request)
    for _ in range(400):
        ready = ctx.get(router.agent.response.ready)
        await ctx.tick()
        if ready:
            break
    else:
        raise AssertionError(f"{address:#x}: not ready")
    ctx.set(router.agent.request.valid, 0)
    return ctx.get(router.agent.response.data)


async def register(ctx, router, name, **fields):
    """Write a register's fields, or without any read them."""
    register = ROUTER_REGISTERS[name]
    if fields:
        await access(ctx, router, register.offset, register.pack(**fields))
        return None
    return register.unpack(await access(ctx, router, register.offset))


@pytest.fixture(scope="session")
def traffic():
    """`Packet`, `run_packets`, `access` and `register` for the tests of this folder."""
    return SimpleNamespace(Packet=Packet, run_packets=run_packets, access=access, register=register)
